//! Parameters of an execution, rendered over each other.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::ParameterError;
use super::cast::cast;
use super::graph::Graph;
use crate::templates::{Context, Decrypt, Lookup, Template};
use crate::value::{Map, Value};

/// What the templates of parameters read besides other parameters.
#[derive(Clone, Default)]
pub struct ParameterContext {
    /// The context of the execution: `action_context`.
    pub action_context: Map,
    /// The configuration of the pack: `config_context`.
    pub config: Map,
    /// The datastore: `st2kv`. Without one it has no values.
    pub datastore: Option<Arc<dyn Lookup>>,
    /// What decrypts for `decrypt_kv`.
    pub decrypt: Option<Arc<Decrypt>>,
    /// Further names, which stand before all others.
    pub additional: Map,
    /// Parameters that are values already, as those of an execution that runs again: text in them is no template.
    pub literals: Map,
}

const DATASTORE: &str = "st2kv";
const ACTION_CONTEXT: &str = "action_context";
const CONFIG_CONTEXT: &str = "config_context";

/// Renders the parameters that an execution is requested with, and the defaults of others that are templates. All are
/// cast to the types of their schemas.
///
/// # Errors
/// A parameter refers to one that there is not, or to itself, or it cannot be rendered or cast.
pub fn render_live_parameters(
    runner_parameters: &Map,
    action_parameters: &Map,
    parameters: &Map,
    context: &ParameterContext,
) -> Result<Map, ParameterError> {
    let mut graph = graph(context);
    for (name, value) in context.additional.iter() {
        graph.set_value(name, value);
    }
    for (name, value) in context.literals.iter() {
        graph.set_value(name, value);
    }
    for (name, value) in parameters.iter() {
        graph.set(name, value);
    }
    let schemas = [action_parameters, runner_parameters];
    set_defaults(&mut graph, schemas);
    let rendered = rendered(&graph, context)?;
    let mut live = Map::new();
    for (name, _) in context.literals.iter().chain(parameters.iter()) {
        live.insert(name, cast_by(name, &rendered, schemas)?);
    }
    let given = live.clone();
    add_rendered_defaults(&mut live, &rendered, &given, schemas)?;
    Ok(live)
}

/// Completes the parameters of an execution with defaults, and splits them into those of the runner and those of the
/// action. The given ones are values by now and are not rendered again.
///
/// # Errors
/// As [`render_live_parameters`].
pub fn render_final_parameters(
    runner_parameters: &Map,
    action_parameters: &Map,
    parameters: &Map,
    context: &ParameterContext,
) -> Result<(Map, Map), ParameterError> {
    let mut graph = graph(context);
    for (name, value) in parameters.iter() {
        graph.set_value(name, value);
    }
    let schemas = [action_parameters, runner_parameters];
    set_defaults(&mut graph, schemas);
    let rendered = rendered(&graph, context)?;
    let mut of_runner = Map::new();
    let mut of_action = Map::new();
    for (name, _) in rendered.iter() {
        if runner_parameters.contains_key(name) {
            of_runner.insert(name, cast_by(name, &rendered, schemas)?);
        } else if action_parameters.contains_key(name) {
            of_action.insert(name, cast_by(name, &rendered, schemas)?);
        }
    }
    Ok((of_runner, of_action))
}

fn graph(context: &ParameterContext) -> Graph {
    let mut graph = Graph::default();
    // The datastore stands beside the values: it is asked when a template needs it.
    graph.set_value(DATASTORE, &Value::Null);
    graph.set_value(ACTION_CONTEXT, &Value::Map(context.action_context.clone()));
    graph.set_value(CONFIG_CONTEXT, &Value::Map(context.config.clone()));
    graph
}

/// Sets the defaults of what is missing, `None` or immutable.
fn set_defaults(graph: &mut Graph, schemas: [&Map; 2]) {
    for schemas in schemas {
        for (name, schema) in schemas.iter() {
            let immutable = schema.get("immutable").is_some_and(Value::is_truthy);
            if immutable || graph.value(name).is_none_or(Value::is_null) {
                graph.set(name, schema.get("default").unwrap_or(&Value::Null));
            }
        }
    }
}

