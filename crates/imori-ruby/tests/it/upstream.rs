//! mruby's own tests, in our build of it: one VM a file.

use std::{
    fs,
    path::{Path, PathBuf},
    rc::Rc,
    time::Duration,
};

use imori_ruby::{Library, Limits, Step, Value, Vm};

/// Tests that fail here, by file and title, each with its cause.
const EXCEPTIONS: &[(&str, &str, &str)] = &[
    ("test/t/range.rb", "Range#last [", RANGE_EXT),
    ("test/t/range.rb", "Range#hash [", RANGE_EXT),
    (FIBER, ": Fiber#transfer =>", TRANSFER),
    (FIBER, "Transfer to self.", TRANSFER),
    (FIBER, "Resume transferred fiber", TRANSFER),
    (FIBER, "Root fiber transfer.", TRANSFER),
    (FIBER, "Break nested fiber with root fiber transfer", TRANSFER),
    (FIBER, "CRuby Fiber#transfer test.", TRANSFER),
];

const FIBER: &str = "mrbgems/mruby-fiber/test/fiber.rb";
const RANGE_EXT: &str =
    "mruby-range-ext raises for the end of an endless range; mruby tests its core without that gem";
const TRANSFER: &str = "the prelude removes Fiber#transfer, which could leave a run without ending it";

#[test]
fn upstream_tests_pass() {
    let source = Path::new(Vm::source_folder());
    let mut files = ruby_files(&source.join("test/t"));
    let mut gems: Vec<PathBuf> = folders(&source.join("mrbgems"));
    gems.sort();
    for gem in gems {
        files.extend(ruby_files(&gem.join("test")));
    }
    assert!(files.len() > 50, "{} files", files.len());
    let assert_rb = fs::read_to_string(source.join("test/assert.rb")).expect("the source has assert.rb");
    let mut complaints = Vec::new();
    let mut passed = 0;
    let mut used = Vec::new();
    for file in files {
        let name = file.strip_prefix(source).expect("the file is of the source").display().to_string();
        let (count, failures) = run_file(&assert_rb, &name, &file);
        passed += count;
        for failure in failures {
            match EXCEPTIONS.iter().position(|(file, title, _)| *file == name && failure.contains(title)) {
                Some(at) => used.push(at),
                None => complaints.push(format!("{name}: {failure}")),
            }
        }
    }
    for (at, (file, title, _)) in EXCEPTIONS.iter().enumerate() {
        if !used.contains(&at) {
            complaints.push(format!("{file}: `{title}` passes, take it from the exceptions"));
        }
    }
    assert!(
        complaints.is_empty(),
        "{} of mruby's own tests fail:\n{}",
        complaints.len(),
        complaints.join("\n")
    );
    assert!(passed > 1_000, "{passed} tests have passed");
}

/// Runs one file; returns how many of its tests pass, and the reports of those that do not.
fn run_file(assert_rb: &str, name: &str, file: &Path) -> (i64, Vec<String>) {
    let limits = Limits {
        slice_cpu: Duration::from_secs(20),
        run_cpu: Duration::from_secs(20),
        heap_bytes: 256 << 20,
        block_bytes: 128 << 20,
    };
    let vm = crate::vm(limits, Library::new());
    vm.define_test_helpers();
    let text = fs::read(file).unwrap_or_else(|error| panic!("{name}: {error}"));
    let gem = name.strip_prefix("mrbgems/").and_then(|rest| rest.split('/').next()).unwrap_or("mruby-test");
    let quiet = format!("module Kernel; def t_print(*); end; end; GEMNAME = '{gem}'");
    let report = "[$ok_test, $ko_test, $kill_test, $asserts]";
    let mut failures = Vec::new();
    for (file, text) in [("assert.rb", assert_rb.as_bytes()), ("quiet.rb", quiet.as_bytes()), (name, &text)] {
        match vm.compile(file, text) {
            Ok(script) => match vm.start(&script, Vec::new(), Rc::new(())) {
                Step::Done(_) => {}
                other => failures.push(format!("the file ends with {other:?}")),
            },
            Err(error) => failures.push(format!("the file does not compile: {error}")),
        }
    }
    let Ok(script) = vm.compile("report.rb", report) else { panic!("the report is Ruby") };
    match vm.start(&script, Vec::new(), Rc::new(())) {
        Step::Done(Value::Array(parts)) => match parts.as_slice() {
            [Value::Integer(passed), Value::Integer(_), Value::Integer(_), Value::Array(reports)] => {
                let reports =
                    reports.iter().filter_map(Value::text).filter(|report| !report.starts_with("Skip"));
                failures.extend(reports.map(str::to_owned));
                (*passed, failures)
            }
            other => panic!("{name}: {other:?}"),
        },
        other => {
            failures.push(format!("{other:?}"));
            (0, failures)
        }
    }
}

fn ruby_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "rb"))
        .collect();
    files.sort();
    files
}

fn folders(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
}
