//! Where the results go.

use clap::Args;

/// Where the results go.
#[derive(Debug, Default, Clone, PartialEq, Eq, Args)]
pub struct Outputs {
    /// File for the result as JSON, `-` for standard output instead of the text.
    #[arg(long, value_name = "FILE")]
    pub json: Option<String>,
    /// Folder for `seconds.csv` and `stalls.csv`; or a file `NAME.csv`, with `NAME.stalls.csv` beside it.
    #[arg(long, value_name = "PLACE")]
    pub csv: Option<String>,
    /// File for the report as a page.
    #[arg(long, value_name = "FILE")]
    pub html: Option<String>,
}
