//! Chat commands: the alias is found, and its action runs with the parameters of the command.

use std::fmt;
use std::sync::Arc;

use imori_automation::aliases::{MatchError, match_command};
use imori_automation::templates::{Context, render_value};
use imori_automation::value::{Map, Value};

use crate::engine::Engine;
use crate::executions::{Execution, Origin};
use crate::registry::RegisteredAlias;
use crate::requests::RequestError;

/// A chat command.
#[derive(Debug, Clone, Default)]
pub(crate) struct Command {
    /// Its text.
    pub(crate) text: String,
    /// The user in the chat.
    pub(crate) chat_user: Value,
    /// The channel in the chat.
    pub(crate) source_channel: Value,
    /// The message's envelope, for adapters that send it.
    pub(crate) source_context: Value,
    /// The route for the notification of the result.
    pub(crate) route: Value,
    /// The user for whom the action runs.
    pub(crate) user: String,
}

/// Why a command runs nothing.
#[derive(Debug)]
pub enum AliasError {
    /// The command is wrong, as a sentence.
    Wrong(String),
    /// The action is refused.
    Refused(RequestError),
}

impl fmt::Display for AliasError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AliasError::Wrong(reason) => f.write_str(reason),
            AliasError::Refused(error) => error.fmt(f),
        }
    }
}

impl From<RequestError> for AliasError {
    fn from(error: RequestError) -> AliasError {
        AliasError::Refused(error)
    }
}

/// The alias of a command, with the form that it has.
#[derive(Debug, Clone)]
pub(crate) struct Matched {
    /// The alias.
    pub(crate) alias: Arc<RegisteredAlias>,
    /// The form that help shows.
    pub(crate) display: Option<String>,
    /// The format.
    pub(crate) representation: String,
    /// Whether each place of the command runs the action.
    pub(crate) is_multiple: bool,
}

impl Engine {
    /// The enabled alias of a command.
    ///
    /// # Errors
    /// No alias or several have such a command.
    pub(crate) fn match_alias(&self, command: &str) -> Result<Matched, MatchError> {
        let registry = self.registry();
        let enabled = registry.aliases.values().filter(|alias| alias.is_enabled());
        let found = match_command(&enabled.map(|alias| (alias, &alias.alias)), command)?;
        Ok(Matched {
            alias: Arc::clone(found.key),
            display: found.form.display.clone(),
            representation: found.form.representation.clone(),
            is_multiple: found.form.is_multiple,
        })
    }

    /// Runs the action of an alias for a command, once or for each of its places.
    ///
    /// # Errors
    /// The alias has no such format, the command not this format, or the action is refused.
    pub(crate) async fn run_alias(
        self: &Arc<Self>,
        alias: &RegisteredAlias,
        representation: &str,
        is_multiple: bool,
        command: &Command,
    ) -> Result<Vec<Execution>, AliasError> {
        let form = alias.alias.form(representation).ok_or_else(|| {
            let name = alias.text("name");
            AliasError::Wrong(format!(
                "Format string \"{representation}\" is not available on the alias \"{name}\""
            ))
        })?;
        let wrong = |error: &dyn fmt::Display| AliasError::Wrong(error.to_string());
        let format = form.format.as_ref().map_err(|error| wrong(error))?;
        let found = match is_multiple {
            true => format.all_parameters(&command.text),
            false => format.parameters(&command.text).map(|found| vec![found]),
        };
        let mut found = found.map_err(|error| wrong(&error))?;
        let context = context(alias, command);
        if let Some(immutable) = alias.map("immutable_parameters").filter(|map| !map.is_empty()) {
            let rendered = self.rendered_immutable(immutable, &context, &command.user)?;
            for parameters in &mut found {
                add_immutable(parameters, &rendered)?;
            }
        }
        let mut executions = Vec::new();
        for mut parameters in found {
            self.split_lists(alias.text("action_ref"), &mut parameters);
            let origin = Origin { user: command.user.clone(), context: context.clone(), ..Origin::default() };
            executions.push(self.request(alias.text("action_ref"), parameters, origin).await?);
        }
        Ok(executions)
    }

