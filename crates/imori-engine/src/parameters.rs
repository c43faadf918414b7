//! Parameters of executions: rendered when they are requested, completed when they run.

use std::sync::Arc;

use imori_automation::orquesta::Actions;
use imori_automation::parameters::{
    Defaults, MASK, ParameterContext, action_schema, immutable_parameters, mask_parameters,
    merged_parameters, render_final_parameters, render_live_parameters,
};
use imori_automation::templates::{Context, Lookup};
use imori_automation::value::{Map, Value};
use tokio::sync::watch;

use crate::datastore::Key;
use crate::engine::Engine;
use crate::executions::{Execution, Run};
use crate::outputs::ResultPlace;
use crate::registry::Registry;

/// The datastore as templates read it: `system.NAME`, `user.NAME`, or `NAME` for the system's.
struct Datastore {
    engine: Arc<Engine>,
    user: String,
}

impl Lookup for Datastore {
    fn look_up(&self, path: &[&str]) -> Option<Value> {
        let (scope, name) = match path {
            ["system", rest @ ..] => ("system", rest),
            ["user", rest @ ..] => ("user", rest),
            rest => ("system", rest),
        };
        let key = Key::new(scope, &self.user, &name.join(".")).ok()?;
        let document = self.engine.read_key_now(&key)?;
        document.get("value").cloned()
    }
}

impl Engine {
    /// The parameters of a request, rendered over each other; `literals` are values already, and `contexts` are further
    /// names for templates.
    ///
    /// # Errors
    /// A template fails, as a sentence.
    pub(crate) fn live_parameters(
        self: &Arc<Self>,
        action: &Map,
        (parameters, literals): (&Map, &Map),
        user: &str,
        contexts: &[(&str, Value)],
    ) -> Result<Map, String> {
        let (runner, own) = schemas(&self.registry(), action);
        let mut context = self.parameter_context(action, user, Map::new());
        context.literals = literals.clone();
        for (name, value) in contexts {
            context.additional.insert(*name, value.clone());
        }
        render_live_parameters(&runner, &own, parameters, &context).map_err(|error| error.to_string())
    }

    /// Checks rendered parameters by the schemas of the action and its runner.
    ///
    /// # Errors
    /// A parameter is wrong, as a sentence.
    pub(crate) fn check_parameters(&self, action: &Map, parameters: &Map) -> Result<(), String> {
        let (runner, own) = schemas(&self.registry(), action);
        let reference = action.get("ref").and_then(Value::as_str).unwrap_or_default();
        immutable_parameters(&runner, &own, parameters).map_err(|error| error.to_string())?;
        let schema = action_schema(reference, &runner, &own).map_err(|error| error.to_string())?;
        let checked = schema.validate(&Value::Map(parameters.clone()), Defaults::AssignedOrNone);
        checked.map(drop).map_err(|error| error.to_string())
    }

    /// Everything that the runner of an execution needs.
    ///
    /// # Errors
    /// The action is gone or disabled, or its parameters cannot be completed, as a sentence.
    pub(crate) fn prepare(
        self: &Arc<Self>,
        execution: &Execution,
        canceled: watch::Receiver<bool>,
    ) -> Result<Run, String> {
        let registry = self.registry();
        let reference = execution.text("action");
        let action =
            registry.actions.get(reference).ok_or_else(|| format!("action `{reference}` does not exist"))?;
        let (runner, own) = schemas(&registry, action);
        let context = execution.map("context").cloned().unwrap_or_default();
        let user = context.get("user").and_then(Value::as_str).unwrap_or(self.user()).to_owned();
        let parameters = execution.map("parameters").cloned().unwrap_or_default();
        let given = self.parameter_context(action, &user, context.clone());
        let (runner_parameters, parameters) =
            render_final_parameters(&runner, &own, &parameters, &given).map_err(|error| error.to_string())?;
        let pack = registry.packs.get(execution.text("pack"));
        Ok(Run {
            id: execution.text("id").to_owned(),
            action: Arc::clone(action),
            pack_folder: pack.map(|pack| pack.pack.folder.clone()),
            folder: self.run_folder(execution.text("id")),
            runner_parameters,
            parameters,
            config: given.config,
            context,
            output_bytes_max: self.broker.settings().config().automation.output_bytes_max.0,
            place: ResultPlace::among(&self.results),
            canceled,
        })
    }

    /// The configuration of a pack for what runs without an execution. Waits for the store, so that it has no place in a
    /// task.
    pub(crate) fn pack_config(self: &Arc<Self>, pack: &str) -> Map {
        let user = self.user().to_owned();
        self.config(pack, Arc::new(Datastore { engine: Arc::clone(self), user }))
    }

    /// The names of the datastore, for templates outside of an action's parameters.
    pub(crate) fn template_context(self: &Arc<Self>, user: &str) -> Context {
        let datastore: Arc<dyn Lookup> =
            Arc::new(Datastore { engine: Arc::clone(self), user: user.to_owned() });
        let engine = Arc::clone(self);
        let decrypt = Arc::new(move |sealed: &str| engine.cipher.decrypt(sealed));
        Context::new().with_lookup("st2kv", datastore).with_decrypt(decrypt)
    }

    /// What the templates of an action's parameters read.
    pub(crate) fn parameter_context(
        self: &Arc<Self>,
        action: &Map,
        user: &str,
        action_context: Map,
    ) -> ParameterContext {
        let pack = action.get("pack").and_then(Value::as_str).unwrap_or_default();
        let datastore: Arc<dyn Lookup> =
            Arc::new(Datastore { engine: Arc::clone(self), user: user.to_owned() });
        let engine = Arc::clone(self);
        ParameterContext {
            action_context,
            config: self.config(pack, Arc::clone(&datastore)),
            datastore: Some(datastore),
            decrypt: Some(Arc::new(move |sealed| engine.cipher.decrypt(sealed))),
            additional: Map::new(),
            literals: Map::new(),
        }
    }
}

/// The parameters of an execution's document without the secrets of its action and runner; masks all if the action is
/// gone, because nothing says which were secret.
pub(crate) fn masked_parameters(registry: &Registry, execution: &Map) -> Map {
    let Some(parameters) = execution.get("parameters").and_then(Value::as_map) else { return Map::new() };
    let reference = execution.get("action").and_then(Value::as_str).unwrap_or_default();
    match registry.actions.get(reference) {
        Some(action) => {
            let (runner, own) = schemas(registry, action);
            mask_parameters(parameters, &merged_parameters(&runner, &own))
        }
        None => parameters.iter().map(|(name, _)| (name, MASK)).collect(),
    }
}

/// The registered actions, as the inspection of a workflow asks for them.
pub(crate) struct RegisteredActions(pub(crate) Arc<Registry>);

impl Actions for RegisteredActions {
    fn parameters(&self, reference: &str) -> Option<Map> {
        let (runner, own) = schemas(&self.0, self.0.actions.get(reference)?);
        Some(merged_parameters(&runner, &own))
    }
}

/// The schemas of the runner's and of the action's parameters.
fn schemas(registry: &Registry, action: &Map) -> (Map, Map) {
    let runner = action.get("runner_type").and_then(Value::as_str).unwrap_or_default();
    let runner =
        registry.runners.get(runner).and_then(|runner| runner.get("runner_parameters")?.as_map().cloned());
    let own = action.get("parameters").and_then(Value::as_map).cloned();
    (runner.unwrap_or_default(), own.unwrap_or_default())
}
