//! The broker that is measured: one that runs, or one that is started with an empty folder.

use std::net::{SocketAddr, ToSocketAddrs};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use imori_bench::interrupt;
use imori_bench::url::Scheme;
use imori_bench::watch::port::listeners;
use serde_json::{Value, json};

use crate::automation::api::Api;
use crate::automation::options::AutomationOptions;
use crate::automation::pack::{PACK, PackFolder};
use crate::automation::rules::PUSH;
use crate::automation::stream::Stream;
use crate::limits::INSTALL_TIMEOUT;
use crate::peers::found::Program;
use crate::peers::ourselves::Ourselves;
use crate::peers::recipe::{GRACE, Recipe, free_port};
use crate::peers::running::{Running, answers, fresh_folder};

/// Time between two looks at the installation of a pack.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A broker with its API.
#[derive(Debug)]
pub(crate) struct Subject {
    /// A connection to the API.
    pub(crate) api: Api,
    /// The broker's processes.
    pub(crate) pids: Vec<u32>,
    /// Names of the runners that the broker has.
    runners: Vec<String>,
    has_pack: bool,
    /// References of the rules that were made here.
    rules: Vec<String>,
    /// The broker, if it was started here.
    running: Option<Running>,
}

/// The means to start a broker.
#[derive(Debug)]
pub(crate) struct Starter {
    /// The program.
    pub(crate) program: Program,
    /// This program, for the guard.
    pub(crate) ours: Ourselves,
    /// CPUs to pin the broker to.
    pub(crate) cpus: Option<String>,
}

impl Starter {
    /// Starts a broker without automation.
    pub(crate) fn without_automation(&self) -> Result<Running> {
        let url = Scheme::Stomp.on_loopback(free_port()?);
        self.start(&url, None, || answers(&url, Scheme::Stomp).unwrap_or(false))
    }

    /// Starts a broker with automation.
    pub(crate) fn with_automation(&self) -> Result<Subject> {
        let url = Scheme::Stomp.on_loopback(free_port()?);
        let address = SocketAddr::from(([127, 0, 0, 1], free_port()?));
        let is_ready = || {
            let packs = Api::open(address, None).and_then(|mut api| api.get("/v1/packs"));
            packs.is_ok_and(|packs| packs.as_array().is_some_and(|packs| !packs.is_empty()))
        };
        let running = self.start(&url, Some(address), is_ready)?;
        Subject::new(Api::open(address, None)?, running.pids.clone(), Some(running))
    }

    fn start(&self, url: &str, api: Option<SocketAddr>, is_ready: impl Fn() -> bool) -> Result<Running> {
        let folder = fresh_folder("automation")?;
        let data = folder.join("data").to_string_lossy().into_owned();
        let mut command = vec![self.program.program.to_string_lossy().into_owned(), "serve".to_owned()];
        let port = url.rsplit(':').next().unwrap_or_default();
        command.extend(["--listen".to_owned(), format!("stomp=127.0.0.1:{port}")]);
        command.extend(api.into_iter().flat_map(|api| ["--listen".to_owned(), format!("automation={api}")]));
        command.extend(["--data-dir".to_owned(), data]);
        let environment = vec![("IMORI__AUTOMATION__OPEN".to_owned(), "true".to_owned())];
        let recipe = Recipe { command, environment, grace: GRACE, ..Recipe::default() };
        Running::start_by(&recipe, &folder, (&self.ours, self.cpus.as_deref()), url, is_ready)
    }
}

impl Subject {
    /// The broker that runs at this address.
    pub(crate) fn running(options: &AutomationOptions) -> Result<Option<Subject>> {
        let Some(url) = &options.url else { return Ok(None) };
        let place = format!("{}:{}", url.host, url.port);
        let address = place.to_socket_addrs().ok().and_then(|mut found| found.next());
        let address = address.with_context(|| format!("`{place}` is unknown; name another with `--url`"))?;
        let pids = if options.pid.is_empty() { listeners(url.port) } else { options.pid.clone() };
        ensure!(
            !pids.is_empty(),
            "no process of this machine listens at port `{}`; name the broker's with `--pid`",
            url.port
        );
        Subject::new(Api::open(address, options.token.as_deref())?, pids, None).map(Some)
    }

    fn new(mut api: Api, pids: Vec<u32>, running: Option<Running>) -> Result<Subject> {
        let listed = api.get("/v1/runnertypes?limit=-1")?;
        let is_enabled = |runner: &&Value| runner.get("enabled") != Some(&Value::Bool(false));
        let name = |runner: &Value| runner.get("name").and_then(Value::as_str).map(str::to_owned);
        let runners = listed.as_array().into_iter().flatten().filter(is_enabled).filter_map(name).collect();
        Ok(Subject { api, pids, runners, has_pack: false, rules: Vec::new(), running })
    }

