//! Actions that the engine does itself: installing packs, and keys of the datastore.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use imori_automation::value::{Map, Value};
use tokio::sync::oneshot;

use super::outcome::Outcome;
use crate::datastore::Key;
use crate::engine::{Engine, Injection, OwnEvent};
use crate::executions::{Run, Status};
use crate::limits::PAGE_MAX;
use crate::packs::source::PackSource;

impl Engine {
    /// Does what the action's entry point names.
    pub(crate) async fn run_own(self: &Arc<Self>, run: &Run) -> Outcome {
        let done = match run.action_text("entry_point") {
            "packs.install" => self.install_packs(run).await,
            "packs.uninstall" => self.uninstall_packs(run).await,
            "packs.load" => self.load_packs(run).await,
            "packs.setup_virtualenv" => self.build_environments(run).await,
            "packs.get" => self.show_pack(run),
            "core.inject_trigger" => self.inject_by_action(run).await,
            "core.uuid" => Ok(Value::from(uuid())),
            "imori.key_get" => self.key_by_action(run).await,
            "imori.key_set" => self.set_key_by_action(run).await,
            "imori.key_delete" => self.delete_key_by_action(run).await,
            "imori.key_list" => self.list_keys_by_action(run).await,
            other => Err(format!("operation `{other}` is not available here")),
        };
        let (status, key, value) = match done {
            Ok(value) => (Status::Succeeded, "result", value),
            Err(reason) => (Status::Failed, "error", Value::from(reason)),
        };
        let mut result = Map::new();
        result.insert("exit_code", if status == Status::Succeeded { 0 } else { 1 });
        result.insert("stdout", "");
        result.insert("stderr", "");
        if run.action_text("entry_point") == "packs.install" && status == Status::Succeeded {
            result.insert("output", output_of_install(&value));
        }
        result.insert(key, value);
        Outcome { status, result: Value::Map(result) }
    }

    /// Installs packs, and those that they need and that are not installed.
    async fn install_packs(self: &Arc<Self>, run: &Run) -> Result<Value, String> {
        let is_set = |key: &str| run.parameters.get(key).and_then(Value::as_bool) == Some(true);
        let mut installer = self.installer();
        installer.takes_any_version = is_set("force");
        let mut installed = Vec::new();
        let mut wanted: VecDeque<String> = texts(run, "packs").into();
        let mut named: BTreeSet<String> = wanted.iter().cloned().collect();
        while let Some(text) = wanted.pop_front() {
            let source = PackSource::parse(&text).map_err(|error| error.to_string())?;
            let done = installer.install(&source).await.map_err(|error| format!("{text}: {error}"))?;
            let pack = done.pack;
            let name = pack.manifest.reference.clone();
            if let Ok(hosts) = self.python_hosts() {
                hosts.end_pack(&pack.folder);
            }
            let mut shown = Map::new();
            shown.insert("ref", name.as_str());
            shown.insert("version", pack.manifest.version.as_str());
            shown.insert("replaced", done.replaced);
            let problems =
                pack.problems.iter().map(|problem| Value::from(problem.to_string())).collect::<Vec<_>>();
            shown.insert("problems", problems);
            installed.push(Value::Map(shown));
            self.register_packs(&[name]).await.map_err(|error| error.to_string())?;
            if !is_set("skip_dependencies") {
                let registry = self.registry();
                for needed in pack.manifest.dependencies {
                    let source = PackSource::parse(&needed).map_err(|error| error.to_string())?;
                    if !registry.packs.contains_key(source.usual_name()) && named.insert(needed.clone()) {
                        wanted.push_back(needed);
                    }
                }
            }
        }
        Ok(Value::List(installed))
    }

    async fn uninstall_packs(self: &Arc<Self>, run: &Run) -> Result<Value, String> {
        let installer = self.installer();
        for name in texts(run, "packs") {
            let removed = installer.uninstall(&name).await.map_err(|error| error.to_string())?;
            for reference in removed.rules {
                let rule = self.registry().rules.get(&reference).cloned();
                if let Some(rule) = rule {
                    self.delete_rule(&rule).await.map_err(|error| error.to_string())?;
                }
            }
        }
        // Other packs are as they were, and their sensors go on.
        self.register_packs(&texts(run, "packs")).await.map_err(|error| error.to_string())?;
        Ok(Value::Null)
    }

    async fn load_packs(self: &Arc<Self>, run: &Run) -> Result<Value, String> {
        let registered =
            self.register_packs(&texts(run, "packs")).await.map_err(|error| error.to_string())?;
        let mut shown = registered.counts;
        let problem = |(pack, problem): (String, _)| Value::from(format!("{pack}: {problem}"));
        let problems: Vec<Value> = registered
            .problems
            .into_iter()
            .map(|(pack, told): (String, crate::packs::document::PackProblem)| {
                problem((pack, told.to_string()))
            })
            .collect();
        shown.insert("problems", problems);
        Ok(Value::Map(shown))
    }

