//! Registering packs: at the start, and when a pack was installed, changed or removed.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use imori_automation::ids::Id;
use imori_automation::value::{Map, Value};
use tracing::warn;

use super::policies::collision;
use crate::engine::Engine;
use crate::limits::{HTTP_TIMEOUT, INDEX_BYTES_MAX, OBJECTS_LOADED};
use crate::packs::built_in::write_built_in_packs;
use crate::packs::document::PackProblem;
use crate::packs::install::Installer;
use crate::packs::pack::Pack;
use crate::packs::read::PackReader;
use crate::packs::runners::RunnerTypes;
use crate::registry::{
    RegisteredAlias, RegisteredPack, RegisteredPolicy, RegisteredRule, RegisteredSensor, Registry,
};
use crate::store::{
    ACTIONS, ALIASES, POLICIES, Query, RULES, SENSORS, StoreError, TRIGGER_TYPES, Transaction,
};

/// The result of a registration of packs.
#[derive(Debug, Default)]
pub(crate) struct Registered {
    /// How many objects of each kind there are.
    pub(crate) counts: Map,
    /// What is wrong with files of packs, with the pack.
    pub(crate) problems: Vec<(String, PackProblem)>,
    /// The packs whose files had changed.
    pub(crate) changed: Vec<String>,
}

