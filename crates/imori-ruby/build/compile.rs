//! Calls the C compiler, for several files at once.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

/// Definitions of both stages: the bytecode of `mrbc` has to mean the same in the library.
const DEFINES: &[(&str, &str)] = &[
    ("MRB_UTF8_STRING", "1"),
    // A float keeps all its bits.
    ("MRB_WORDBOX_NO_FLOAT_TRUNCATE", "1"),
    // Whether a pointer is into read-only data cannot be told from the symbols of an executable of unknown linker.
    ("MRB_NO_DEFAULT_RO_DATA_P", "1"),
];

/// Definitions of the library that is linked into the broker.
const LIBRARY_DEFINES: &[(&str, &str)] = &[
    // The watchdog interrupts a script by this hook.
    ("MRB_USE_DEBUG_HOOK", "1"),
    // Scripts print nothing, and an error of a script is returned instead.
    ("MRB_NO_STDIO", "1"),
    // `STRING_BYTES_MAX` and `ARRAY_ITEMS_MAX` of src/limits.rs.
    ("MRB_STR_LENGTH_MAX", "16777216"),
    ("MRB_ARY_LENGTH_MAX", "1048576"),
    ("MRB_STACK_EXTEND_DOUBLING", "1"),
    // The driver of mruby's own tests is a program elsewhere.
    ("main", "mrbtest_main"),
];

/// A C compiler with the options of one stage.
pub(crate) struct Compiler {
    build: cc::Build,
}

impl Compiler {
    /// The compiler for programs that run during the build.
    pub(crate) fn host(mruby: &Path) -> Self {
        let host = env::var("HOST").expect("Cargo sets HOST");
        let mut build = base(mruby);
        // It runs for a moment, and needs no table of names.
        build.target(&host).host(&host).opt_level(0).define("MRB_NO_PRESYM", "1");
        Self { build }
    }

    /// The compiler for the library; `include` has the headers that presym.rs writes.
    pub(crate) fn target(mruby: &Path, include: &Path) -> Self {
        let mut build = base(mruby);
        build.include(include);
        // An interpreter without optimization would be most of the time of every test.
        build.opt_level(2);
        for (name, value) in LIBRARY_DEFINES {
            build.define(name, *value);
        }
        if let Some(sanitizers) = env::var("IMORI_MRUBY_SANITIZE").ok().filter(|names| !names.is_empty()) {
            let flag = format!("-fsanitize={sanitizers}");
            build.flag(&flag).flag("-fno-omit-frame-pointer").flag("-g");
            // rustc links without the compiler's own libraries, so that the runtime is named here.
            for argument in ["-Wl,--push-state,--no-as-needed", "-lasan", "-Wl,--pop-state"] {
                println!("cargo:rustc-link-arg={argument}");
            }
        }
        Self { build }
    }

    /// Compiles each file into an object in `folder`.
    pub(crate) fn objects(&self, files: &[PathBuf], folder: &Path) -> Vec<PathBuf> {
        fs::create_dir_all(folder).expect("OUT_DIR is writable");
        let tool = self.build.get_compiler();
        let object = |at: usize| {
            let stem = files[at].file_stem().expect("a C file has a name").to_string_lossy();
            folder.join(format!("{at}-{stem}.o"))
        };
        let next = AtomicUsize::new(0);
        let jobs = env::var("NUM_JOBS").ok().and_then(|jobs| jobs.parse().ok()).unwrap_or(1);
        thread::scope(|scope| {
            for _ in 0..jobs {
                scope.spawn(|| {
                    loop {
                        let at = next.fetch_add(1, Ordering::Relaxed);
                        let Some(file) = files.get(at) else { break };
                        run(tool.to_command().arg("-c").arg(file).arg("-o").arg(object(at)));
                    }
                });
            }
        });
        (0..files.len()).map(object).collect()
    }

    /// Links objects into a program.
    pub(crate) fn link(&self, objects: &[PathBuf], program: &Path) {
        run(self.build.get_compiler().to_command().args(objects).arg("-lm").arg("-o").arg(program));
    }

    /// Puts objects into a static library, and tells Cargo to link it.
    pub(crate) fn archive(&self, objects: &[PathBuf], name: &str) {
        let mut build = self.build.clone();
        for object in objects {
            build.object(object);
        }
        build.compile(name);
    }
}

fn base(mruby: &Path) -> cc::Build {
    let mut build = cc::Build::new();
    build.include(mruby.join("include")).std("gnu11").debug(false).warnings(false).cargo_warnings(false);
    for gem in ["mruby-time", "mruby-bigint"] {
        build.include(mruby.join("mrbgems").join(gem).join("include"));
    }
    for (name, value) in DEFINES {
        build.define(name, *value);
    }
    build
}

/// Runs a command to its end; panics with what it printed if it fails.
pub(crate) fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"));
    assert!(
        output.status.success(),
        "{command:?} failed with {}:\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr),
    );
}
