//! Commands and scripts of other machines, run by this machine's `ssh`. Nothing of a parameter is read by a shell
//! unquoted, and no password is asked for.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use futures_util::StreamExt as _;
use futures_util::stream::iter;
use imori_automation::parameters::positional_arguments;
use imori_automation::value::{Map, Value};
use tokio::process::Command;

use super::outcome::Outcome;
use super::shell::{WRAPPER, outcome, script};
use crate::executions::{Run, Status};
use crate::limits::{
    SHELL_TIMEOUT, SSH_CONNECT_SECONDS, SSH_HOSTS_AT_ONCE, SSH_HOSTS_MAX, SSH_OUTPUT_BYTES_MAX,
};
use crate::outputs::Outputs;
use crate::process::{Ended, IDENTITY_FILE, Process};

/// The exit code of `ssh` where there is no connection.
const NOT_CONNECTED: i64 = 255;

/// Runs the command in the parameter `cmd` on each host.
pub(crate) async fn run_command(run: &Run, folder: &Path) -> Outcome {
    let prepared = Session::of(run, folder).and_then(|session| {
        let command = text(run, "cmd").ok_or("parameter `cmd` is missing")?;
        Ok((session, remote_command(run, command)?))
    });
    match prepared {
        Ok((session, command)) => session.run_all(run, &command, None).await,
        Err(reason) => Outcome::failed(reason),
    }
}

/// Copies the action's script to each host and runs it there.
pub(crate) async fn run_script(run: &Run, folder: &Path) -> Outcome {
    let prepared = Session::of(run, folder).and_then(|session| {
        let script = script(run)?;
        Ok((session, remote_command(run, &script_command(run))?, script))
    });
    match prepared {
        Ok((session, command, script)) => session.run_all(run, &command, Some(&script)).await,
        Err(reason) => Outcome::failed(reason),
    }
}

/// A host and its port, if the action names one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// The name or the IP address.
    pub name: String,
    /// The port.
    pub port: Option<u16>,
}

/// The arguments of `ssh` that are the same for each host.
#[derive(Debug)]
struct Session {
    hosts: Vec<Host>,
    options: Vec<OsString>,
    is_parallel: bool,
}

impl Session {
    fn of(run: &Run, folder: &Path) -> Result<Session, String> {
        for secret in ["password", "passphrase", "sudo_password"] {
            if text(run, secret).is_some() {
                return Err(format!(
                    "parameter `{secret}` is not supported: ssh asks for nothing here; set `private_key` to a key \
                     without a passphrase, and let sudo need no password on the host"
                ));
            }
        }
        let port = match run.runner_parameters.get("port") {
            None | Some(Value::Null) => None,
            Some(port) => {
                let number = port.as_int().and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0);
                Some(number.ok_or_else(|| format!("`port` {port} is no port; use 1 to 65535"))?)
            }
        };
        let mut hosts = hosts(run.runner_parameters.get("hosts"))?;
        for host in &mut hosts {
            host.port = host.port.or(port);
        }
        let mut options = options(folder)?;
        if let Some(user) = text(run, "username") {
            options.extend(["-l".into(), word("username", user)?.into()]);
        }
        if let Some(key) = text(run, "private_key") {
            options.extend([
                "-o".into(),
                "IdentitiesOnly=yes".into(),
                "-i".into(),
                key_file(run, key)?.into(),
            ]);
        }
        if let Some(bastion) = text(run, "bastion_host") {
            let bastion = host(bastion)?;
            let mut command = String::from("ssh");
            for option in &options {
                let option = option.to_str().ok_or("the data folder's path is no UTF-8")?;
                // ssh expands percent signs of the command, and puts `exec` before it.
                let _ = write!(command, " {}", quoted(&option.replace('%', "%%")));
            }
            if let Some(port) = bastion.port.or(port) {
                let _ = write!(command, " -p {port}");
            }
            let _ = write!(command, " -W '[%h]:%p' -- {}", quoted(&bastion.name));
            options.extend(["-o".into(), format!("ProxyCommand={command}").into()]);
        }
        let is_parallel = run.runner_parameters.get("parallel").is_some_and(Value::is_truthy);
        Ok(Session { hosts, options, is_parallel })
    }

    /// Runs a command on all hosts. The result has each host's, and the action succeeds if it does on all of them.
    async fn run_all(&self, run: &Run, command: &str, input: Option<&Path>) -> Outcome {
        let at_once = if self.is_parallel { SSH_HOSTS_AT_ONCE } else { 1 };
        let runs = self.hosts.iter().cloned().enumerate().map(|(number, host)| async move {
            let folder = run.folder.join(format!("host-{number}"));
            let ran = self.run_one(run, &host, command, input, &folder).await;
            (host, folder, ran)
        });
        let ran: Vec<_> = iter(runs).buffered(at_once).collect().await;
        // The outputs of all hosts are in one result.
        run.place.take().await;
        let mut left = SSH_OUTPUT_BYTES_MAX;
        let mut outcomes = Vec::new();
        for (host, folder, ran) in ran {
            let outcome = host_outcome(run, &host, &folder, ran, &mut left);
            outcomes.push((host.name, outcome));
        }
        let worst = [Status::Canceled, Status::TimedOut, Status::Abandoned, Status::Failed];
        let has = |status: &Status| outcomes.iter().any(|(_, outcome)| outcome.status == *status);
        let status = worst.into_iter().find(|status| has(status)).unwrap_or(Status::Succeeded);
        let result = outcomes.into_iter().map(|(host, outcome)| (host, outcome.result)).collect();
        Outcome { status, result: Value::Map(result) }
    }

    async fn run_one(
        &self,
        run: &Run,
        host: &Host,
        command: &str,
        input: Option<&Path>,
        folder: &Path,
    ) -> Result<(Ended, Outputs), String> {
        let (process, mut outputs) = self
            .start(host, command, input, folder, run.output_bytes_max)
            .map_err(|error| format!("ssh cannot be started: {error}"))?;
        let limit = run.timeout(SHELL_TIMEOUT);
        let ended = process.wait(limit, run.canceled.clone(), || outputs.are_over()).await;
        outputs.settle().await;
        Ok((ended, outputs))
    }

    fn start(
        &self,
        host: &Host,
        command: &str,
        input: Option<&Path>,
        folder: &Path,
        output_bytes_max: u64,
    ) -> io::Result<(Process, Outputs)> {
        fs::create_dir_all(folder)?;
        let mut ssh = Command::new("/bin/sh");
        ssh.arg("-c").arg(WRAPPER).arg("imori").arg(folder).arg("ssh").args(&self.options);
        if let Some(port) = host.port {
            ssh.arg("-p").arg(port.to_string());
        }
        ssh.arg("--").arg(&host.name).arg(command).process_group(0);
        ssh.stdin(match input {
            Some(path) => Stdio::from(File::open(path)?),
            None => Stdio::null(),
        });
        let (outputs, [stdout, stderr]) = Outputs::record(folder, output_bytes_max)?;
        ssh.stdout(stdout).stderr(stderr);
        Ok((Process::start(ssh, &folder.join(IDENTITY_FILE))?, outputs))
    }
}

