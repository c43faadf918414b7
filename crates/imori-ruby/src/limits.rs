//! The limits of a VM.

use std::time::Duration;

/// Bytes of one string; a longer one raises `ArgumentError`. build/compile.rs passes it to mruby.
pub const STRING_BYTES_MAX: usize = 16 << 20;

/// Items of one array; a longer one raises `ArgumentError`. build/compile.rs passes it to mruby.
pub const ARRAY_ITEMS_MAX: usize = 1 << 20;

/// Bytes of a script's text; more than a person writes, and little enough to compile within a slice.
pub const SCRIPT_BYTES_MAX: usize = 1 << 20;

/// Lines of a script's text: mruby counts them in 16 bits.
pub const SCRIPT_LINES_MAX: usize = 65_535;

/// Levels of arrays and hashes in a value that crosses; a deeper one raises `ArgumentError`.
pub const VALUE_DEPTH_MAX: usize = 64;

/// Bytes of heap without which a VM does not start: the library itself takes about 1 MiB.
pub const HEAP_BYTES_MIN: usize = 4 << 20;

/// How often a script may be told that it is over its CPU time before its VM is given up: once for the script, and
/// the others for its `ensure` and `rescue` blocks.
pub const CPU_WARNINGS_MAX: u32 = 3;

/// CPU time for the blocks that run after the script was told that it is over its limit.
pub const CPU_GRACE: Duration = Duration::from_millis(10);

/// How often a fiber that is dropped may await in its `ensure` blocks before it is left to the collector.
pub const CANCELS_MAX: u32 = 3;

/// What the scripts of one VM may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// CPU time between two awaits; over it, `Imori::CpuLimitError` is raised in the script.
    pub slice_cpu: Duration,
    /// CPU time of one run with all its slices; over it, `Imori::CpuLimitError` is raised in the script.
    pub run_cpu: Duration,
    /// Bytes of the VM's heap; over it, `NoMemoryError` is raised in the script. At least [`HEAP_BYTES_MIN`].
    pub heap_bytes: usize,
    /// Bytes of one block of the heap, as of an array's items.
    pub block_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            slice_cpu: Duration::from_millis(100),
            run_cpu: Duration::from_secs(1),
            heap_bytes: 64 << 20,
            block_bytes: STRING_BYTES_MAX + (1 << 20),
        }
    }
}
