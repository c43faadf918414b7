//! Environments: what a pack's Python runs in. Each is a new folder that a link of the pack's name is swapped to, so
//! that a pack has a whole environment at any time, and scripts in it keep their paths. The packages that all have are
//! installed once, and each environment begins as a copy of that.

use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ring::digest::{Context, SHA256};
use tokio::sync::{Mutex, OnceCell};
use tokio::task::spawn_blocking;

use super::command::{Command, CommandError};
use super::copy::copy;
use crate::limits::{DOCUMENT_BYTES_MAX, ENVIRONMENT_TIME_MAX};

/// Packages that packs import and never declare, because StackStorm has them.
pub const BASE_PACKAGES: [&str; 6] =
    ["six>=1.9.0,<2.0", "eventlet", "requests", "st2client", "PyYAML", "Jinja2"];

/// Held while an environment is built: builds of one pack share a folder, and each may use all processors.
static BUILDING: Mutex<()> = Mutex::const_new(());

/// What the folders of base packages begin with; no pack has such a name.
const BASE_PREFIX: &str = "+base-";

/// The file of an environment that says what it was built from.
const STAMP_FILE: &str = "imori.stamp";

/// Builds environments in a folder.
#[derive(Debug, Clone)]
pub struct Environments {
    /// The folder; each environment is a link in it with the name of its pack.
    pub folder: PathBuf,
    /// The Python to build with, by path or by a name on the PATH. `python3` if none.
    pub python: Option<PathBuf>,
    /// Packages that every environment has.
    pub base_packages: Vec<String>,
    /// A folder of wheels to install from, without any network.
    pub wheels: Option<PathBuf>,
    /// The version of the Python, which the first build asks for.
    pub version: Arc<OnceCell<String>>,
}

/// An environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Environment {
    /// Its folder.
    pub folder: PathBuf,
    /// Its Python.
    pub python: PathBuf,
    /// Whether it was built now.
    pub is_new: bool,
}

/// Why an environment cannot be built. The one before it stays.
#[derive(Debug)]
pub enum EnvironmentError {
    /// The pack runs with Python 2 only.
    Python2 {
        /// The pack.
        pack: String,
    },
    /// A command failed.
    Command {
        /// The pack.
        pack: String,
        /// The file of requirements that was installed, if it was one.
        file: Option<PathBuf>,
        /// What the command says.
        error: CommandError,
    },
    /// A file cannot be read or written.
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

impl fmt::Display for EnvironmentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EnvironmentError::Python2 { pack } => {
                write!(f, "pack `{pack}` runs with Python 2 only; look for a version of it for Python 3")
            }
            EnvironmentError::Command { pack, file: Some(file), error } => {
                write!(
                    f,
                    "{}: the requirements of pack `{pack}` cannot be installed: {error}",
                    file.display()
                )
            }
            EnvironmentError::Command { pack, file: None, error } => {
                write!(f, "the environment of pack `{pack}` cannot be built: {error}")
            }
            EnvironmentError::Io { path, error } => write!(f, "`{}`: {error}", path.display()),
        }
    }
}

impl std::error::Error for EnvironmentError {}

impl Environments {
    /// Environments in this folder, with the Python that is on the PATH.
    pub fn in_folder(folder: impl Into<PathBuf>) -> Environments {
        Environments {
            folder: folder.into(),
            python: None,
            base_packages: BASE_PACKAGES.iter().map(|package| (*package).to_owned()).collect(),
            wheels: None,
            version: Arc::default(),
        }
    }

    /// The environment of a pack, if it has one.
    pub fn of(&self, pack: &str) -> Option<Environment> {
        let folder = self.folder.join(pack).canonicalize().ok()?;
        let python = folder.join("bin/python");
        python.exists().then_some(Environment { folder, python, is_new: false })
    }

