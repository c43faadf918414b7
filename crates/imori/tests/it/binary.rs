//! Runs the binary and captures its output.

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

/// The result of a run: its exit code and its output.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// A command that runs the binary with these arguments, without our variables in its environment.
pub(crate) fn imori(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_imori"));
    command.args(arguments).env_remove("IMORI_URL").env_remove("NOTIFY_SOCKET").stdin(Stdio::null());
    command
}

/// Runs the binary to its end.
pub(crate) fn run(arguments: &[&str]) -> Run {
    ended(imori(arguments).output().unwrap())
}

/// Runs the binary to its end with this standard input.
pub(crate) fn run_with_input(arguments: &[&str], input: &str) -> Run {
    let mut command = imori(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    ended(child.wait_with_output().unwrap())
}

pub(crate) fn ended(output: Output) -> Run {
    Run {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}
