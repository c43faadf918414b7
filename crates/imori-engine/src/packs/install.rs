//! Installation: fetches a pack beside the others, checks it, builds its environment and moves it into place. Until
//! then the pack that was there stays; when anything fails it stays for good.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use semver::{Version, VersionReq};
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;

use super::built_in::BUILT_IN_PACKS;
use super::document::{PackProblem, path_inside};
use super::pack::{Pack, is_pack_reference, is_version};
use super::read::{PackReader, pack_files};
use super::source::{PackIndex, PackSource, SourceError};
use crate::environments::command::{Command, CommandError, without_password};
use crate::environments::environment::{Environment, EnvironmentError, Environments};
use crate::limits::FETCH_TIME_MAX;

/// What a pack's folder is called while it is fetched.
const STAGING_PREFIX: &str = ".staging-";

/// What the folder of the pack before is called until the new one is in place.
const REPLACED_PREFIX: &str = ".replaced-";

/// The version of StackStorm whose API and packs the engine knows.
const STACKSTORM_VERSION: &str = "3.9.0";

/// Fetches the text at an address of an index. The engine brings its HTTP client.
pub type IndexFetch = Arc<dyn Fn(&str) -> Result<Vec<u8>, String> + Send + Sync>;

/// Installs packs into a folder, one at a time.
#[derive(Clone)]
pub struct Installer {
    /// The folder of packs.
    pub packs: PathBuf,
    /// The environments of packs.
    pub environments: Environments,
    /// Reads a pack that was fetched.
    pub reader: PackReader,
    /// Addresses of indexes; an earlier index takes precedence.
    pub indexes: Vec<String>,
    /// Fetches an index.
    pub fetch: IndexFetch,
    /// Whether packs are installed that ask for another version of StackStorm.
    pub takes_any_version: bool,
    turn: Arc<Mutex<()>>,
}

/// What was installed.
#[derive(Debug)]
pub struct Installed {
    /// The pack as it is in place.
    pub pack: Pack,
    /// The version that was there before.
    pub replaced: Option<String>,
    /// Its environment.
    pub environment: Environment,
}

/// What was uninstalled, to unregister.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Uninstalled {
    /// The pack.
    pub pack: String,
    /// References of its actions.
    pub actions: Vec<String>,
    /// References of its sensors.
    pub sensors: Vec<String>,
    /// References of its trigger types.
    pub trigger_types: Vec<String>,
    /// References of its rules.
    pub rules: Vec<String>,
    /// References of its aliases.
    pub aliases: Vec<String>,
    /// References of its policies.
    pub policies: Vec<String>,
}

/// Why a pack was not installed or uninstalled. What was there is as before.
#[derive(Debug)]
pub enum InstallError {
    /// The source is wrong, or in no index.
    Source(SourceError),
    /// An index cannot be fetched.
    Index {
        /// Its address.
        address: String,
        /// Why.
        reason: String,
    },
    /// The pack cannot be fetched.
    Fetch(CommandError),
    /// The repository has no such revision.
    NoRevision {
        /// The revision.
        revision: String,
        /// The address.
        address: String,
        /// The versions that it has.
        versions: Vec<String>,
    },
    /// It is no pack, or its manifest is wrong.
    Refused(Vec<PackProblem>),
    /// A built-in pack has this name.
    BuiltIn(String),
    /// The pack is for other versions of StackStorm.
    OtherVersion {
        /// The pack.
        pack: String,
        /// The versions that it is for.
        wanted: String,
    },
    /// No pack of this name is installed.
    NotInstalled(String),
    /// Its environment cannot be built.
    Environment(EnvironmentError),
    /// A file cannot be read or written.
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

impl fmt::Display for InstallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InstallError::Source(error) => error.fmt(f),
            InstallError::Index { address, reason } => {
                write!(f, "the index at `{}` cannot be fetched: {reason}", without_password(address))
            }
            InstallError::Fetch(error) => write!(f, "the pack cannot be fetched: {error}"),
            InstallError::NoRevision { revision, address, versions } => {
                let address = without_password(address);
                write!(f, "`{revision}` is no version, tag, branch or commit of `{address}`")?;
                match versions.is_empty() {
                    true => Ok(()),
                    false => write!(f, "; it has the versions {}", versions.join(", ")),
                }
            }
            InstallError::Refused(problems) => {
                let lines: Vec<_> = problems.iter().map(ToString::to_string).collect();
                write!(f, "the pack is refused: {}", lines.join("; "))
            }
            InstallError::BuiltIn(name) => write!(f, "pack `{name}` is built in; give the pack another name"),
            InstallError::OtherVersion { pack, wanted } => write!(
                f,
                "pack `{pack}` is for StackStorm {wanted}, and this is the API of {STACKSTORM_VERSION}; install it with \
                 `force` to try"
            ),
            InstallError::NotInstalled(name) => write!(f, "pack `{name}` is not installed"),
            InstallError::Environment(error) => error.fmt(f),
            InstallError::Io { path, error } => write!(f, "`{}`: {error}", path.display()),
        }
    }
}

