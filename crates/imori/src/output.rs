//! Printing to standard output and standard error.

use std::error::Error;
use std::fmt;
use std::io::{self, ErrorKind, Write as _};

/// The error when the reader of standard output has gone.
#[derive(Debug)]
pub(crate) struct OutputClosed;

impl fmt::Display for OutputClosed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("standard output is closed")
    }
}

impl Error for OutputClosed {}

/// Writes bytes to standard output and flushes it.
pub(crate) fn print(bytes: &[u8]) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(OutputClosed.into()),
        other => Ok(other?),
    }
}

/// Writes a line to standard output.
pub(crate) fn print_line(line: &str) -> anyhow::Result<()> {
    print(format!("{line}\n").as_bytes())
}

/// Writes each line of the text to standard error, prefixed with the program's name.
pub(crate) fn print_error(text: &str) {
    let lines = text.lines().map(|line| format!("imori: {line}\n"));
    // A failure to report an error has nowhere to be reported.
    let _ = io::stderr().write_all(lines.collect::<String>().as_bytes());
}

/// Writes a question to standard error, where the output of the command does not go.
pub(crate) fn print_question(text: &str) {
    // A question that cannot be read is answered by the end of the input.
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Writes a line to standard error that begins with the place of a fault, so that editors find it.
pub(crate) fn print_problem(line: &str) {
    // A failure to report an error has nowhere to be reported.
    let _ = io::stderr().write_all(format!("{line}\n").as_bytes());
}
