//! Aliases of chat commands: `/actionalias` and `/aliasexecution`.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use imori_automation::aliases::{HelpPage, help_strings};
use imori_automation::value::{Map, Value};

use super::executions::shape;
use crate::aliases::{AliasChangeError, AliasError, Command, acknowledge};
use crate::answers::{Answer, ApiError, ListQuery, created, no_content, object, ok};
use crate::engine::Engine;
use crate::registry::RegisteredAlias;

type Pairs = Query<Vec<(String, String)>>;
type Broker = State<Arc<Engine>>;

pub(super) async fn list(State(engine): Broker, Query(pairs): Pairs) -> Answer {
    let registry = engine.registry();
    let filters: [(&str, &[&str]); 5] = [
        ("id", &["id"]),
        ("ref", &["ref"]),
        ("name", &["name"]),
        ("pack", &["pack"]),
        ("enabled", &["enabled"]),
    ];
    ListQuery::new(pairs).page(registry.aliases.values().map(|alias| &alias.document), &filters)
}

pub(super) async fn show(State(engine): Broker, Path(name): Path<String>) -> Answer {
    ok(find(&engine, &name)?.document.clone())
}

pub(super) async fn create(State(engine): Broker, body: Bytes) -> Answer {
    created(engine.create_alias(object(&body)?, None).await?.document.clone())
}

pub(super) async fn change(State(engine): Broker, Path(name): Path<String>, body: Bytes) -> Answer {
    let alias = find(&engine, &name)?;
    ok(engine.create_alias(object(&body)?, Some(&alias)).await?.document.clone())
}

pub(super) async fn delete(State(engine): Broker, Path(name): Path<String>) -> Answer {
    let alias = find(&engine, &name)?;
    engine.delete_alias(&alias).await?;
    no_content()
}

/// The alias that a command has.
pub(super) async fn match_one(State(engine): Broker, body: Bytes) -> Answer {
    let body = object(&body)?;
    let command = required(&body, "command")?;
    let found = engine.match_alias(command).map_err(|error| ApiError::bad_request(error.to_string()))?;
    let mut shown = Map::new();
    shown.insert("actionalias", found.alias.document.clone());
    shown.insert("display", found.display);
    shown.insert("representation", found.representation);
    ok(shown)
}

/// The commands that enabled aliases describe.
pub(super) async fn help(State(engine): Broker, Query(pairs): Pairs) -> Answer {
    let list = ListQuery::new(pairs);
    let number = |key: &str| -> Result<usize, ApiError> {
        let number = list.get(key).unwrap_or("0").parse::<u32>();
        number
            .map(|number| number as usize)
            .map_err(|_| ApiError::bad_request("limit or offset argument is not an integer"))
    };
    let page = HelpPage {
        filter: list.get("filter").unwrap_or_default(),
        limit: number("limit")?,
        offset: number("offset")?,
    };
    let registry = engine.registry();
    let wanted = |alias: &&Arc<RegisteredAlias>| {
        alias.is_enabled() && list.get("pack").is_none_or(|pack| alias.text("pack") == pack)
    };
    let aliases = registry.aliases.values().filter(wanted).map(|alias| (alias, &alias.alias));
    let (found, available) = help_strings(aliases, page).map_err(ApiError::bad_request)?;
    let shown = found.into_iter().map(|help| {
        let mut shown = Map::new();
        shown.insert("pack", help.key.text("pack"));
        shown.insert("display", help.display);
        shown.insert("description", help.key.document.get("description").cloned());
        Value::Map(shown)
    });
    let mut body = Map::new();
    body.insert("available", available as i64);
    body.insert("helpstrings", shown.collect::<Vec<_>>());
    ok(body)
}