impl std::error::Error for InstallError {}

impl From<SourceError> for InstallError {
    fn from(error: SourceError) -> InstallError {
        InstallError::Source(error)
    }
}

/// Whether comparisons such as `>=1.6.0, <4.0.0` hold for the version of StackStorm that the engine knows. Those
/// that cannot be read, such as `>=2.9dev`, hold.
fn is_for_this_version(comparisons: &str) -> bool {
    let version = Version::parse(STACKSTORM_VERSION);
    let wanted = VersionReq::parse(comparisons);
    wanted.is_err() || wanted.is_ok_and(|wanted| version.is_ok_and(|version| wanted.matches(&version)))
}

impl Installer {
    /// An installer without an index.
    pub fn new(packs: impl Into<PathBuf>, environments: Environments, reader: PackReader) -> Installer {
        Installer {
            packs: packs.into(),
            environments,
            reader,
            indexes: Vec::new(),
            fetch: Arc::new(|_| Err("there is no HTTP client".to_owned())),
            takes_any_version: false,
            turn: Arc::default(),
        }
    }

    /// Installs a pack, or replaces it. The pack's problems tell which of its files are left out.
    ///
    /// # Errors
    /// The pack is as before.
    pub async fn install(&self, source: &PackSource) -> Result<Installed, InstallError> {
        let _turn = self.turn.lock().await;
        fs::create_dir_all(&self.packs).map_err(|error| io_error(&self.packs, error))?;
        let staging = Staging(self.packs.join(format!("{STAGING_PREFIX}{}", std::process::id())));
        remove(&staging.0)?;
        self.fetch(source, &staging.0).await?;
        let pack = self.checked(staging.0.clone()).await?;
        let name = pack.manifest.reference.clone();
        if BUILT_IN_PACKS.contains(&name.as_str()) {
            return Err(InstallError::BuiltIn(name));
        }
        if !self.takes_any_version
            && let Some(wanted) = pack.manifest.stackstorm_version.clone()
            && !is_for_this_version(&wanted)
        {
            return Err(InstallError::OtherVersion { pack: name, wanted });
        }
        let versions = &pack.manifest.python_versions;
        let environment = self.environments.build(&name, &staging.0, versions).await;
        let environment = environment.map_err(InstallError::Environment)?;
        let replaced = self.reader.pack(&self.packs.join(&name)).ok().map(|pack| pack.manifest.version);
        let place = self.moved_into_place(&name, &staging.0)?;
        let pack = self.reader.pack(&place).map_err(InstallError::Refused)?;
        Ok(Installed { pack, replaced, environment })
    }

    /// Removes a pack and its environment, and tells what to unregister.
    ///
    /// # Errors
    /// It is built in or not installed, or a file cannot be removed.
    pub async fn uninstall(&self, name: &str) -> Result<Uninstalled, InstallError> {
        let _turn = self.turn.lock().await;
        if BUILT_IN_PACKS.contains(&name) {
            return Err(InstallError::BuiltIn(name.to_owned()));
        }
        let place = self.packs.join(name);
        if !is_pack_reference(name) || place.symlink_metadata().is_err() {
            return Err(InstallError::NotInstalled(name.to_owned()));
        }
        // A pack whose manifest is wrong now has nothing registered that could be told from here.
        let told = self.reader.pack(&place).map(|pack| uninstalled(&pack)).unwrap_or_default();
        remove(&place)?;
        self.environments.remove(name).map_err(InstallError::Environment)?;
        Ok(Uninstalled { pack: name.to_owned(), ..told })
    }

    /// The packs of all indexes.
    ///
    /// # Errors
    /// An index cannot be fetched.
    pub async fn index(&self) -> Result<PackIndex, InstallError> {
        let mut all = PackIndex::default();
        for address in &self.indexes {
            let (fetch, asked) = (self.fetch.clone(), address.clone());
            let fetched = spawn_blocking(move || match asked.strip_prefix("file://") {
                Some(path) => fs::read(path).map_err(|error| error.to_string()),
                None => fetch(&asked),
            });
            let fetched = fetched.await.unwrap_or_else(|error| Err(error.to_string()));
            let failed = |reason: String| InstallError::Index { address: address.clone(), reason };
            let text = fetched.map_err(failed)?;
            all.merge(PackIndex::parse(&text).map_err(|error| failed(error.to_string()))?);
        }
        Ok(all)
    }

