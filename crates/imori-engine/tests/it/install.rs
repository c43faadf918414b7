//! Installation of packs: from a folder, a repository, an archive and an index.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use imori_engine::environments::environment::Environments;
use imori_engine::packs::install::{InstallError, Installed, Installer};
use imori_engine::packs::source::PackSource;

use crate::environment::block_on;
use crate::packs::{reader, sample};

struct Place {
    root: tempfile::TempDir,
    installer: Installer,
}

impl Place {
    fn new() -> Place {
        let root = tempfile::tempdir().unwrap();
        let environments = Environments {
            base_packages: Vec::new(),
            ..Environments::in_folder(root.path().join("virtualenvs"))
        };
        let installer = Installer::new(root.path().join("packs"), environments, reader());
        Place { root, installer }
    }

    fn install(&self, source: &str) -> Result<Installed, InstallError> {
        block_on(self.installer.install(&PackSource::parse(source)?))
    }

    /// What is in the folder of packs.
    fn packs(&self) -> Vec<String> {
        let entries = fs::read_dir(self.root.path().join("packs")).into_iter().flatten().flatten();
        let mut names: Vec<_> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
        names.sort_unstable();
        names
    }

    /// A folder with a pack of this version.
    fn pack(&self, version: &str) -> String {
        let folder = self.root.path().join("source");
        let _ = fs::remove_dir_all(&folder);
        write_pack(&folder, version);
        format!("file://{}", folder.display())
    }
}

fn write_pack(folder: &Path, version: &str) {
    fs::create_dir_all(folder.join("actions")).unwrap();
    let manifest = format!("name: demo\ndescription: d\nversion: {version}\nauthor: a\nemail: e\n");
    fs::write(folder.join("pack.yaml"), manifest).unwrap();
    fs::write(folder.join("actions/run.yaml"), "name: run\nrunner_type: noop\n").unwrap();
}

fn git(folder: &Path, arguments: &[&str]) {
    let identity = ["-c", "user.name=t", "-c", "user.email=t@t.invalid", "-c", "commit.gpgsign=false"];
    let status = Command::new("git").current_dir(folder).args(identity).args(arguments).status().unwrap();
    assert!(status.success(), "{arguments:?}");
}

/// A repository with versions 1.0.0 and 2.0.0 tagged, 3.0.0 on the branch `main`, and 4.0.0 on `next`.
fn repository(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    git(folder, &["init", "--quiet", "--initial-branch", "main"]);
    for version in ["1.0.0", "2.0.0", "3.0.0"] {
        write_pack(folder, version);
        git(folder, &["add", "."]);
        git(folder, &["commit", "--quiet", "-m", version]);
        if version != "3.0.0" {
            git(folder, &["tag", &format!("v{version}")]);
        }
    }
    git(folder, &["checkout", "--quiet", "-b", "next"]);
    write_pack(folder, "4.0.0");
    git(folder, &["commit", "--quiet", "-a", "-m", "4.0.0"]);
    git(folder, &["checkout", "--quiet", "main"]);
}

#[test]
fn pack_is_installed_replaced_and_uninstalled() {
    let place = Place::new();
    let installed = place.install(&place.pack("1.0.0")).unwrap();
    assert_eq!((installed.pack.manifest.version.as_str(), installed.replaced), ("1.0.0", None));
    assert!(installed.environment.python.exists());
    // What its user wrote into it is kept.
    fs::write(place.root.path().join("packs/demo/config.yaml"), "a: 1\n").unwrap();
    let installed = place.install(&place.pack("2.0.0")).unwrap();
    assert_eq!(
        (installed.pack.manifest.version.as_str(), installed.replaced.as_deref()),
        ("2.0.0", Some("1.0.0"))
    );
    assert!(place.root.path().join("packs/demo/config.yaml").exists());
    assert_eq!(place.packs(), ["demo"]);
    let uninstalled = block_on(place.installer.uninstall("demo")).unwrap();
    assert_eq!(uninstalled.actions, ["demo.run"]);
    assert_eq!(place.packs(), [""; 0]);
    assert!(!place.root.path().join("virtualenvs/demo").exists());
    for name in ["demo", "../packs", "", "none"] {
        assert!(
            matches!(block_on(place.installer.uninstall(name)), Err(InstallError::NotInstalled(_))),
            "{name}"
        );
    }
    assert!(matches!(block_on(place.installer.uninstall("core")), Err(InstallError::BuiltIn(_))));
}