    /// Whether the broker lists this runner.
    pub(crate) fn has_runner(&self, name: &str) -> bool {
        self.runners.iter().any(|runner| runner == name)
    }

    /// Installs the pack of the measurement, unless that has been done.
    pub(crate) fn install_pack(&mut self) -> Result<()> {
        if self.has_pack {
            return Ok(());
        }
        let folder = PackFolder::written(|runner| self.has_runner(runner))?;
        let packs = [format!("file://{}", folder.path().display())];
        self.run_long("packs.install", &json!({ "packs": packs })).context("the pack cannot be installed")?;
        self.has_pack = true;
        Ok(())
    }

    /// Makes a rule for pushes to a webhook, unless it exists: one that matches, or one that does not.
    pub(crate) fn rule(&mut self, name: &str, url: &str, is_match: bool, action: &Value) -> Result<String> {
        let reference = format!("default.{name}");
        if self.rules.contains(&reference) {
            return Ok(reference);
        }
        // A measurement that was killed has left its rules behind.
        self.api.ask("DELETE", &format!("/v1/rules/{reference}"), b"")?;
        let rule = json!({
            "name": name,
            "pack": "default",
            "enabled": true,
            "trigger": {"type": "core.st2.webhook", "parameters": {"url": url}},
            "criteria": {
                "trigger.body.repository.name":
                    {"type": "equals", "pattern": if is_match { "repository-0" } else { "repository-1" }},
                "trigger.body.commits[0].message": {"type": "regex", "pattern": r"^(fix|feat)\(.*\): "},
                "trigger.body.size": {"type": "lessthan", "pattern": 100},
            },
            "action": action,
        });
        self.api.post("/v1/rules", &rule)?;
        self.rules.push(reference.clone());
        Ok(reference)
    }

    /// Runs an action to its end; fails if it does not succeed.
    pub(crate) fn run(&mut self, action: &str, parameters: &Value) -> Result<()> {
        let stream = Stream::open(&self.api, action)?;
        self.run_on(&stream, action, parameters).map(|_| ())
    }

    /// Runs an action that may take longer than a stream lasts, which the broker ends after a minute.
    fn run_long(&mut self, action: &str, parameters: &Value) -> Result<()> {
        let request = json!({ "action": action, "parameters": parameters });
        let made = self.api.post("/v1/executions", &request)?;
        let id = made.get("id").and_then(Value::as_str).context("an execution has no `id`")?;
        let path = format!("/v1/executions/{id}?include_attributes=status,result");
        let deadline = Instant::now() + INSTALL_TIMEOUT;
        loop {
            let shown = self.api.get(&path)?;
            match shown.get("status").and_then(Value::as_str).unwrap_or_default() {
                "succeeded" => return Ok(()),
                "requested" | "running" if Instant::now() < deadline && !interrupt::is_asked_for() => {
                    sleep(LOOK_EVERY);
                }
                status => {
                    bail!("`{action}` is `{status}`: {}", shown.get("result").unwrap_or(&Value::Null))
                }
            }
        }
    }

    /// Runs an action, whose executions this stream follows, and returns when its end arrived.
    pub(crate) fn run_on(&mut self, stream: &Stream, action: &str, parameters: &Value) -> Result<Instant> {
        let request = json!({ "action": action, "parameters": parameters });
        let made = self.api.post("/v1/executions", &request)?;
        let id = made.get("id").and_then(Value::as_str).context("an execution has no `id`")?;
        loop {
            let update = stream.next()?;
            if update.text("id") != id || !update.is_end() {
                continue;
            }
            let result = update.document.get("result").unwrap_or(&Value::Null);
            match update.text("status") {
                "succeeded" => return Ok(update.at),
                status => bail!("`{action}` ended as `{status}`: {result}"),
            }
        }
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        if self.running.is_some() {
            return;
        }
        // A broker that goes on keeps only its history. One that does not answer any more keeps the rest too.
        for rule in std::mem::take(&mut self.rules) {
            let _ = self.api.ask("DELETE", &format!("/v1/rules/{rule}"), b"");
        }
        if self.has_pack {
            let _ = self.run_long("packs.uninstall", &json!({ "packs": [PACK] }));
        }
    }
}

/// The body of a push, with its number.
pub(crate) fn push_body(number: u64) -> Result<Vec<u8>> {
    let push: Value = serde_json::from_str(PUSH)?;
    let mut body = push.get("body").cloned().unwrap_or_default();
    if let Some(body) = body.as_object_mut() {
        body.insert("number".to_owned(), number.into());
    }
    Ok(serde_json::to_vec(&body)?)
}
