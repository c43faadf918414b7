//! Every fuzz target for a second, built as the tests are: without coverage, so that inputs are random combinations of
//! the words of its dictionary. `make fuzz` runs them with coverage, and with the faults that are planted in them.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;

const PROGRAM: &str = env!("CARGO_BIN_EXE_imori-fuzz");

/// Targets that run at once.
const AT_ONCE: usize = 2;

#[test]
fn no_target_finds_a_fault_in_a_second() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    fs::create_dir_all(folder.join("artifacts")).unwrap();
    let listed = String::from_utf8(Command::new(PROGRAM).output().unwrap().stdout).unwrap();
    let targets: Vec<&str> = listed.lines().collect();
    assert!(targets.len() > 20);
    for some in targets.chunks(AT_ONCE) {
        thread::scope(|scope| some.iter().for_each(|target| drop(scope.spawn(|| run(folder, target)))));
    }
}

/// Runs a target; panics with the end of its output if it found a fault.
fn run(folder: &Path, target: &str) {
    let mut command = Command::new(PROGRAM);
    command.env("IMORI_FUZZ_TARGET", target).current_dir(folder);
    command.args(["-max_len=1024", "-max_total_time=1", "-artifact_prefix=artifacts/"]);
    let dictionary = format!("{}.dict", target.split('_').next().unwrap_or_default());
    if folder.join(&dictionary).exists() {
        command.arg(format!("-dict={dictionary}"));
    }
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    let end: Vec<&str> = text.lines().rev().take(20).collect();
    assert!(output.status.success(), "{target}: {}", end.into_iter().rev().collect::<Vec<_>>().join("\n"));
    assert!(text.contains("Done "), "{target} did not run: {text}");
}