impl Engine {
    /// Registers everything at the start.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(crate) async fn load(self: &Arc<Self>) -> Result<(), StoreError> {
        let registered = self.register_packs(&[]).await?;
        for (pack, problem) in registered.problems {
            warn!(pack, %problem, "a file of a pack is not registered");
        }
        Ok(())
    }

    /// Reads the packs of these names anew and those whose files have changed, or all; packs whose folders are gone are
    /// unregistered.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub(crate) async fn register_packs(self: &Arc<Self>, names: &[String]) -> Result<Registered, StoreError> {
        self.register(|name| names.is_empty() || names.iter().any(|given| given == name)).await
    }

    /// Reads the packs anew whose files have changed, and those that `is_meant` names.
    pub(super) async fn register(
        self: &Arc<Self>,
        is_meant: impl Fn(&str) -> bool,
    ) -> Result<Registered, StoreError> {
        let _registering = self.registering().await;
        let reader = self.pack_reader();
        let built_in = self.built_in_folder();
        let folders = self.options.pack_folders();
        let engine = Arc::clone(self);
        let read = tokio::task::spawn_blocking(move || {
            // What is written from here on is a change that the next look finds.
            let changed = engine.note_pack_states();
            let (mut packs, mut refused) = (Vec::new(), Vec::new());
            write_built_in_packs(&built_in)?;
            for folder in [built_in].into_iter().chain(folders) {
                let (found, wrong) = reader.packs(&folder);
                packs.extend(found);
                refused.extend(wrong);
            }
            Ok::<_, std::io::Error>((packs, refused, changed))
        });
        let (packs, refused, changed) = read.await.map_err(|error| StoreError::Io(error.to_string()))??;
        let mut registered = Registered::default();
        for (name, problems) in refused {
            registered.problems.extend(problems.into_iter().map(|problem| (name.clone(), problem)));
        }

        let mut fresh = self.stored().await?;
        let policy_choices = self.stored_policies(&mut fresh).await?;
        let choices = self.sensor_choices().await?;
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        let mut transaction = Transaction::new();
        let mut rules = Vec::new();
        for pack in packs {
            let name = pack.manifest.reference.clone();
            let is_meant = is_meant(&name) || changed.contains(&name);
            if is_meant {
                let numbers = [
                    ("actions", pack.actions.len()),
                    ("rules", pack.rules.len()),
                    ("triggers", pack.trigger_types.len()),
                    ("sensors", pack.sensors.len()),
                    ("aliases", pack.aliases.len()),
                    ("policies", pack.policies.len()),
                ];
                numbers.into_iter().for_each(|(key, number)| *counts.entry(key).or_insert(0) += number);
                registered
                    .problems
                    .extend(pack.problems.iter().map(|problem| (name.clone(), problem.clone())));
            }
            registered.problems.extend(add_aliases(&mut fresh, &pack).map(|problem| (name.clone(), problem)));
            let wrong = add_policies(&mut fresh, &pack, &policy_choices);
            registered.problems.extend(wrong.into_iter().map(|problem| (name.clone(), problem)));
            rules.extend(pack.rules.iter().cloned().map(|rule| (name.clone(), rule)));
            add(&mut fresh, &pack);
            let generation = is_meant.then(|| self.count());
            self.add_sensors(&mut fresh, &pack, generation, &choices);
        }
        let old = self.registry();
        for (pack, rule) in rules {
            let mut document = rule.document.value().as_map().cloned().unwrap_or_default();
            // A rule that an operator has switched on or off stays so.
            if let Some(before) = fresh.rules.get(&rule.reference).or_else(|| old.rules.get(&rule.reference))
            {
                document.insert("enabled", before.rule.is_enabled);
            }
            match RegisteredRule::read(document, &fresh.trigger_types) {
                Ok(read) => {
                    transaction.put(&RULES, read.document.clone());
                    fresh.rules.insert(read.reference().to_owned(), Arc::new(read));
                }
                Err(reason) => registered.problems.push((pack, rule.document.problem(&[], reason))),
            }
        }
        fresh.rebuild();
        fresh.index_policies();
        if self.store.exists() || !transaction.is_empty() {
            self.store.commit(transaction).await?;
        }
        self.change(|registry| *registry = fresh.clone());
        self.triggers_changed();
        self.apply_limits().await;
        registered.changed = changed;
        registered.counts = counts.into_iter().map(|(key, number)| (key, number as i64)).collect();
        Ok(registered)
    }

    /// What the store has of actions, trigger types and rules.
    async fn stored(&self) -> Result<Registry, StoreError> {
        let mut registry = Registry::default();
        let by_reference = |document: Map| {
            let reference = document.get("ref").and_then(Value::as_str).unwrap_or_default().to_owned();
            (reference, Arc::new(document))
        };
        for runner in RunnerTypes::built_in().iter() {
            let Value::Map(mut document) = runner.to_document() else { continue };
            document.insert("id", Id::derived(0, &[b"runner", runner.name.as_bytes()]).to_string());
            registry.runners.insert(runner.name.clone(), Arc::new(document));
        }
        let actions = self.store.find(Query::all(&ACTIONS, OBJECTS_LOADED)).await?;
        registry.actions = actions.documents.into_iter().map(by_reference).collect();
        let types = self.store.find(Query::all(&TRIGGER_TYPES, OBJECTS_LOADED)).await?;
        registry.trigger_types = types.documents.into_iter().map(by_reference).collect();
        let aliases = self.store.find(Query::all(&ALIASES, OBJECTS_LOADED)).await?;
        for document in aliases.documents {
            match RegisteredAlias::stored(document) {
                Ok(alias) => drop(registry.aliases.insert(alias.text("ref").to_owned(), Arc::new(alias))),
                Err(reason) => warn!(reason, "a stored alias cannot be read"),
            }
        }
        let rules = self.store.find(Query::all(&RULES, OBJECTS_LOADED)).await?;
        for document in rules.documents {
            let reference = document.get("ref").and_then(Value::as_str).unwrap_or_default().to_owned();
            match RegisteredRule::read_stored(document) {
                Ok(rule) => drop(registry.rules.insert(reference, Arc::new(rule))),
                Err(reason) => warn!(rule = reference, reason, "a stored rule cannot be read"),
            }
        }
        Ok(registry)
    }

    /// Adds the policies that the store has. Returns which policies of packs operators have enabled or disabled.
    async fn stored_policies(&self, registry: &mut Registry) -> Result<BTreeMap<String, bool>, StoreError> {
        let mut choices = BTreeMap::new();
        for document in self.store.find(Query::all(&POLICIES, OBJECTS_LOADED)).await?.documents {
            let text = |key: &str| document.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
            let reference = text("ref");
            if !text("metadata_file").is_empty() {
                choices.insert(reference, document.get("enabled") != Some(&Value::Bool(false)));
                continue;
            }
            match RegisteredPolicy::read(document) {
                Ok(policy) => drop(registry.policies.insert(reference, Arc::new(policy))),
                Err(reason) => warn!(policy = reference, reason, "a stored policy cannot be read"),
            }
        }
        Ok(choices)
    }

    /// Sensors that operators have enabled or disabled.
    async fn sensor_choices(&self) -> Result<BTreeMap<String, bool>, StoreError> {
        let stored = self.store.find(Query::all(&SENSORS, OBJECTS_LOADED)).await?;
        let choice = |document: Map| {
            Some((document.get("id")?.as_str()?.to_owned(), document.get("enabled")?.as_bool()?))
        };
        Ok(stored.documents.into_iter().filter_map(choice).collect())
    }

    /// Adds the sensors of a pack. Without a generation, they keep the one that they have.
    fn add_sensors(
        &self,
        registry: &mut Registry,
        pack: &Pack,
        generation: Option<u64>,
        choices: &BTreeMap<String, bool>,
    ) {
        let old = self.registry();
        for definition in &pack.sensors {
            let reference = definition.reference();
            let mut sensor = RegisteredSensor::new(definition, pack, choices.get(&reference).copied());
            sensor.is_on_demand = pack.folder.starts_with(self.built_in_folder());
            let before = || old.sensors.get(&reference).map_or(0, |old| old.generation);
            sensor.generation = generation.unwrap_or_else(before);
            registry.sensors.insert(reference, Arc::new(sensor));
        }
    }

    /// The folder into which packs are installed.
    pub(crate) fn packs_folder(&self) -> PathBuf {
        self.options.packs_folder()
    }

    /// The folder of operators' configurations of packs.
    pub(crate) fn configs_folder(&self) -> PathBuf {
        self.options.configs_folder()
    }

    pub(super) fn built_in_folder(&self) -> PathBuf {
        self.options.folder.join("built-in")
    }

    fn pack_reader(&self) -> PackReader {
        PackReader {
            runners: RunnerTypes::built_in(),
            overrides: Some(self.options.folder.join("overrides")),
        }
    }

    /// Installs packs into their folder.
    pub(crate) fn installer(&self) -> Installer {
        let mut installer =
            Installer::new(self.packs_folder(), self.environments().clone(), self.pack_reader());
        installer.indexes.clone_from(&self.options.indexes);
        installer.fetch = Arc::new(fetch);
        installer
    }
}