#[test]
fn pack_for_another_version_is_installed_by_force() {
    let mut place = Place::new();
    let source = place.pack("1.0.0");
    let manifest = place.root.path().join("source/pack.yaml");
    let text = fs::read_to_string(&manifest).unwrap();
    for fitting in ["'>=3.0.0'", "'>3.8.0, <4'", "'>=2.9dev'"] {
        fs::write(&manifest, format!("{text}stackstorm_version: {fitting}\n")).unwrap();
        place.install(&source).unwrap();
    }
    fs::write(&manifest, format!("{text}stackstorm_version: '<3.0.0'\n")).unwrap();
    assert!(matches!(place.install(&source), Err(InstallError::OtherVersion { .. })));
    place.installer.takes_any_version = true;
    place.install(&source).unwrap();
}

#[test]
fn pack_that_is_refused_leaves_the_old_one_in_place() {
    let place = Place::new();
    place.install(&place.pack("1.0.0")).unwrap();
    let folder = place.root.path().join("source");
    let refused = |change: &dyn Fn(), expected: &str| {
        let source = place.pack("2.0.0");
        change();
        let error = place.install(&source).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert_eq!(place.packs(), ["demo"]);
        let there = reader().pack(&place.root.path().join("packs/demo")).unwrap();
        assert_eq!(there.manifest.version, "1.0.0");
    };
    refused(&|| fs::write(folder.join("pack.yaml"), "name: demo\n").unwrap(), "key `version` is missing");
    refused(&|| fs::remove_file(folder.join("pack.yaml")).unwrap(), "pack.yaml: cannot be read");
    refused(
        &|| std::os::unix::fs::symlink("/etc/passwd", folder.join("etc")).unwrap(),
        "link to an absolute path",
    );
    refused(&|| std::os::unix::fs::symlink("../..", folder.join("up")).unwrap(), "link out of its folder");
    let core = "name: core\ndescription: d\nversion: 9.0.0\nauthor: a\nemail: e\n";
    refused(&|| fs::write(folder.join("pack.yaml"), core).unwrap(), "pack `core` is built in");
    let for_another = || {
        let manifest = fs::read_to_string(folder.join("pack.yaml")).unwrap();
        fs::write(folder.join("pack.yaml"), manifest + "stackstorm_version: '>=1.6.0, <2.2.0'\n").unwrap();
    };
    refused(&for_another, "pack `demo` is for StackStorm >=1.6.0, <2.2.0, and this is the API of 3.9.0");
    let requirements = || fs::write(folder.join("requirements.txt"), "./missing_folder\n").unwrap();
    refused(&requirements, "requirements.txt: the requirements of pack `demo` cannot be installed");
    let two = "name: demo\ndescription: d\nversion: 2.0.0\nauthor: a\nemail: e\npython_versions: ['2']\n";
    refused(&|| fs::write(folder.join("pack.yaml"), two).unwrap(), "Python 2 only");
}

