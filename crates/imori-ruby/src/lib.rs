//! mruby, embedded: scripts of the host in a VM with limits.
//!
//! A script calls native functions of its host. One that takes time returns an operation, and the script waits in its
//! fiber until the host resumes it, so that one thread runs many scripts. The crate knows neither HTTP nor messages.
//! `ffi.rs` is the only file with `unsafe`; docs/internals/ruby.md describes the boundary to C.

mod vm;
mod ffi;
mod host;
mod clock;
mod watchdog;
mod budget;
mod codec;
mod library;
mod value;
mod limits;

pub use library::{Call, Library, Operation, Reply};
pub use limits::{
    ARRAY_ITEMS_MAX, CANCELS_MAX, CPU_GRACE, CPU_WARNINGS_MAX, HEAP_BYTES_MIN, Limits, SCRIPT_BYTES_MAX,
    SCRIPT_LINES_MAX, STRING_BYTES_MAX, VALUE_DEPTH_MAX,
};
pub use value::{Error, Exception, Handle, Value};
pub use vm::{CompileError, Fiber, HeapUsage, OpenError, Script, Step, Vm};

/// What the tests of this crate reach beside its public items.
#[doc(hidden)]
pub mod for_tests {
    pub use crate::budget::{Budget, Usage, Verdict};
    pub use crate::clock::{READING_AGE_MAX, SliceClock, thread_cpu};
    pub use crate::codec::{decode, encode};
}
