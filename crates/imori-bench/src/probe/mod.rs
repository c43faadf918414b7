//! Probes beside the load: delays of the machine, its disk and its network, and resource usage of processes.

pub(crate) mod echo;
pub(crate) mod disk;
pub(crate) mod threads;
pub(crate) mod beat;
pub(crate) mod canary;
pub(crate) mod usual;
pub(crate) mod host;
pub(crate) mod quota;
pub mod process;
