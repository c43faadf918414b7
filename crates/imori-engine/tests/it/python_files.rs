//! Files of Python actions: the sources of their host, and what they leave behind.

use std::fs;
use std::path::Path;

use imori_automation::value::Value;
use imori_engine::for_tests::{Output, Recorded, RecorderStop};
use imori_engine::limits::OUTPUT_BYTES_MAX;
use imori_engine::python::sources::write_sources;
use imori_engine::python::{PythonOutcome, PythonResult};

fn python_files(folder: &Path, below: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder.join(below)).unwrap() {
        let name = below.join(entry.unwrap().file_name());
        if folder.join(&name).is_dir() {
            python_files(folder, &name, found);
        } else if name.extension().is_some_and(|extension| extension == "py") {
            found.push(name.to_str().unwrap().to_owned());
        }
    }
}

#[test]
fn every_python_file_is_in_the_binary() {
    let folder = tempfile::tempdir().unwrap();
    let written = write_sources(folder.path()).unwrap();
    let in_tree = Path::new(env!("CARGO_MANIFEST_DIR")).join("python");
    let [mut found, mut listed] = [Vec::new(), Vec::new()];
    python_files(&in_tree, Path::new(""), &mut found);
    python_files(&written, Path::new(""), &mut listed);
    found.sort();
    listed.sort();
    assert_eq!(listed, found);
    for name in found {
        assert_eq!(fs::read(written.join(&name)).unwrap(), fs::read(in_tree.join(&name)).unwrap(), "{name}");
    }
}

#[test]
fn sources_are_written_once() {
    let folder = tempfile::tempdir().unwrap();
    let first = write_sources(folder.path()).unwrap();
    assert!(first.join("imori_host/zygote.py").is_file());
    fs::write(first.join("mark"), "").unwrap();
    assert_eq!(write_sources(folder.path()).unwrap(), first);
    assert!(first.join("mark").is_file());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn output_beyond_the_limit_is_counted_and_said_to_be_cut() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stdout");
    assert_eq!(Output::of_file(&path, OUTPUT_BYTES_MAX), Output::default());
    fs::write(&path, b"a\xff").unwrap();
    assert_eq!(Output::of_file(&path, OUTPUT_BYTES_MAX).text, "a\u{fffd}");
    fs::write(&path, b"xyz").unwrap();
    let output = Output::of_file(&path, 2);
    assert_eq!((output.text.as_str(), output.kept, output.bytes), ("xy", 2, 3));
    let whole = Output { text: String::from("x"), kept: 1, bytes: 1 };
    let over = Some(RecorderStop::Limit(2));
    for (stdout, stop, said) in [
        (&whole, None, None),
        (
            &output,
            None,
            Some(
                "`stdout` has 3 bytes, of which 2 are kept; print less, or write to a file and print its path",
            ),
        ),
        (
            &output,
            over,
            Some(
                "the action was stopped after more than 2 bytes of output: `stdout` has at least 3 bytes, of which 2 are kept; print less, or write to a file",
            ),
        ),
        (
            &whole,
            Some(RecorderStop::Fault),
            Some("the output could not be recorded to its end; look for room on the disk"),
        ),
    ] {
        let recorded = Recorded { stdout: stdout.clone(), stderr: Output::default(), stop };
        assert_eq!(recorded.cut().as_deref(), said);
    }
}

#[test]
fn a_result_file_counts_for_its_execution_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("result");
    let none = r#"{"kind":"result","execution_id":"a","exit_code":1}"#;
    let null = r#"{"kind":"result","execution_id":"a","exit_code":0,"status":true,"result":null}"#;
    let rows: [(&str, &str, Option<Option<Value>>); 5] = [
        (none, "a", Some(None)),
        (null, "a", Some(Some(Value::Null))),
        (null, "b", None),
        ("{", "a", None),
        ("", "a", None),
    ];
    assert_eq!(PythonResult::from_file(&path, "a"), None);
    for (text, execution, result) in rows {
        fs::write(&path, text).unwrap();
        assert_eq!(PythonResult::from_file(&path, execution).map(|found| found.result), result, "{text}");
    }
}

fn outcome(exit_code: Option<i32>, status: Option<bool>, is_timed_out: bool) -> PythonOutcome {
    PythonOutcome {
        exit_code,
        result: status.map(|_| Value::Int(1)),
        status,
        recorded: Recorded::default(),
        is_timed_out,
        timeout_s: 1.5,
    }
}

#[test]
fn status_and_exit_code_decide_the_state() {
    for (exit_code, status, is_timed_out, state) in [
        (Some(0), None, false, "succeeded"),
        (Some(0), Some(true), false, "succeeded"),
        (Some(0), Some(false), false, "failed"),
        (Some(1), Some(true), false, "failed"),
        (Some(1), None, false, "failed"),
        (Some(-11), None, false, "failed"),
        (None, None, false, "failed"),
        (Some(0), Some(true), true, "timeout"),
    ] {
        let outcome = outcome(exit_code, status, is_timed_out);
        assert_eq!(outcome.status().name(), state, "{exit_code:?} {status:?} {is_timed_out}");
    }
}

#[test]
fn output_has_the_keys_of_the_python_runner() {
    let kept = r#"{"stdout":"","stderr":"","exit_code":0,"result":1}"#;
    assert_eq!(Value::Map(outcome(Some(0), Some(true), false).output()).to_json(), kept);
    let late = r#"{"stdout":"","stderr":"","exit_code":-9,"result":"None","error":"Action failed to complete in 1.5 seconds"}"#;
    assert_eq!(Value::Map(outcome(Some(-15), None, true).output()).to_json(), late);
}