    /// Puts the folder of packs right after the engine ended in the middle of an installation.
    ///
    /// # Errors
    /// A folder cannot be moved or removed.
    pub fn recover(&self) -> Result<(), InstallError> {
        for entry in fs::read_dir(&self.packs).into_iter().flatten().flatten() {
            let Ok(name) = entry.file_name().into_string() else { continue };
            let replaced = name.strip_prefix(REPLACED_PREFIX).map(|pack| self.packs.join(pack));
            match replaced {
                Some(place) if !place.exists() => {
                    fs::rename(entry.path(), &place).map_err(|error| io_error(&place, error))?;
                }
                Some(_) => remove(&entry.path())?,
                None if name.starts_with(STAGING_PREFIX) => remove(&entry.path())?,
                None => {}
            }
        }
        Ok(())
    }

    async fn fetch(&self, source: &PackSource, staging: &Path) -> Result<(), InstallError> {
        match source {
            PackSource::Index { name, version } => {
                let (address, listed) = self.index().await?.repository(name)?;
                // An index is not trusted with more than an address for git.
                match PackSource::parse(&address)? {
                    PackSource::Git { address, .. } => {
                        clone(&address, version.as_deref().or(listed.as_deref()), staging).await
                    }
                    _ => Err(InstallError::Index { address, reason: "it is no address for git".to_owned() }),
                }
            }
            PackSource::Git { address, version } => clone(address, version.as_deref(), staging).await,
            PackSource::Folder(folder) => {
                let (from, to) = (folder.clone(), staging.to_owned());
                spawn_blocking(move || copy(&from, &to)).await.unwrap_or_else(|_| Err(interrupted(folder)))
            }
            PackSource::Archive(archive) => unpack(archive, staging).await,
        }
    }

    /// The pack that was fetched, with what would make it unsafe refused.
    async fn checked(&self, staging: PathBuf) -> Result<Pack, InstallError> {
        let (reader, path) = (self.reader.clone(), staging.clone());
        let read = spawn_blocking(move || {
            let links = links_outside(&staging)?;
            match links.is_empty() {
                // Its folder has no name that counts.
                true => reader.pack(&staging),
                false => Err(links),
            }
        });
        let read = read.await.map_err(|_| interrupted(&path))?;
        read.map_err(InstallError::Refused)
    }

    fn moved_into_place(&self, name: &str, staging: &Path) -> Result<PathBuf, InstallError> {
        let place = self.packs.join(name);
        let replaced = self.packs.join(format!("{REPLACED_PREFIX}{name}"));
        remove(&replaced)?;
        if place.symlink_metadata().is_ok() {
            keep_configuration(&place, staging)?;
            fs::rename(&place, &replaced).map_err(|error| io_error(&place, error))?;
        }
        if let Err(error) = fs::rename(staging, &place) {
            if replaced.exists() {
                fs::rename(&replaced, &place).map_err(|error| io_error(&replaced, error))?;
            }
            return Err(io_error(&place, error));
        }
        remove(&replaced)?;
        Ok(place)
    }
}

/// The folder that a pack is fetched into, removed unless it was moved into place.
struct Staging(PathBuf);

impl Drop for Staging {
    fn drop(&mut self) {
        let _ = remove(&self.0);
    }
}

fn io_error(path: &Path, error: io::Error) -> InstallError {
    InstallError::Io { path: path.to_owned(), error }
}

fn interrupted(path: &Path) -> InstallError {
    io_error(path, io::ErrorKind::Interrupted.into())
}

/// Removes a folder, a file or a link that may not be there.
fn remove(path: &Path) -> Result<(), InstallError> {
    let removed = match path.symlink_metadata() {
        Err(_) => Ok(()),
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
    };
    removed.map_err(|error| io_error(path, error))
}

fn git(arguments: &[&str]) -> Command {
    Command::new("git", FETCH_TIME_MAX)
        .with_variable("GIT_TERMINAL_PROMPT", "0")
        .with_variable("GIT_ASKPASS", "/bin/true")
        .with_variable("GIT_SSH_COMMAND", "ssh -o BatchMode=yes")
        .with_variable("GIT_ALLOW_PROTOCOL", "https:http:ssh:git:file")
        .with(["-c", "core.hooksPath=/dev/null", "-c", "advice.detachedHead=false"])
        .with(arguments)
}