    /// Builds the environment of a pack in `pack_folder`, unless the one that it has was built from the same
    /// requirements, Python and base packages. `python_versions` are the manifest's.
    ///
    /// # Errors
    /// Says which file and what `pip` said; the environment stays as it was.
    pub async fn build(
        &self,
        pack: &str,
        pack_folder: &Path,
        python_versions: &[String],
    ) -> Result<Environment, EnvironmentError> {
        if !python_versions.is_empty() && !python_versions.iter().any(|version| version == "3") {
            return Err(EnvironmentError::Python2 { pack: pack.to_owned() });
        }
        let python = self.python.clone().unwrap_or_else(|| PathBuf::from("python3"));
        let version = self.version.get_or_try_init(|| version_of(&python)).await;
        let version = version.map_err(|error| failed(pack, None, error))?;
        let stamp = self.stamp(version, Some(pack_folder));
        if let Some(environment) = self.built_from(pack, &stamp) {
            return Ok(environment);
        }
        let _building = BUILDING.lock().await;
        // Another action or sensor of the pack may have built it meanwhile.
        if let Some(environment) = self.built_from(pack, &stamp) {
            return Ok(environment);
        }
        let io = |error| EnvironmentError::Io { path: self.folder.clone(), error };
        fs::create_dir_all(&self.folder).map_err(io)?;
        let folder = self.folder.canonicalize().map_err(io)?;
        let new = Unfinished(folder.join(format!(".{pack}-{}", stamp.get(..16).unwrap_or(&stamp))));
        removed(&new.0)?;
        self.fill(pack, &new.0, &python, pack_folder).await?;
        let stamp_file = new.0.join(STAMP_FILE);
        fs::write(&stamp_file, &stamp).map_err(|error| EnvironmentError::Io { path: stamp_file, error })?;
        let folder = new.finished();
        self.swap(pack, &folder)
            .map_err(|error| EnvironmentError::Io { path: self.folder.join(pack), error })?;
        Ok(Environment { python: folder.join("bin/python"), folder, is_new: true })
    }

    /// The environment of a pack, if it was built from this.
    fn built_from(&self, pack: &str, stamp: &str) -> Option<Environment> {
        let is_same = |environment: &Environment| {
            fs::read_to_string(environment.folder.join(STAMP_FILE)).is_ok_and(|built| built == stamp)
        };
        self.of(pack).filter(is_same)
    }

    /// Removes the environment of a pack with all that was built for it.
    ///
    /// # Errors
    /// A file cannot be removed.
    pub fn remove(&self, pack: &str) -> Result<(), EnvironmentError> {
        removed(&self.folder.join(pack))?;
        self.built(pack).iter().try_for_each(|folder| removed(folder))
    }

    /// Makes the environment in a folder and installs into it.
    async fn fill(
        &self,
        pack: &str,
        folder: &Path,
        python: &Path,
        pack_folder: &Path,
    ) -> Result<(), EnvironmentError> {
        let requirements = pack_folder.join("requirements.txt");
        if self.base_packages.is_empty() && !requirements.is_file() {
            // Where nothing is to be installed, `pip` would take most of the time.
            let create = Command::new(python, ENVIRONMENT_TIME_MAX).with(["-m", "venv", "--without-pip"]);
            create.with([folder]).output().await.map_err(|error| failed(pack, None, error))?;
            return Ok(());
        }
        let base = self.base(pack, folder.parent().unwrap_or(&self.folder), python).await?;
        let to = folder.to_owned();
        let copied = spawn_blocking(move || copy(&base, &to)).await.map_err(io::Error::other).flatten();
        copied.map_err(|error| EnvironmentError::Io { path: folder.to_owned(), error })?;
        if requirements.is_file() {
            // A requirement may name a file relative to the pack.
            let command = self.installing(folder).with(["-r"]).with([&requirements]).in_folder(pack_folder);
            command.output().await.map_err(|error| failed(pack, Some(requirements), error))?;
        }
        Ok(())
    }

    /// An environment with the base packages alone, which is made for the first pack, and again when they change.
    async fn base(&self, pack: &str, folder: &Path, python: &Path) -> Result<PathBuf, EnvironmentError> {
        let stamp = self.stamp(self.version.get().map_or("", String::as_str), None);
        let base = folder.join(format!("{BASE_PREFIX}{}", stamp.get(..16).unwrap_or(&stamp)));
        if base.join(STAMP_FILE).exists() {
            return Ok(base);
        }
        for old in self.built_with(BASE_PREFIX) {
            removed(&old)?;
        }
        let new = Unfinished(base);
        let create = Command::new(python, ENVIRONMENT_TIME_MAX).with(["-m", "venv"]).with([&new.0]);
        create.output().await.map_err(|error| failed(pack, None, error))?;
        if !self.base_packages.is_empty() {
            let command = self.installing(&new.0).with(["--"]).with(&self.base_packages);
            command.output().await.map_err(|error| failed(pack, None, error))?;
        }
        let stamp_file = new.0.join(STAMP_FILE);
        fs::write(&stamp_file, &stamp).map_err(|error| EnvironmentError::Io { path: stamp_file, error })?;
        Ok(new.finished())
    }

