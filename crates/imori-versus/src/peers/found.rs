//! Finds a peer's program on this machine, or says how to get it. Installs nothing.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, anyhow, bail};
use imori_bench::url::Scheme;

use crate::peers::peer::{Kind, Origin, Peer};

/// A program with its version and checksum.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Program {
    pub(crate) program: PathBuf,
    pub(crate) version: String,
    pub(crate) sha256: Option<String>,
}

/// Additional places to search for programs.
#[derive(Debug, Clone)]
pub(crate) struct SearchPaths {
    /// The program `imori`, if the user named one.
    pub(crate) imori: Option<PathBuf>,
    /// Folder in which `make peers` installs programs.
    pub(crate) peers: PathBuf,
}

const RABBITMQ_FOLDERS: [&str; 3] =
    ["/usr/lib/rabbitmq/bin", "/usr/local/lib/rabbitmq/bin", "/opt/rabbitmq/sbin"];

/// Finds the program of a peer; `None` if the peer already runs or is started by a shell command.
pub(crate) fn find(peer: &Peer, places: &SearchPaths) -> Result<Option<Program>> {
    let kind = match &peer.origin {
        Origin::Elsewhere | Origin::Commanded { .. } => return Ok(None),
        Origin::Program(program) => {
            let program = fs::canonicalize(program)
                .with_context(|| format!("`{}` is absent; name a program `imori`", program.display()))?;
            return found(program.clone(), version_of(&program, "--version")).map(Some);
        }
        Origin::Known(kind) => *kind,
    };
    let program = program(kind, places)?;
    let version = match kind {
        Kind::Imori | Kind::NatsServer => version_of(&program, "--version"),
        Kind::Rabbitmq | Kind::RabbitmqQuorum => Ok(rabbitmq_version()),
        Kind::Artemis | Kind::BrokerJ | Kind::Activemq => java_version(&program),
        Kind::Relay => Ok(format!("relay of {}", env!("CARGO_PKG_VERSION"))),
        Kind::Zeromq => Ok(zeromq_version(peer.protocol)),
        Kind::Grpc => Ok("unary echo over Go's grpc".to_owned()),
    };
    found(program, version).map(Some)
}

fn program(kind: Kind, places: &SearchPaths) -> Result<PathBuf> {
    match kind {
        Kind::Imori => imori(places),
        Kind::NatsServer => in_places("nats-server", places)
            .or_else(|| in_go("nats-server"))
            .ok_or_else(|| absent("nats-server", "run `make peers`, or install Go and then it by Go")),
        Kind::Rabbitmq | Kind::RabbitmqQuorum => rabbitmq(),
        Kind::Artemis => in_java("artemis", "artemis", places),
        Kind::BrokerJ => in_java("broker-j", "qpid-server", places),
        Kind::Activemq => in_java("activemq", "activemq", places),
        Kind::Relay => beside("relay")
            .or_else(|| beside("examples/relay"))
            .or_else(|| in_places("relay", places))
            .ok_or_else(|| absent("relay", "run `make peers`, or build the examples of `imori-versus`")),
        Kind::Zeromq => in_places("zeromq-responder", places)
            .ok_or_else(|| absent("zeromq-responder", "run `make peers`; it needs `libzmq3-dev`")),
        Kind::Grpc => in_places("grpc-responder", places)
            .ok_or_else(|| absent("grpc-responder", "run `make peers`; it needs Go")),
    }
}

fn imori(places: &SearchPaths) -> Result<PathBuf> {
    if let Some(named) = &places.imori {
        return fs::canonicalize(named)
            .with_context(|| format!("`{}` is absent; name another with `--imori`", named.display()));
    }
    let own = env::current_exe().ok().filter(|own| own.file_name() == Some(OsStr::new("imori")));
    own.or_else(|| beside("imori"))
        .or_else(|| in_path("imori"))
        .ok_or_else(|| absent("imori", "name it with `--imori`"))
}

fn rabbitmq() -> Result<PathBuf> {
    let programs = RABBITMQ_FOLDERS.iter().map(|folder| Path::new(folder).join("rabbitmq-server"));
    programs.into_iter().find(|program| program.exists()).ok_or_else(|| {
        absent("rabbitmq-server", "run `make peers`, or install the package of the distribution")
    })
}

/// A Java program in a peer's folder; the one with the highest version if there are several.
fn in_java(peer: &str, program: &str, places: &SearchPaths) -> Result<PathBuf> {
    if in_path("java").is_none() {
        return Err(absent("java", &format!("{peer} needs a JRE of version 17 or later")));
    }
    let entries = fs::read_dir(&places.peers).into_iter().flatten().flatten();
    let mut homes: Vec<PathBuf> = entries.map(|entry| entry.path().join("bin").join(program)).collect();
    homes.retain(|program| program.exists());
    homes.sort_by_key(|program| numbers(&program.to_string_lossy()));
    let found = homes.pop().and_then(|program| fs::canonicalize(program).ok());
    found.ok_or_else(|| absent(peer, "run `make peers`, which unpacks its archive"))
}