/// The values of all names, with templates rendered.
fn rendered(graph: &Graph, context: &ParameterContext) -> Result<Map, ParameterError> {
    let mut templates = Context::new();
    if let Some(decrypt) = &context.decrypt {
        templates = templates.with_decrypt(Arc::clone(decrypt));
    }
    let datastore = context.datastore.clone().unwrap_or_else(|| Arc::new(NoDatastore));
    let mut values: BTreeMap<&str, Value> = BTreeMap::new();
    for name in graph.order()? {
        let value = match graph.template(name) {
            Some(template) => render(template, &templates).map_err(|error| {
                ParameterError::new(format!("Failed to render parameter \"{name}\": {error}"))
            })?,
            None => graph.value(name).cloned().unwrap_or_default(),
        };
        templates = match name {
            DATASTORE => templates.with_lookup(DATASTORE, Arc::clone(&datastore)),
            name => templates.with(name, &value),
        };
        values.insert(name, value);
    }
    // In the order in which the names became known, not the one in which they are rendered.
    let named = graph.names().filter_map(|name| values.remove(name).map(|value| (name.to_owned(), value)));
    Ok(named.collect())
}

/// Renders a parameter: a text, or a list or an object as JSON.
fn render(template: &Value, context: &Context) -> Result<Value, String> {
    let error = |error: crate::templates::TemplateError| error.to_string();
    match template {
        Value::List(_) | Value::Map(_) => {
            let source = with_types_kept(&template.to_json());
            let rendered =
                Template::compile(&source).and_then(|template| template.render(context)).map_err(error)?;
            Value::from_json(rendered.as_bytes())
                .map_err(|error| format!("the rendered value is no JSON: {error}"))
        }
        template => {
            let source = template.as_str().unwrap_or_default();
            let rendered =
                Template::compile(source).and_then(|template| template.render(context)).map_err(error)?;
            Ok(Value::String(rendered))
        }
    }
}

/// JSON in which a text that is a name in braces alone, as in `"{{name}}"`, gives way to the value of the name.
fn with_types_kept(json: &str) -> String {
    let mut out = String::new();
    let mut rest = json;
    while let Some((before, after)) = rest.split_once("\"{{") {
        out.push_str(before);
        // StackStorm takes all between `A` and `z` of ASCII for a letter.
        let is_part = |c: char| ('A'..='z').contains(&c) || c.is_ascii_digit() || c == '-';
        let end = after.find(|c| !is_part(c)).unwrap_or(after.len());
        let (name, tail) = after.split_at(end);
        match tail.strip_prefix("}}\"").filter(|_| !name.is_empty()) {
            Some(tail) => {
                out.push_str(&format!("{{{{{name} | to_complex}}}}"));
                rest = tail;
            }
            None => {
                out.push_str("\"{{");
                rest = after;
            }
        }
    }
    out + rest
}

/// The value of a name, cast to its type. A parameter of the runner and the action has the type of the runner's.
fn cast_by(name: &str, values: &Map, schemas: [&Map; 2]) -> Result<Value, ParameterError> {
    let value = values.get(name).unwrap_or(&Value::Null);
    let schema = schemas.iter().rev().find_map(|schemas| schemas.get(name));
    let kind = schema.and_then(|schema| schema.get("type")).and_then(Value::as_str);
    cast(value, kind).map_err(|error| error.within(name))
}

/// Adds the defaults that were templates, so that the check of the request sees what they gave.
fn add_rendered_defaults(
    live: &mut Map,
    values: &Map,
    given: &Map,
    schemas: [&Map; 2],
) -> Result<(), ParameterError> {
    for schemas in schemas {
        for (name, schema) in schemas.iter() {
            let Some(default) = schema.get("default") else { continue };
            let immutable = schema.get("immutable").is_some_and(Value::is_truthy);
            let is_template = default.as_str().is_some_and(Template::is_template);
            let value = values.get(name).unwrap_or(&Value::Null);
            if !immutable && is_template && default != value && !given.contains_key(name) {
                let kind = schema.get("type").and_then(Value::as_str);
                live.insert(name, cast(value, kind).map_err(|error| error.within(name))?);
            }
        }
    }
    Ok(())
}

/// A datastore without values.
struct NoDatastore;

impl Lookup for NoDatastore {
    fn look_up(&self, _: &[&str]) -> Option<Value> {
        None
    }
}

impl std::fmt::Debug for ParameterContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: BTreeSet<&str> = self.additional.iter().map(|(name, _)| name).collect();
        f.debug_struct("ParameterContext").field("additional", &names).finish_non_exhaustive()
    }
}
