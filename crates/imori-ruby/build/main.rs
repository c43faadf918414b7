//! Builds mruby and its shim into one static library, with nothing but a C compiler.
//!
//! mruby's own build needs Ruby, because part of mruby's library is written in Ruby and has to become bytecode first.
//! Here that takes two stages: the first builds the compiler `mrbc` for this machine, the second compiles the Ruby parts
//! with it and everything again for the target.
#![allow(clippy::print_stdout, clippy::panic, reason = "a build script tells Cargo by printing and failing")]

mod compile;
mod gems;
mod patches;
mod presym;
mod source;

use std::{
    env,
    path::{Path, PathBuf},
};

use crate::compile::{Compiler, run};

fn main() {
    for input in ["build", "c"] {
        println!("cargo:rerun-if-changed={input}");
    }
    for variable in ["IMORI_MRUBY_SOURCE", "IMORI_MRUBY_SANITIZE"] {
        println!("cargo:rerun-if-env-changed={variable}");
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("Cargo sets OUT_DIR"));
    let original = source::folder();
    let mruby = out.join("mruby");
    source::copy(&original, &mruby);
    patches::apply(&mruby);
    println!("cargo:rustc-env=IMORI_MRUBY_FOLDER={}", mruby.display());

    let mrbc = build_mrbc(&out, &mruby);
    let generated = generate(&out, &mruby, &mrbc);
    build_library(&out, &mruby, &generated);
}

/// Builds `mrbc`, the compiler from Ruby text to bytecode, for the machine that builds.
fn build_mrbc(out: &Path, mruby: &Path) -> PathBuf {
    let compiler = Compiler::host(mruby);
    let mut files = source::c_files(&mruby.join("src"));
    files.extend(compiler_files(mruby));
    files.extend(source::c_files(&mruby.join("mrbgems/mruby-bin-mrbc/tools/mrbc")));
    let objects = compiler.objects(&files, &out.join("stage1"));
    let mrbc = out.join("mrbc");
    compiler.link(&objects, &mrbc);
    mrbc
}

/// Writes the C files that hold the bytecode of the Ruby parts and the table of gems; returns them.
fn generate(out: &Path, mruby: &Path, mrbc: &Path) -> Vec<PathBuf> {
    let folder = out.join("generated");
    std::fs::create_dir_all(&folder).expect("OUT_DIR is writable");
    let mut files = Vec::new();
    let mut bytecode = |symbol: &str, ruby: &[PathBuf]| {
        let file = folder.join(format!("{symbol}.c"));
        run(std::process::Command::new(mrbc).arg(format!("-B{symbol}")).arg("-o").arg(&file).args(ruby));
        files.push(file);
    };
    bytecode("mrblib_irep", &source::files_with(&mruby.join("mrblib"), "rb"));
    for gem in gems::GEMS {
        let ruby = source::files_with(&mruby.join(format!("mrbgems/{gem}/mrblib")), "rb");
        if !ruby.is_empty() {
            bytecode(&gems::bytecode_symbol(gem), &ruby);
        }
    }
    let table = folder.join("gems.c");
    std::fs::write(&table, gems::table(mruby)).expect("OUT_DIR is writable");
    files.push(table);
    files
}

/// Compiles mruby for the target, with the bytecode and the shim, into the library that the crate links.
fn build_library(out: &Path, mruby: &Path, generated: &[PathBuf]) {
    let include = out.join("include");
    presym::write_headers(&["include", "src", "mrbgems"].map(|folder| mruby.join(folder)), &include);
    let compiler = Compiler::target(mruby, &include);
    let mut files = source::c_files(&mruby.join("src"));
    files.extend(compiler_files(mruby));
    for gem in gems::GEMS {
        files.extend(source::c_files(&mruby.join(format!("mrbgems/{gem}/src"))));
    }
    files.extend(generated.iter().cloned());
    files.extend(source::c_files(Path::new("c")));
    // mruby's own tests need these, whose driver is a program elsewhere.
    for helper in [
        "mruby-test/vformat.c",
        "mruby-test/driver.c",
        "mruby-proc-ext/test/proc.c",
        "mruby-error/test/exception.c",
    ] {
        files.push(mruby.join("mrbgems").join(helper));
    }
    let objects = compiler.objects(&files, &out.join("stage2"));
    compiler.archive(&objects, "imori_mruby");
    // musl's libc has the mathematics, and a linker that looks for more finds that of glibc, which does not fit.
    if env::var("CARGO_CFG_TARGET_ENV").as_deref() != Ok("musl") {
        println!("cargo:rustc-link-lib=m");
    }
}

/// The compiler's own files: the parser includes `lex.def`, and `y.tab.c` is generated already.
fn compiler_files(mruby: &Path) -> Vec<PathBuf> {
    ["codegen.c", "y.tab.c"].map(|file| mruby.join("mrbgems/mruby-compiler/core").join(file)).to_vec()
}
