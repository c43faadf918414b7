//! Finds the source of mruby and copies the parts that are built.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::gems;

/// The crate on crates.io that carries the source of mruby.
const CARRIER: &str = "mruby3-sys";

/// Returns the folder of mruby's source: `IMORI_MRUBY_SOURCE`, or the one in the crate that Cargo.lock pins.
pub(crate) fn folder() -> PathBuf {
    if let Some(folder) = env::var_os("IMORI_MRUBY_SOURCE") {
        let folder = PathBuf::from(folder);
        assert!(
            folder.join("include/mruby.h").is_file(),
            "IMORI_MRUBY_SOURCE is `{}`, which holds no `include/mruby.h`; name the top folder of mruby's source",
            folder.display(),
        );
        return folder;
    }
    let metadata = metadata(&["--offline"]).or_else(|_| metadata(&[])).unwrap_or_else(|said| {
        panic!("the source of mruby, crate `{CARRIER}`, is not here; run `cargo fetch --locked`, or name a source \
                folder of mruby 3.2 by IMORI_MRUBY_SOURCE. Cargo said: {said}")
    });
    metadata["packages"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|package| package["name"] == CARRIER)
        .and_then(|package| Path::new(package["manifest_path"].as_str()?).parent())
        .unwrap_or_else(|| panic!("Cargo.lock does not name the crate `{CARRIER}`; restore it"))
        .join("mruby")
}

/// Asks Cargo for the workspace's packages. Without `--offline` it downloads the ones that are not here.
fn metadata(options: &[&str]) -> Result<serde_json::Value, String> {
    let cargo = env::var_os("CARGO").expect("Cargo sets CARGO");
    let mut command = Command::new(cargo);
    command.args(["metadata", "--format-version", "1", "--locked"]).args(options);
    command
        .arg("--manifest-path")
        .arg(Path::new(&env::var_os("CARGO_MANIFEST_DIR").expect("Cargo sets it")).join("Cargo.toml"));
    let output = command.output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())
}

/// Copies core, compiler, tests and the chosen gems into `to`, where patches are applied.
pub(crate) fn copy(from: &Path, to: &Path) {
    if to.exists() {
        fs::remove_dir_all(to).expect("OUT_DIR is writable");
    }
    for part in ["include", "src", "mrblib", "test"] {
        copy_folder(&from.join(part), &to.join(part));
    }
    for gem in gems::GEMS.iter().chain(&["mruby-compiler", "mruby-bin-mrbc", "mruby-test"]) {
        let gem = Path::new("mrbgems").join(gem);
        copy_folder(&from.join(&gem), &to.join(&gem));
    }
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("OUT_DIR is writable");
    let entries =
        fs::read_dir(from).unwrap_or_else(|error| panic!("cannot read `{}`: {error}", from.display()));
    for entry in entries {
        let path = entry.expect("the folder stays readable").path();
        let target = to.join(path.file_name().expect("an entry has a name"));
        if path.is_dir() {
            copy_folder(&path, &target);
        } else {
            fs::copy(&path, &target)
                .unwrap_or_else(|error| panic!("cannot copy `{}`: {error}", path.display()));
        }
    }
}

/// Returns the files of a folder and of those in it.
pub(crate) fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let paths = entries.map(|entry| entry.expect("the folder stays readable").path());
    paths.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

/// Returns the C files of a folder, in the order of their names.
pub(crate) fn c_files(folder: &Path) -> Vec<PathBuf> {
    files_with(folder, "c")
}

/// Returns the files of a folder with this extension, in the order of their names; none if there is no such folder.
pub(crate) fn files_with(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("the folder stays readable").path())
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .collect();
    files.sort();
    files
}