    async fn build_environments(self: &Arc<Self>, run: &Run) -> Result<Value, String> {
        for name in texts(run, "packs") {
            let pack = self.registry().packs.get(&name).cloned();
            let pack = pack.ok_or_else(|| format!("pack `{name}` is not installed"))?;
            let versions = &pack.pack.manifest.python_versions;
            let built = self.environments().build(&name, &pack.pack.folder, versions).await;
            built.map_err(|error| error.to_string())?;
        }
        Ok(Value::Null)
    }

    fn show_pack(&self, run: &Run) -> Result<Value, String> {
        let name = run.parameters.get("pack").and_then(Value::as_str).unwrap_or_default();
        let registry = self.registry();
        let pack = registry.packs.get(name).ok_or_else(|| format!("pack `{name}` is not installed"))?;
        Ok(Value::Map(pack.document.clone()))
    }

    async fn inject_by_action(self: &Arc<Self>, run: &Run) -> Result<Value, String> {
        let trigger = ["trigger_name", "trigger"].iter().find_map(|key| run.parameters.get(key)?.as_str());
        let trigger = trigger.ok_or("parameter `trigger_name` is missing")?;
        let payload = run.parameters.get("payload").cloned().unwrap_or_default();
        // An action that runs again sends the event of its execution again.
        let (answer, answered) = oneshot::channel();
        let (trigger, key) = (trigger.to_owned(), run.id.clone());
        self.report(OwnEvent::Injection(Injection { trigger, payload, key, answer })).await;
        answered.await.map_err(|_| String::from("the engine stops"))?.map(Value::from)
    }

    async fn key_by_action(self: &Arc<Self>, run: &Run) -> Result<Value, String> {
        let decrypts = run.parameters.get("decrypt").is_some_and(Value::is_truthy);
        let found = self.read_key(&key(run, "name")?, decrypts).await.map_err(|error| error.to_string())?;
        Ok(found.and_then(|document| document.get("value").cloned()).unwrap_or_default())
    }

    async fn set_key_by_action(self: &Arc<Self>, run: &Run) -> Result<Value, String> {
        let value = match run.parameters.get("value") {
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_json(),
            None => return Err(String::from("parameter `value` is missing")),
        };
        let seconds = run.parameters.get("ttl").and_then(Value::as_int).filter(|seconds| *seconds > 0);
        let is_secret =
            ["encrypt", "secret"].iter().any(|name| run.parameters.get(name).is_some_and(Value::is_truthy));
        let set = self.set_key(&key(run, "name")?, value, seconds, is_secret).await;
        set.map(|(document, _)| Value::Map(document)).map_err(|error| error.to_string())
    }

    async fn delete_key_by_action(self: &Arc<Self>, run: &Run) -> Result<Value, String> {
        self.delete_key(&key(run, "name")?).await.map(Value::Bool).map_err(|error| error.to_string())
    }

    async fn list_keys_by_action(self: &Arc<Self>, run: &Run) -> Result<Value, String> {
        let found = self.list_keys(&key(run, "prefix")?, PAGE_MAX, 0).await;
        let found = found.map_err(|error| error.to_string())?;
        Ok(Value::List(found.documents.into_iter().map(Value::Map).collect()))
    }
}

/// Whether a second run of this action does nothing that the first has not done. A deletion fails the second time.
pub(super) fn is_repeatable(run: &Run) -> bool {
    let entry_point = run.action_text("entry_point");
    let is_reading = matches!(entry_point, "imori.key_get" | "imori.key_list" | "core.uuid");
    let is_same_event = entry_point == "core.inject_trigger";
    is_reading || is_same_event || entry_point == "imori.key_set" || entry_point.starts_with("packs.")
}

fn key(run: &Run, name: &str) -> Result<Key, String> {
    let text = |name: &str| run.parameters.get(name).and_then(Value::as_str);
    let scope = text("scope").unwrap_or("system");
    let user = text("user").unwrap_or(run.user());
    Key::new(scope, user, text(name).unwrap_or_default()).map_err(|error| error.to_string())
}

/// The output of StackStorm's workflow `packs.install`, which `st2 pack install` reads.
fn output_of_install(installed: &Value) -> Map {
    let packs = installed.as_list().unwrap_or_default().iter().filter_map(Value::as_map);
    let names: Vec<Value> = packs.clone().filter_map(|pack| pack.get("ref").cloned()).collect();
    let problems = packs.filter_map(|pack| pack.get("problems")?.as_list()).flatten().cloned();
    let mut output = Map::new();
    output.insert("packs_list", names);
    output.insert("warning_list", problems.collect::<Vec<Value>>());
    output.insert("conflict_list", Vec::<Value>::new());
    output.insert("message", "");
    output
}

fn texts(run: &Run, name: &str) -> Vec<String> {
    let list = run.parameters.get(name).and_then(Value::as_list).unwrap_or_default();
    list.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect()
}

/// A random UUID (RFC 9562, version 4).
fn uuid() -> String {
    let mut bytes = [0; 16];
    // A running system has randomness; without it, the result is the nil UUID.
    if getrandom::fill(&mut bytes).is_ok() {
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
    }
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
    [part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)].join("-")
}