/// The outcome on one host, with as much of its output as is left for it.
fn host_outcome(
    run: &Run,
    host: &Host,
    folder: &Path,
    ran: Result<(Ended, Outputs), String>,
    left: &mut u64,
) -> Outcome {
    let (ended, outputs) = match ran {
        Ok(ran) => ran,
        Err(reason) => return Outcome::failed(reason),
    };
    let recorded = outputs.recorded(*left);
    *left = left.saturating_sub(recorded.stdout.kept + recorded.stderr.kept);
    let mut outcome = outcome(folder, &recorded, ended, run.timeout(SHELL_TIMEOUT));
    if let Value::Map(result) = &mut outcome.result
        && result.get("return_code").and_then(Value::as_int) == Some(NOT_CONNECTED)
    {
        let said = result.get("stderr").and_then(Value::as_str).unwrap_or_default();
        let last = said.lines().last().unwrap_or("ssh ended with code 255").to_owned();
        result.insert("error", format!("Failed connecting to host {}. {last}", host.name));
    }
    outcome
}

/// The options of every connection. `ssh/config` of the automation's folder decides about the keys of hosts, where it
/// is there; otherwise the first key of a host is kept and another one refused.
fn options(folder: &Path) -> Result<Vec<OsString>, String> {
    let folder = folder.join("ssh");
    fs::create_dir_all(&folder).map_err(|error| format!("folder `ssh` of the automation: {error}"))?;
    let mut options: Vec<OsString> = vec!["-T".into(), "-o".into(), "BatchMode=yes".into()];
    options.extend(["-o".into(), format!("ConnectTimeout={SSH_CONNECT_SECONDS}").into()]);
    let config = folder.join("config");
    if config.exists() {
        options.extend(["-F".into(), config.into()]);
        return Ok(options);
    }
    let known = folder.join("known_hosts");
    let known = known.to_str().ok_or("the data folder's path is no UTF-8")?;
    options.extend(["-o".into(), "StrictHostKeyChecking=accept-new".into()]);
    // A value may have spaces within quotes.
    options.extend(["-o".into(), format!("UserKnownHostsFile=\"{}\"", known.replace('%', "%%")).into()]);
    Ok(options)
}

