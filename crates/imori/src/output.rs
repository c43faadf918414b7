//! The output of the commands.

use std::error::Error;
use std::fmt;
use std::io::{self, ErrorKind, Write as _};

/// Whoever read the standard output has gone.
#[derive(Debug)]
pub(crate) struct OutputClosed;

impl fmt::Display for OutputClosed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("standard output is closed")
    }
}

impl Error for OutputClosed {}

/// Writes these bytes, at once, to the standard output.
pub(crate) fn print(bytes: &[u8]) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(OutputClosed.into()),
        other => Ok(other?),
    }
}

/// Writes a line to the standard output.
pub(crate) fn print_line(line: &str) -> anyhow::Result<()> {
    print(format!("{line}\n").as_bytes())
}

/// Writes each line of the text to the standard error, after the name of the program.
pub(crate) fn print_error(text: &str) {
    let lines = text.lines().map(|line| format!("imori: {line}\n"));
    // There is nobody left to tell if that fails.
    let _ = io::stderr().write_all(lines.collect::<String>().as_bytes());
}