#[test]
fn revision_of_a_repository_is_a_branch_a_tag_or_a_commit() {
    let place = Place::new();
    let folder = place.root.path().join("repository");
    repository(&folder);
    let output = Command::new("git").current_dir(&folder).args(["rev-parse", "v1.0.0"]).output().unwrap();
    let commit = String::from_utf8(output.stdout).unwrap().trim().to_owned();
    let rows = [
        ("", "3.0.0"),
        ("=next", "4.0.0"),
        ("=v2.0.0", "2.0.0"),
        ("=2.0.0", "2.0.0"),
        (&format!("={commit}"), "1.0.0"),
    ];
    for (revision, version) in rows {
        let installed = place.install(&format!("file://{}{revision}", folder.display())).unwrap();
        assert_eq!(installed.pack.manifest.version, version, "{revision}");
    }
    let error = place.install(&format!("{}=9.0.0", folder.display())).unwrap_err().to_string();
    assert!(error.ends_with("it has the versions 1.0.0, 2.0.0"), "{error}");
    let error = place.install("file:///no/such/folder").unwrap_err().to_string();
    assert_eq!(error, "`/no/such/folder` is no folder; give the path of a pack");
}

#[test]
fn archive_is_unpacked_without_the_folder_around_it() {
    let place = Place::new();
    let folder = place.root.path().join("demo-1.0.0");
    write_pack(&folder, "1.0.0");
    let archive = place.root.path().join("demo.tar.gz");
    let status = Command::new("tar")
        .current_dir(place.root.path())
        .arg("-czf")
        .arg(&archive)
        .arg("demo-1.0.0")
        .status();
    assert!(status.unwrap().success());
    let installed = place.install(&archive.display().to_string()).unwrap();
    assert_eq!(installed.pack.actions.len(), 1);
    assert_eq!(place.packs(), ["demo"]);
}

#[test]
fn name_is_looked_up_in_the_indexes() {
    let mut place = Place::new();
    let folder = place.root.path().join("repository");
    repository(&folder);
    let index = format!(
        r#"{{"packs": {{"demo": {{"repo_url": "file://{}", "version": "2.0.0"}}}}}}"#,
        folder.display()
    );
    let asked = Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = asked.clone();
    place.installer.indexes = vec!["https://index.invalid/v1/index.json".to_owned()];
    place.installer.fetch = Arc::new(move |address| {
        seen.lock().unwrap().push(address.to_owned());
        Ok(index.clone().into_bytes())
    });
    assert_eq!(place.install("demo").unwrap().pack.manifest.version, "2.0.0");
    assert_eq!(place.install("demo=1.0.0").unwrap().pack.manifest.version, "1.0.0");
    assert_eq!(asked.lock().unwrap()[0], "https://index.invalid/v1/index.json");
    let error = place.install("none").unwrap_err().to_string();
    assert!(error.starts_with("pack `none` is in no index"), "{error}");
    place.installer.fetch = Arc::new(|_| Err("no route".to_owned()));
    let error = place.install("demo").unwrap_err().to_string();
    assert_eq!(error, "the index at `https://index.invalid/v1/index.json` cannot be fetched: no route");
}

#[test]
fn folder_is_right_again_after_an_end_in_the_middle() {
    let place = Place::new();
    let packs = place.root.path().join("packs");
    write_pack(&packs.join(".replaced-lost"), "1.0.0");
    write_pack(&packs.join(".replaced-kept"), "1.0.0");
    write_pack(&packs.join("kept"), "2.0.0");
    write_pack(&packs.join(".staging-1"), "3.0.0");
    place.installer.recover().unwrap();
    assert_eq!(place.packs(), ["kept", "lost"]);
    assert_eq!(reader().pack(&packs.join("kept")).unwrap().manifest.version, "2.0.0");
}

#[test]
fn sample_pack_is_installed_whole() {
    let place = Place::new();
    let folder = place.root.path().join("copy");
    let status = Command::new("cp").arg("-r").arg(sample("surfaces")).arg(&folder).status().unwrap();
    assert!(status.success());
    // No network in tests.
    fs::remove_file(folder.join("requirements.txt")).unwrap();
    let installed = place.install(&folder.display().to_string()).unwrap();
    assert_eq!(installed.pack.manifest.reference, "surfaces");
    assert_eq!(installed.pack.problems, []);
    let script = installed.pack.folder.join("actions/scripts/hello.sh");
    assert_eq!(
        fs::metadata(script).unwrap().len(),
        fs::metadata(sample("surfaces/actions/scripts/hello.sh")).unwrap().len()
    );
}
