//! Environments: built from wheels of a folder, without a network.

use std::fs;
use std::path::Path;
use std::process::Command;

use imori_engine::environments::environment::{Environment, EnvironmentError, Environments};

/// Makes a wheel of a package with one module that holds its version.
const WHEEL: &str = r#"
import sys, zipfile
folder, name, version = sys.argv[1:]
info = f"{name}-{version}.dist-info"
with zipfile.ZipFile(f"{folder}/{name}-{version}-py3-none-any.whl", "w") as wheel:
    wheel.writestr(f"{name}.py", f"VERSION = '{version}'\n")
    wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    wheel.writestr(f"{info}/RECORD", "")
"#;

pub(crate) fn wheel(folder: &Path, name: &str, version: &str) {
    let status =
        Command::new("python3").args(["-c", WHEEL]).arg(folder).args([name, version]).status().unwrap();
    assert!(status.success());
}

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

fn version_of(environment: &Environment, name: &str) -> String {
    let script = format!("import {name}; print({name}.VERSION)");
    let output = Command::new(&environment.python).args(["-c", &script]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn environment_is_built_anew_when_its_requirements_change_and_kept_when_that_fails() {
    let root = tempfile::tempdir().unwrap();
    let (wheels, pack) = (root.path().join("wheels"), root.path().join("pack"));
    fs::create_dir_all(&wheels).unwrap();
    fs::create_dir_all(&pack).unwrap();
    wheel(&wheels, "imori_base", "1.0");
    wheel(&wheels, "imori_wanted", "1.0");
    wheel(&wheels, "imori_wanted", "2.0");
    let environments = Environments {
        base_packages: vec!["imori_base".to_owned()],
        wheels: Some(wheels),
        ..Environments::in_folder(root.path().join("virtualenvs"))
    };
    let build = || block_on(environments.build("demo", &pack, &["3".to_owned()]));
    let requirements = |text: &str| fs::write(pack.join("requirements.txt"), text).unwrap();

    requirements("imori_wanted==1.0\n");
    let first = build().unwrap();
    assert!(first.is_new);
    assert_eq!(version_of(&first, "imori_wanted"), "1.0");
    assert_eq!(version_of(&first, "imori_base"), "1.0");
    assert!(!build().unwrap().is_new, "nothing changed");

    requirements("imori_wanted==2.0\n");
    let second = build().unwrap();
    assert_eq!(version_of(&environments.of("demo").unwrap(), "imori_wanted"), "2.0");
    // An action that runs in the one before may go on.
    assert_eq!(version_of(&first, "imori_wanted"), "1.0");

    requirements("imori_wanted==2.0\nimori_missing\n");
    let error = build().unwrap_err().to_string();
    assert!(error.starts_with(&pack.join("requirements.txt").display().to_string()), "{error}");
    assert!(error.contains("imori_missing") || error.contains("imori-missing"), "{error}");
    assert_eq!(environments.of("demo").unwrap().folder, second.folder);

    requirements("");
    build().unwrap();
    assert!(!first.folder.exists() && second.folder.exists());
    environments.remove("demo").unwrap();
    // The base packages stay for the next pack.
    assert_eq!(fs::read_dir(root.path().join("virtualenvs")).unwrap().count(), 1);
    assert_eq!(environments.of("demo"), None);
}

#[test]
fn pack_of_python_2_has_no_environment() {
    let root = tempfile::tempdir().unwrap();
    let environments = Environments::in_folder(root.path());
    let error = block_on(environments.build("old", root.path(), &["2".to_owned()])).unwrap_err();
    assert!(matches!(error, EnvironmentError::Python2 { .. }));
}