fn found(program: PathBuf, version: Result<String>) -> Result<Program> {
    let version = version?;
    let sha256 = sha256(&program);
    Ok(Program { program, version, sha256 })
}

fn absent(name: &str, remedy: &str) -> anyhow::Error {
    anyhow!("`{name}` is absent; {remedy}")
}

fn in_places(name: &str, places: &SearchPaths) -> Option<PathBuf> {
    let ours = fs::canonicalize(places.peers.join(name)).ok();
    ours.or_else(|| in_path(name))
}

fn beside(name: &str) -> Option<PathBuf> {
    let own = env::current_exe().ok()?;
    let program = own.parent()?.join(name);
    program.is_file().then_some(program)
}

fn in_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join(name)).find(|program| program.is_file())
}

/// A program in the folder in which `go install` puts programs.
fn in_go(name: &str) -> Option<PathBuf> {
    let folder = match env::var_os("GOPATH") {
        Some(folder) => PathBuf::from(folder),
        None => PathBuf::from(env::var_os("HOME")?).join("go"),
    };
    let program = folder.join("bin").join(name);
    program.is_file().then_some(program)
}

fn version_of(program: &Path, option: &str) -> Result<String> {
    let said = Command::new(program)
        .arg(option)
        .output()
        .with_context(|| format!("`{}` cannot be run", program.display()))?;
    let text = String::from_utf8_lossy(&said.stdout);
    match text.lines().next().map(str::trim) {
        Some(line) if said.status.success() && !line.is_empty() => Ok(line.to_owned()),
        _ => bail!("`{} {option}` does not say its version; name another program", program.display()),
    }
}

/// RabbitMQ's version, from the name of the package's folder.
fn rabbitmq_version() -> String {
    let entries = fs::read_dir("/usr/lib/rabbitmq/lib").into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort_by_key(|name| numbers(name));
    let version = names.iter().rev().find_map(|name| name.strip_prefix("rabbitmq_server-"));
    format!("RabbitMQ {}", version.unwrap_or("of unknown version"))
}

/// The name of the program's folder, and the version of Java.
fn java_version(program: &Path) -> Result<String> {
    let home = program.parent().and_then(Path::parent).and_then(Path::file_name).unwrap_or_default();
    let java = Command::new("java").arg("-version").output().context("`java` cannot be run")?;
    let java = String::from_utf8_lossy(&java.stderr).lines().next().unwrap_or_default().to_owned();
    Ok(format!("{}, {java}", home.to_string_lossy()))
}

fn zeromq_version(protocol: Scheme) -> String {
    let library = Command::new("pkg-config").args(["--modversion", "libzmq"]).output();
    let version = library.map(|said| String::from_utf8_lossy(&said.stdout).trim().to_owned());
    let version = version.unwrap_or_default();
    format!("{} socket of libzmq {version}", protocol.word().to_uppercase()).trim_end().to_owned()
}

/// SHA-256 of a program, computed by `sha256sum` because it does not justify a dependency; `None`
/// if that is missing.
fn sha256(program: &Path) -> Option<String> {
    let said = Command::new("sha256sum").arg(program).output().ok()?;
    let text = String::from_utf8(said.stdout).ok()?;
    text.split_whitespace().next().map(str::to_owned).filter(|digits| digits.len() == 64)
}

/// The numbers in a name, as a sort key by which 10 follows 9.
fn numbers(text: &str) -> Vec<u64> {
    text.split(|char: char| !char.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_by_number() {
        let mut names = ["apache-artemis-2.9.0", "apache-artemis-2.56.0", "apache-artemis-2.44.0"];
        names.sort_by_key(|name| numbers(name));
        assert_eq!(names.last(), Some(&"apache-artemis-2.56.0"));
    }

    #[test]
    fn a_missing_program_is_named_with_the_way_to_get_it() {
        let places =
            SearchPaths { imori: Some(PathBuf::from("/nowhere/imori")), peers: PathBuf::from("/nowhere") };
        for (kind, part) in [
            (Kind::Imori, "`/nowhere/imori` is absent; name another with `--imori`"),
            (Kind::Grpc, "`grpc-responder` is absent; run `make peers`"),
            (Kind::Zeromq, "`zeromq-responder` is absent; run `make peers`"),
        ] {
            let error = program(kind, &places).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