/// Fetches the index of packs.
fn fetch(address: &str) -> Result<Vec<u8>, String> {
    let agent: ureq::Agent = ureq::Agent::config_builder().timeout_global(Some(HTTP_TIMEOUT)).build().into();
    let response = agent.get(address).call().map_err(|error| error.to_string())?;
    let body = response.into_body().into_with_config().limit(INDEX_BYTES_MAX as u64).read_to_vec();
    body.map_err(|error| error.to_string())
}

/// Adds what a pack brings.
fn add(registry: &mut Registry, pack: &Pack) {
    let name = &pack.manifest.reference;
    let identified = |kind: &[u8], reference: &str, document: Value| -> Map {
        let Value::Map(mut document) = document else { return Map::new() };
        document.insert("id", Id::derived(0, &[kind, reference.as_bytes()]).to_string());
        document
    };
    for action in &pack.actions {
        let reference = action.reference();
        let document = identified(b"action", &reference, action.to_document());
        registry.actions.insert(reference, Arc::new(document));
    }
    for kind in &pack.trigger_types {
        let reference = kind.reference();
        let document = identified(b"trigger_type", &reference, kind.to_document());
        registry.trigger_types.insert(reference, Arc::new(document));
    }
    let registered =
        RegisteredPack { document: identified(b"pack", name, pack.to_document()), pack: pack.clone() };
    registry.packs.insert(name.clone(), Arc::new(registered));
}

/// Adds the policies of a pack, and returns those that are wrong or one too many for their action.
fn add_policies(registry: &mut Registry, pack: &Pack, choices: &BTreeMap<String, bool>) -> Vec<PackProblem> {
    let mut problems = Vec::new();
    for definition in &pack.policies {
        let reference = definition.reference();
        let read = RegisteredPolicy::new(definition).and_then(|policy| {
            if registry.policies.get(&reference).is_some_and(|other| !other.is_of_pack()) {
                return Err(format!("policy `{reference}` was created by the API; delete that one"));
            }
            match registry.colliding_policy(&policy) {
                Some(other) => Err(collision(&policy, other)),
                None => Ok(policy),
            }
        });
        match read {
            Ok(policy) => {
                let enabled = choices.get(&reference).copied().unwrap_or(definition.enabled);
                registry.policies.insert(reference, Arc::new(policy.with_enabled(enabled)));
            }
            Err(reason) => problems.push(PackProblem::of(&definition.metadata_file, reason)),
        }
    }
    problems
}

/// Adds the aliases of a pack, and returns what is wrong with their formats.
fn add_aliases(registry: &mut Registry, pack: &Pack) -> impl Iterator<Item = PackProblem> {
    let mut problems = Vec::new();
    for definition in &pack.aliases {
        let file = &definition.metadata_file;
        match RegisteredAlias::new(definition) {
            Ok(alias) => {
                let wrong = alias.alias.problems().map(|problem| PackProblem::of(file, problem.to_string()));
                problems.extend(wrong.map(PackProblem::as_warning));
                registry.aliases.insert(definition.reference(), Arc::new(alias));
            }
            Err(reason) => problems.push(PackProblem::of(file, reason)),
        }
    }
    problems.into_iter()
}
