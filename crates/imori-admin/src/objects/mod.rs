//! The objects that operators declare, import and change, and why an operation on them fails.

pub(crate) mod import;
pub(crate) mod declaration;
pub(crate) mod arguments;
pub(crate) mod change;
pub(crate) mod operation_error;
pub(crate) mod stall;
pub(crate) mod whoami;
