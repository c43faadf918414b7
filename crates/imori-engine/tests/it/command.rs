//! Commands of other programs: their output, time and errors.

use std::time::{Duration, Instant};

use imori_engine::environments::command::{Command, CommandError};
use imori_engine::limits::COMMAND_OUTPUT_BYTES_MAX;

use crate::environment::block_on;

fn run(script: &str, time_max: Duration) -> Result<String, CommandError> {
    block_on(Command::new("sh", time_max).with(["-c", script]).output())
}

#[test]
fn output_keeps_its_last_bytes() {
    let output = run("seq 1 200000; echo error >&2", Duration::from_secs(60)).unwrap();
    assert!(output.len() <= 2 * COMMAND_OUTPUT_BYTES_MAX);
    assert!(output.ends_with("199999\n200000\nerror\n"));
}

#[test]
fn failure_shows_the_last_lines() {
    let error = run("seq 1 100; echo wrong >&2; exit 3", Duration::from_secs(60)).unwrap_err().to_string();
    assert!(error.ends_with("99\n100\nwrong"), "{error}");
    assert!(error.contains("exit status: 3"), "{error}");
}

#[test]
fn slow_command_is_killed_with_its_children() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    let script = format!("sleep 1000 & echo $! > {}; wait", file.display());
    let mut time_max = Duration::from_millis(500);
    let pid = loop {
        let error = run(&script, time_max).unwrap_err();
        assert!(matches!(error, CommandError::TimedOut { .. }));
        match std::fs::read_to_string(&file) {
            Ok(pid) if pid.ends_with('\n') => break pid,
            // A busy machine has not started the child in this time.
            _ => time_max *= 2,
        }
    };
    let is_alive = || {
        let status = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
        !status.is_empty() && !status.contains(") Z ")
    };
    // The signal is sent, and the kernel ends the process a moment later.
    let deadline = Instant::now() + Duration::from_secs(60);
    while is_alive() {
        assert!(Instant::now() < deadline, "the child still runs");
        std::thread::yield_now();
    }
}

#[test]
fn child_that_outlives_the_command_does_not_hold_it_up() {
    assert_eq!(run("sleep 1000 & echo done", Duration::from_secs(60)).unwrap(), "done\n");
}

#[test]
fn password_of_an_address_is_not_shown() {
    let rows = [
        ("https://user:secret@example.com/a@b", "https://example.com/a@b"),
        ("https://example.com/a@b", "https://example.com/a@b"),
        ("git@example.com:a/b", "git@example.com:a/b"),
    ];
    for (address, shown) in rows {
        let failing = Command::new("false", Duration::from_secs(60)).with([address]);
        let error = block_on(failing.output()).unwrap_err().to_string();
        assert_eq!(error, format!("`false {shown}` ended with exit status: 1"));
    }
}
