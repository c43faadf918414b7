//! The fault that is planted in each target, to see that the fuzzer finds it.

use std::sync::LazyLock;

/// The environment variable that plants the faults.
const VARIABLE: &str = "IMORI_FUZZ_PLANTED";

static IS_PLANTED: LazyLock<bool> = LazyLock::new(|| std::env::var_os(VARIABLE).is_some());

/// Panics if the input has the property that a target calls its planted fault, and the faults are planted.
pub(crate) fn fail_if_planted(has_property: bool) {
    assert!(!(has_property && *IS_PLANTED), "the planted fault is found");
}
