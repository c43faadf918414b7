//! `imori version`: prints the version.

use crate::output::print_line;

/// Prints name and version.
pub(super) fn run() -> anyhow::Result<()> {
    print_line(concat!("imori ", env!("CARGO_PKG_VERSION")))
}