/// Clones a repository whole, so that its user may work with it, and checks out a revision: a branch, a tag or commit,
/// or `v` and the version.
async fn clone(address: &str, revision: Option<&str>, staging: &Path) -> Result<(), InstallError> {
    let command = git(&["clone", "--quiet", "--", address]).with([staging]);
    command.output().await.map_err(InstallError::Fetch)?;
    let Some(revision) = revision else { return Ok(()) };
    let mut names = vec![format!("refs/remotes/origin/{revision}"), revision.to_owned()];
    if is_version(revision) {
        names.push(format!("refs/tags/v{revision}"));
    }
    for name in names {
        let commit = format!("{name}^{{commit}}");
        if git(&["rev-parse", "--quiet", "--verify", &commit]).in_folder(staging).output().await.is_ok() {
            let command = git(&["checkout", "--quiet", "--detach", &commit]).in_folder(staging);
            command.output().await.map_err(InstallError::Fetch)?;
            return Ok(());
        }
    }
    let tags = git(&["tag", "--list", "v*"]).in_folder(staging).output().await.unwrap_or_default();
    let versions = tags.lines().filter_map(|tag| tag.strip_prefix('v')).filter(|version| is_version(version));
    Err(InstallError::NoRevision {
        revision: revision.to_owned(),
        address: address.to_owned(),
        versions: versions.map(str::to_owned).collect(),
    })
}

/// Unpacks an archive. One folder around all the files, as archives of git have it, is left out.
async fn unpack(archive: &Path, staging: &Path) -> Result<(), InstallError> {
    fs::create_dir_all(staging).map_err(|error| io_error(staging, error))?;
    let command = Command::new("tar", FETCH_TIME_MAX)
        .with(["--extract", "--gzip", "--no-same-owner", "--no-same-permissions", "--file"])
        .with([archive])
        .with(["--directory"])
        .with([staging]);
    command.output().await.map_err(InstallError::Fetch)?;
    let entries: Vec<_> = fs::read_dir(staging).into_iter().flatten().flatten().collect();
    if let [only] = entries.as_slice()
        && only.file_type().is_ok_and(|kind| kind.is_dir())
    {
        let inner = staging.with_extension("inner");
        let _ = fs::remove_dir_all(&inner);
        fs::rename(only.path(), &inner).map_err(|error| io_error(&inner, error))?;
        remove(staging)?;
        fs::rename(&inner, staging).map_err(|error| io_error(staging, error))?;
    }
    Ok(())
}

/// Copies the files of a pack; a link is copied as a link.
fn copy(from: &Path, to: &Path) -> Result<(), InstallError> {
    let files = pack_files(from).map_err(|problem| InstallError::Refused(vec![problem]))?;
    for file in files {
        let (source, target) = (from.join(&file), to.join(&file));
        let folder = target.parent().unwrap_or(to);
        fs::create_dir_all(folder).map_err(|error| io_error(folder, error))?;
        let copied = match fs::read_link(&source) {
            Ok(link) => std::os::unix::fs::symlink(link, &target),
            // A pipe or a device would be read without end.
            Err(_) if !source.is_file() => continue,
            Err(_) => fs::copy(&source, &target).map(|_| ()),
        };
        copied.map_err(|error| io_error(&source, error))?;
    }
    Ok(())
}

/// Links of a pack that lead out of it.
fn links_outside(folder: &Path) -> Result<Vec<PackProblem>, Vec<PackProblem>> {
    let files = pack_files(folder).map_err(|problem| vec![problem])?;
    let is_link =
        |file: &&String| folder.join(file).symlink_metadata().is_ok_and(|metadata| metadata.is_symlink());
    let links = files.iter().filter(is_link);
    let outside = links.filter_map(|file| {
        let target = fs::read_link(folder.join(file)).ok()?;
        let message = match target.is_absolute() {
            true => format!("`{file}` is a link to an absolute path; copy the file into the folder"),
            false => path_inside(folder, file).err()?,
        };
        Some(PackProblem::of(file, message))
    });
    Ok(outside.collect())
}

/// A configuration inside of the pack is its user's, as StackStorm has it.
fn keep_configuration(place: &Path, staging: &Path) -> Result<(), InstallError> {
    let (old, new) = (place.join("config.yaml"), staging.join("config.yaml"));
    match old.is_file() {
        true => fs::copy(&old, &new).map(|_| ()).map_err(|error| io_error(&old, error)),
        false => Ok(()),
    }
}

/// What there is to unregister of a pack.
fn uninstalled(pack: &Pack) -> Uninstalled {
    Uninstalled {
        pack: pack.manifest.reference.clone(),
        actions: pack.actions.iter().map(super::action::ActionDefinition::reference).collect(),
        sensors: pack.sensors.iter().map(super::sensor::SensorDefinition::reference).collect(),
        trigger_types: pack
            .trigger_types
            .iter()
            .map(super::trigger_type::TriggerTypeDefinition::reference)
            .collect(),
        rules: pack.rules.iter().map(|rule| rule.reference.clone()).collect(),
        aliases: pack.aliases.iter().map(super::alias::AliasDefinition::reference).collect(),
        policies: pack.policies.iter().map(super::policy::PolicyDefinition::reference).collect(),
    }
}