/// Runs the action of the named alias.
pub(super) async fn run(State(engine): Broker, Query(pairs): Pairs, body: Bytes) -> Answer {
    let body = object(&body)?;
    let name = required(&body, "name")?;
    let registry = engine.registry();
    let alias = registry.aliases.values().find(|alias| alias.text("name") == name);
    let alias = alias.ok_or_else(|| {
        let reason = format!("Unable to identify action alias with name \"{name}\".");
        ApiError::new(StatusCode::NOT_FOUND, reason)
    })?;
    if !alias.is_enabled() {
        return Err(ApiError::bad_request(format!("Action alias with name \"{name}\" is disabled.")));
    }
    let format = required(&body, "format")?;
    let command = command(&engine, &body)?;
    let secrets = ListQuery::new(pairs).is_set("show_secrets");
    let results = results(&engine, alias, format, false, &command, secrets).await?;
    created(results.into_iter().next().unwrap_or_default())
}

/// Runs the action of the alias that the command has.
pub(super) async fn match_and_run(State(engine): Broker, Query(pairs): Pairs, body: Bytes) -> Answer {
    let body = object(&body)?;
    let command = command(&engine, &body)?;
    let found = engine.match_alias(&command.text);
    let found = found.map_err(|error| ApiError::bad_request(error.to_string()))?;
    let secrets = ListQuery::new(pairs).is_set("show_secrets");
    let (format, is_multiple) = (found.representation.as_str(), found.is_multiple);
    let results = results(&engine, &found.alias, format, is_multiple, &command, secrets).await?;
    created([("results", results)].into_iter().collect::<Map>())
}

async fn results(
    engine: &Arc<Engine>,
    alias: &RegisteredAlias,
    format: &str,
    is_multiple: bool,
    command: &Command,
    shows_secrets: bool,
) -> Result<Vec<Value>, ApiError> {
    let executions = engine.run_alias(alias, format, is_multiple, command).await?;
    let result = |execution: crate::executions::Execution| {
        let mut result = Map::new();
        result.insert("execution", shape(engine, execution.document().clone(), shows_secrets));
        result.insert("actionalias", alias.document.clone());
        acknowledge(alias, &mut result);
        Value::Map(result)
    };
    Ok(executions.into_iter().map(result).collect())
}

fn command(engine: &Engine, body: &Map) -> Result<Command, ApiError> {
    let value = |key: &str| body.get(key).cloned().unwrap_or_default();
    let route = match value("notification_route") {
        Value::Null => value("notification_channel"),
        route => route,
    };
    Ok(Command {
        text: required(body, "command")?.to_owned(),
        chat_user: value("user"),
        source_channel: value("source_channel"),
        source_context: value("source_context"),
        route,
        user: engine.user().to_owned(),
    })
}

fn required<'a>(body: &'a Map, key: &str) -> Result<&'a str, ApiError> {
    let found = body.get(key).and_then(Value::as_str);
    found.ok_or_else(|| ApiError::bad_request(format!("'{key}' is a required property")))
}

fn find(engine: &Engine, name: &str) -> Result<Arc<RegisteredAlias>, ApiError> {
    let registry = engine.registry();
    let by_id = || registry.aliases.values().find(|alias| alias.text("id") == name);
    registry
        .aliases
        .get(name)
        .or_else(by_id)
        .cloned()
        .ok_or_else(|| ApiError::not_found("action alias", name))
}

impl From<AliasChangeError> for ApiError {
    fn from(error: AliasChangeError) -> ApiError {
        match error {
            AliasChangeError::Wrong(reason) => ApiError::bad_request(reason),
            AliasChangeError::Exists(reference, id) => {
                ApiError::conflict(format!("action alias `{reference}` exists already"), &id)
            }
            AliasChangeError::OfPack(pack) => ApiError::bad_request(format!(
                "the alias belongs to the folder of pack `{pack}`; change its file there and register the pack"
            )),
            AliasChangeError::Store(error) => error.into(),
        }
    }
}

impl From<AliasError> for ApiError {
    fn from(error: AliasError) -> ApiError {
        match error {
            AliasError::Wrong(reason) => ApiError::bad_request(reason),
            AliasError::Refused(error) => error.into(),
        }
    }
}