    fn rendered_immutable(
        self: &Arc<Self>,
        immutable: &Map,
        context: &Map,
        user: &str,
    ) -> Result<Map, AliasError> {
        let names =
            context.iter().fold(self.template_context(user), |names, (name, value)| names.with(name, value));
        let mut rendered = Map::new();
        for (name, value) in immutable.iter() {
            let value = render_value(value, &names).map_err(|error| AliasError::Wrong(error.to_string()))?;
            rendered.insert(name, value);
        }
        Ok(rendered)
    }

    /// Splits texts for parameters that are lists: chats write lists with commas.
    fn split_lists(&self, action: &str, parameters: &mut Map) {
        let registry = self.registry();
        let Some(action) = registry.actions.get(action) else { return };
        let schema = action.get("parameters");
        for (name, value) in parameters.iter_mut() {
            let kind = schema.and_then(|schema| schema.get(name)?.get("type")?.as_str());
            if let (Some("array"), Value::String(text)) = (kind, &*value) {
                *value = Value::List(text.split(',').map(|item| Value::from(item.trim())).collect());
            }
        }
    }
}

/// The context of the executions of a command.
fn context(alias: &RegisteredAlias, command: &Command) -> Map {
    let mut data = Map::new();
    data.insert("user", command.chat_user.clone());
    data.insert("source_channel", command.source_channel.clone());
    data.insert("source_context", command.source_context.clone());
    let mut on_complete = Map::new();
    on_complete.insert("routes", vec![command.route.clone()]);
    on_complete.insert("data", data);
    let mut context = Map::new();
    context.insert("action_alias_ref", alias_reference(alias));
    context.insert("api_user", command.chat_user.clone());
    context.insert("user", command.user.as_str());
    context.insert("source_channel", command.source_channel.clone());
    let notify: Map = [("on-complete", on_complete)].into_iter().collect();
    context.insert("notify", notify);
    context
}

fn alias_reference(alias: &RegisteredAlias) -> Map {
    [("id", alias.text("id")), ("ref", alias.text("ref")), ("name", alias.text("name"))].into_iter().collect()
}

/// Adds the alias's own parameters, which a command may not set.
pub fn add_immutable(parameters: &mut Map, immutable: &Map) -> Result<(), AliasError> {
    let set: Vec<&str> =
        immutable.iter().map(|(name, _)| name).filter(|name| parameters.contains_key(name)).collect();
    if !set.is_empty() {
        let names = set.join(",");
        return Err(AliasError::Wrong(format!("Immutable arguments cannot be overriden: {names}")));
    }
    for (name, value) in immutable.iter() {
        parameters.insert(name, value.clone());
    }
    Ok(())
}

/// What the chat is told at once: the parts `message` and `extra` of a result with `execution` and `actionalias`.
pub fn acknowledge(alias: &RegisteredAlias, result: &mut Map) {
    let Some(ack) = alias.map("ack") else { return };
    for (key, shown) in [("format", "message"), ("extra", "extra")] {
        let Some(value) = ack.get(key) else { continue };
        let names = result.iter().fold(Context::new(), |names, (name, value)| names.with(name, value));
        let rendered = match value {
            Value::Map(map) => map
                .iter()
                .map(|(name, value)| Ok((name, render_value(value, &names)?)))
                .collect::<Result<Map, _>>()
                .map(Value::Map),
            value => render_value(value, &names),
        };
        let rendered = rendered.unwrap_or_else(|error: imori_automation::templates::TemplateError| {
            Value::from(format!("Cannot render \"{key}\" in field \"ack\" for alias. {error}"))
        });
        result.insert(shown, rendered);
    }
}