/// The hosts of a list, or of a text with commas.
pub fn hosts(value: Option<&Value>) -> Result<Vec<Host>, String> {
    let names: Vec<&str> = match value {
        Some(Value::String(text)) => text.split(',').map(str::trim).filter(|name| !name.is_empty()).collect(),
        Some(Value::List(list)) => list.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    if names.is_empty() {
        return Err(String::from("parameter `hosts` is missing; name hosts, separated by commas"));
    }
    if names.len() > SSH_HOSTS_MAX {
        return Err(format!("`hosts` names more than {SSH_HOSTS_MAX} hosts; use several executions"));
    }
    let mut hosts: Vec<Host> = Vec::new();
    for name in names {
        let host = host(name)?;
        if !hosts.contains(&host) {
            hosts.push(host);
        }
    }
    Ok(hosts)
}

/// A host with or without a port: `name`, `name:22`, `[::1]:22` or `::1`.
pub fn host(text: &str) -> Result<Host, String> {
    let (name, port) = match (text.strip_prefix('['), text.rsplit_once(':')) {
        (Some(rest), _) => match rest.split_once(']') {
            Some((name, "")) => (name, None),
            Some((name, port)) => (name, port.strip_prefix(':')),
            None => (text, None),
        },
        (None, Some((name, port))) if !name.contains(':') => (name, Some(port)),
        _ => (text, None),
    };
    let port = match port {
        None => None,
        Some(port) => Some(port.parse().map_err(|_| format!("host `{text}` has no port after its colon"))?),
    };
    Ok(Host { name: word("hosts", name)?.to_owned(), port })
}

/// A name of a user or host, which ssh cannot read as an option or hand to a shell as more than a word.
fn word<'a>(parameter: &str, text: &'a str) -> Result<&'a str, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | ':' | '%');
    match !text.is_empty() && !text.starts_with('-') && text.chars().all(is_plain) {
        true => Ok(text),
        false => Err(format!("`{text}` in `{parameter}` is no name; use letters, digits, dots and hyphens")),
    }
}

/// The file of a private key: the one that is named, or one that is written for this run.
fn key_file(run: &Run, key: &str) -> Result<PathBuf, String> {
    if !key.contains("PRIVATE KEY") {
        return match Path::new(key).is_file() {
            true => Ok(PathBuf::from(key)),
            false => Err(String::from("`private_key` is neither a key nor the path of one")),
        };
    }
    let path = run.folder.join("key");
    let write = || -> io::Result<()> {
        fs::create_dir_all(&run.folder)?;
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path)?;
        file.write_all(key.trim().as_bytes())?;
        file.write_all(b"\n")
    };
    write().map_err(|error| format!("the private key cannot be written: {error}"))?;
    Ok(path)
}

/// What the host's shell runs: the command in its folder, with its environment.
fn remote_command(run: &Run, command: &str) -> Result<String, String> {
    let mut text = String::new();
    if let Some(folder) = self::text(run, "cwd") {
        let _ = write!(text, "cd {} && ", quoted(folder));
    }
    let environment = run.runner_parameters.get("env").and_then(Value::as_map);
    let mut variables = String::new();
    for (name, value) in environment.into_iter().flat_map(Map::iter) {
        let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            && !name.starts_with(|c: char| c.is_ascii_digit());
        if !is_name || name.is_empty() {
            return Err(format!("`{name}` in `env` is no name of a variable"));
        }
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let _ = write!(variables, " {name}={}", quoted(&value));
    }
    if run.runner_parameters.get("sudo").is_some_and(Value::is_truthy) {
        text.push_str("sudo -E -H -n -- ");
    }
    let _ = write!(text, "env{variables} /bin/sh -c {}", quoted(command));
    Ok(text)
}

/// The command that keeps its input as a script, runs it with the action's parameters and removes it.
fn script_command(run: &Run) -> String {
    let empty = Map::new();
    let schema = run.action.get("parameters").and_then(Value::as_map).unwrap_or(&empty);
    let (positional, named) = positional_arguments(schema, &run.parameters);
    let operator = text(run, "kwarg_op").unwrap_or("--");
    let mut arguments = String::new();
    for (name, value) in named.iter() {
        let argument = match value {
            Value::Null | Value::Bool(false) => continue,
            Value::Bool(true) => format!("{operator}{name}"),
            Value::String(text) => format!("{operator}{name}={text}"),
            other => format!("{operator}{name}={other}"),
        };
        let _ = write!(arguments, " {}", quoted(&argument));
    }
    for argument in positional {
        let _ = write!(arguments, " {}", quoted(&argument));
    }
    let folder = quoted(text(run, "dir").unwrap_or("/tmp"));
    format!(
        "file=$(mktemp {folder}/imori.XXXXXXXX) || exit 1; trap 'rm -f \"$file\"' EXIT; cat >\"$file\" && \
         chmod 700 \"$file\" && \"$file\"{arguments} </dev/null"
    )
}

/// A word as POSIX shells read it unchanged.
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn text<'a>(run: &'a Run, key: &str) -> Option<&'a str> {
    run.runner_parameters.get(key).and_then(Value::as_str).filter(|text| !text.is_empty())
}
