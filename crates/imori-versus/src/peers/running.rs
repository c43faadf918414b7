//! A peer that accepts connections until it is dropped, when its guard ends it and all its descendants.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use imori_bench::interrupt;
use imori_bench::options::Style;
use imori_bench::probe::process::{is_running, tree};
use imori_bench::protocol::session::{Session, driver_of};
use imori_bench::url::Scheme;

use crate::peers::found::Program;
use crate::peers::guard::OUTPUT;
use crate::peers::ourselves::Ourselves;
use crate::peers::peer::{Origin, Peer};
use crate::peers::recipe::{Recipe, free_port, prepare};

/// Time for a broker to start, until a login succeeds.
const READY_AFTER_MAX: Duration = Duration::from_secs(120);

/// Interval between attempts to log in.
const TRY_EVERY: Duration = Duration::from_millis(100);

/// Time-out of one attempt to log in.
const ANSWER_AFTER_MAX: Duration = Duration::from_secs(5);

/// Bytes shown of the last output of a broker that does not respond.
const OUTPUT_SHOWN: usize = 2_000;

/// A peer that accepts connections.
#[derive(Debug)]
pub(crate) struct Running {
    /// URL of the peer.
    pub(crate) url: String,
    /// Processes to account to it, with their descendants; empty if it is not started here.
    pub(crate) pids: Vec<u32>,
    /// Command line, then configuration files with their texts.
    pub(crate) configuration: Vec<(String, String)>,
    guard: Option<Guarded>,
}

/// The guard's process; closing its input makes it end the peer.
#[derive(Debug)]
struct Guarded {
    child: Child,
    input: Option<ChildStdin>,
    folder: PathBuf,
    pid: u32,
}

impl Running {
    /// Starts a peer and waits until a login succeeds; `cpus` pins it.
    pub(crate) fn start(
        peer: &Peer,
        found: Option<&Program>,
        ours: &Ourselves,
        cpus: Option<&str>,
    ) -> Result<Running> {
        if peer.origin == Origin::Elsewhere {
            let url = peer.url.clone().context("a peer that runs already has a URL")?;
            let running = Running { url, pids: Vec::new(), configuration: Vec::new(), guard: None };
            running.wait(None, || answers(&running.url, peer.protocol).unwrap_or(false))?;
            return Ok(running);
        }
        let port = free_port()?;
        let folder = fresh_folder(&peer.name)?;
        let recipe = prepare(peer, found, &folder, port).inspect_err(|_| {
            let _ = fs::remove_dir_all(&folder);
        })?;
        let url = peer.url.clone().unwrap_or_else(|| peer.protocol.on_loopback(port));
        Running::start_by(&recipe, &folder, (ours, cpus), &url, || {
            answers(&url, peer.protocol).unwrap_or(false)
        })
    }

    /// Starts a program in its folder, and waits until it is ready.
    pub(crate) fn start_by(
        recipe: &Recipe,
        folder: &Path,
        (ours, cpus): (&Ourselves, Option<&str>),
        url: &str,
        is_ready: impl Fn() -> bool,
    ) -> Result<Running> {
        let guard = Guarded::start(recipe, folder, ours, cpus)?;
        let mut configuration = vec![("command".to_owned(), recipe.command.join(" "))];
        configuration.extend(recipe.configuration.clone());
        let mut running =
            Running { url: url.to_owned(), pids: Vec::new(), configuration, guard: Some(guard) };
        running.wait(recipe.stop.as_deref(), is_ready)?;
        running.pids = running.serving(recipe);
        Ok(running)
    }

    /// Waits until the peer is ready; fails if it ends before.
    fn wait(&self, stop: Option<&str>, is_ready: impl Fn() -> bool) -> Result<()> {
        let deadline = Instant::now() + READY_AFTER_MAX;
        loop {
            if is_ready() {
                return Ok(());
            }
            // With a stop command, the start command may have ended after starting a process
            // outside its tree.
            let has_ended = self.guard.as_ref().is_some_and(|guard| stop.is_none() && guard.has_ended());
            if has_ended {
                bail!("it ended before it answered{}", self.last_output());
            }
            if interrupt::is_asked_for() {
                bail!("stopped by hand before it answered");
            }
            if Instant::now() >= deadline {
                bail!(
                    "it does not answer at `{}` within {} s{}",
                    place(&self.url),
                    READY_AFTER_MAX.as_secs(),
                    self.last_output()
                );
            }
            sleep(TRY_EVERY);
        }
    }

    /// The processes to account to the peer.
    fn serving(&self, recipe: &Recipe) -> Vec<u32> {
        let Some(guard) = &self.guard else { return Vec::new() };
        let written = recipe.pid_file.as_ref().and_then(|file| fs::read_to_string(file).ok());
        if let Some(pid) = written.and_then(|text| text.trim().parse().ok()) {
            return vec![pid];
        }
        match is_running(guard.pid) {
            true => vec![guard.pid],
            false => guard.running_descendants(),
        }
    }