    fn installing(&self, folder: &Path) -> Command {
        let python = folder.join("bin/python");
        let arguments =
            ["-m", "pip", "install", "--quiet", "--no-compile", "--disable-pip-version-check", "--no-input"];
        let command = Command::new(python, ENVIRONMENT_TIME_MAX).with(arguments);
        match &self.wheels {
            Some(wheels) => command.with(["--no-index", "--find-links"]).with([wheels]),
            None => command,
        }
    }

    /// What an environment is built from, as a hash; without a pack, what the base is built from.
    fn stamp(&self, version: &str, pack_folder: Option<&Path>) -> String {
        let mut context = Context::new(&SHA256);
        let mut add = |part: &[u8]| {
            context.update(&(part.len() as u64).to_be_bytes());
            context.update(part);
        };
        add(version.as_bytes());
        self.base_packages.iter().for_each(|package| add(package.as_bytes()));
        // `requirements.txt` may include others of its kind.
        let entries = pack_folder.map(fs::read_dir).into_iter().flatten().flatten().flatten();
        let mut files: Vec<_> =
            entries.map(|entry| entry.path()).filter(|path| is_requirements(path)).collect();
        files.sort_unstable();
        for file in files {
            add(file.file_name().unwrap_or_default().as_encoded_bytes());
            add(read_bounded(&file).as_bytes());
        }
        context.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Points the pack's link to a folder, and removes what it pointed to before the last one: an action that runs in
    /// that still needs it.
    fn swap(&self, pack: &str, folder: &Path) -> io::Result<()> {
        let link = self.folder.join(pack);
        let before = link.canonicalize().ok();
        let next = self.folder.join(format!(".{pack}.next"));
        let _ = fs::remove_file(&next);
        let name = folder.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        symlink(name, &next)?;
        if link.symlink_metadata().is_ok_and(|metadata| metadata.is_dir()) {
            fs::remove_dir_all(&link)?;
        }
        fs::rename(&next, &link)?;
        let current = folder.canonicalize().ok();
        for old in self.built(pack) {
            let target = old.canonicalize().ok();
            if target != before && target != current {
                let _ = fs::remove_dir_all(old);
            }
        }
        Ok(())
    }

    /// All folders that were built for a pack.
    fn built(&self, pack: &str) -> Vec<PathBuf> {
        self.built_with(&format!(".{pack}-"))
    }

    /// The folders whose names begin with this.
    fn built_with(&self, prefix: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let is_built = |path: &PathBuf| {
            path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(prefix))
        };
        entries.map(|entry| entry.path()).filter(is_built).collect()
    }
}

/// The version of a Python and the path of its program.
async fn version_of(python: &Path) -> Result<String, CommandError> {
    let script = ["-c", "import sys; print(sys.version, sys.executable)"];
    Command::new(python, ENVIRONMENT_TIME_MAX).with(script).output().await
}

/// A folder that is removed unless it is finished.
struct Unfinished(PathBuf);

impl Unfinished {
    fn finished(mut self) -> PathBuf {
        std::mem::take(&mut self.0)
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.0.as_os_str().is_empty() {
            let _ = fs::remove_dir_all(&self.0);
        }
    }
}

fn failed(pack: &str, file: Option<PathBuf>, error: CommandError) -> EnvironmentError {
    EnvironmentError::Command { pack: pack.to_owned(), file, error }
}

/// Removes a folder or a link that may not be there.
fn removed(path: &Path) -> Result<(), EnvironmentError> {
    let removed = match path.symlink_metadata() {
        Err(_) => Ok(()),
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
    };
    removed.map_err(|error| EnvironmentError::Io { path: path.to_owned(), error })
}

fn is_requirements(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.ends_with(".txt") && (name.contains("requirements") || name.contains("constraints"))
}

fn read_bounded(path: &Path) -> String {
    use std::io::Read as _;
    let mut text = Vec::new();
    let read = fs::File::open(path).and_then(|file| file.take(DOCUMENT_BYTES_MAX).read_to_end(&mut text));
    read.map(|_| String::from_utf8_lossy(&text).into_owned()).unwrap_or_default()
}
