//! The hardware and kernel of a run, without which its numbers cannot be interpreted.

use serde::{Deserialize, Serialize};

/// The machine that the load ran on.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Machine {
    /// Model of the CPUs, as the kernel names it.
    pub cpu: String,
    /// CPUs that are online.
    pub cpus: u32,
    /// CPU frequency governor, if the kernel reports one.
    pub governor: Option<String>,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Kernel and its version.
    pub kernel: String,
    /// The distribution.
    pub system: String,
    /// File system of the folder in which the disk canary writes.
    pub file_system: Option<String>,
}