    fn last_output(&self) -> String {
        let Some(guard) = &self.guard else { return String::new() };
        let output = fs::read(guard.folder.join(OUTPUT)).unwrap_or_default();
        let from = output.len().saturating_sub(OUTPUT_SHOWN);
        let text = String::from_utf8_lossy(output.get(from..).unwrap_or_default()).trim().to_owned();
        match text.is_empty() {
            true => String::new(),
            false => format!("; its output ends with:\n{text}"),
        }
    }
}

impl Guarded {
    fn start(recipe: &Recipe, folder: &Path, ours: &Ourselves, cpus: Option<&str>) -> Result<Guarded> {
        let mut guard = ours.command("guard");
        guard.arg("--folder").arg(folder).arg("--grace").arg(format!("{}s", recipe.grace.as_secs()));
        if let Some(stop) = &recipe.stop {
            guard.arg("--stop").arg(stop);
        }
        guard.arg("--").args(pinned(cpus)).args(&recipe.command);
        guard.envs(recipe.environment.iter().map(|(name, value)| (name, value)));
        let mut child = own_group(&mut guard)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("the guard of a peer cannot be started")?;
        let input = child.stdin.take();
        let mut line = String::new();
        if let Some(output) = child.stdout.take() {
            BufReader::new(output).read_line(&mut line)?;
        }
        match line.trim().parse() {
            Ok(pid) => Ok(Guarded { child, input, folder: folder.to_owned(), pid }),
            Err(_) => {
                let mut said = String::new();
                if let Some(mut errors) = child.stderr.take() {
                    errors.read_to_string(&mut said)?;
                }
                let _ = child.wait();
                let _ = fs::remove_dir_all(folder);
                Err(anyhow!("{}", said.trim()))
            }
        }
    }

    /// Whether the program and all its descendants have ended.
    fn has_ended(&self) -> bool {
        !is_running(self.pid) && self.running_descendants().is_empty()
    }

    /// The descendants of the guard that have not ended.
    fn running_descendants(&self) -> Vec<u32> {
        let guard = self.child.id();
        let mut found = tree(&[guard]).unwrap_or_default();
        found.retain(|pid| *pid != guard && is_running(*pid));
        found
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        drop(self.input.take());
        // If the guard was killed, nothing else can be done here about its peer.
        let _ = self.child.wait();
    }
}

/// The words in front of a command that pin it to CPUs; empty without pinning.
pub(crate) fn pinned(cpus: Option<&str>) -> Vec<String> {
    match cpus {
        Some(cpus) => ["taskset", "-c", cpus].map(str::to_owned).to_vec(),
        None => Vec::new(),
    }
}

/// Puts a command into its own process group, out of reach of Ctrl-C.
fn own_group(command: &mut Command) -> &mut Command {
    std::os::unix::process::CommandExt::process_group(command, 0)
}

/// Creates a new folder.
pub(crate) fn fresh_folder(name: &str) -> Result<PathBuf> {
    let plain: String =
        name.chars().map(|char| if char.is_ascii_alphanumeric() { char } else { '-' }).collect();
    let root = std::env::temp_dir();
    for number in 0.. {
        let folder = root.join(format!("imori-bench-{plain}-{}-{number}", std::process::id()));
        match fs::create_dir(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => {
                return Err(error)
                    .with_context(|| format!("`{}` cannot be made; set `TMPDIR`", folder.display()));
            }
        }
    }
    bail!("no folder is free in `{}`; set `TMPDIR`", root.display())
}

fn address(place: &str) -> Result<SocketAddr> {
    let mut found =
        place.to_socket_addrs().with_context(|| format!("`{place}` is no place; write it as `host:port`"))?;
    found.next().with_context(|| format!("`{place}` is no place; write it as `host:port`"))
}

/// Whether a login succeeds, or, for protocols without login, whether the port accepts a connection.
pub(crate) fn answers(url: &str, protocol: Scheme) -> Result<bool> {
    if matches!(protocol, Scheme::Peer(_)) {
        let socket = TcpStream::connect_timeout(&address(place(url))?, ANSWER_AFTER_MAX)?;
        // On Linux, connecting to a local port without a listener can connect a socket to itself.
        return Ok(socket.local_addr()? != socket.peer_addr()?);
    }
    let driver = driver_of(protocol, Style::default())?;
    Session::open_within(driver, &url.parse()?, ANSWER_AFTER_MAX)?;
    Ok(true)
}

/// Host and port of a URL.
fn place(url: &str) -> &str {
    let (_, rest) = url.split_once("://").unwrap_or(("", url));
    let authority = rest.split('/').next().unwrap_or_default();
    authority.rsplit('@').next().unwrap_or_default()
}
