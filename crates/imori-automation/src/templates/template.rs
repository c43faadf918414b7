//! A compiled template.

use std::collections::BTreeSet;
use std::sync::Arc;

use minijinja::value::{Value, ValueKind};
use minijinja::{Environment, ErrorKind};

use super::context::Context;
use super::environment::shared;
use super::error::TemplateError;
use super::source::normalized;
use crate::limits::{TEMPLATE_BYTES_MAX, TEMPLATE_OUTPUT_BYTES_MAX};
use crate::python::values::{text, type_name};
use crate::value::Value as Json;

/// The name of the one template of an environment.
const NAME: &str = "template";

/// A template, compiled once.
#[derive(Debug, Clone)]
pub struct Template {
    environment: Arc<Environment<'static>>,
}

impl Template {
    /// Whether StackStorm would take this text for a template.
    pub fn is_template(text: &str) -> bool {
        text.contains("{{") || text.contains("{%")
    }

    /// Compiles a template.
    ///
    /// # Errors
    /// Its syntax is wrong, or it is longer than its limit.
    pub fn compile(source: &str) -> Result<Template, TemplateError> {
        if source.len() > TEMPLATE_BYTES_MAX {
            return Err(TemplateError::new(format!("a template has at most {TEMPLATE_BYTES_MAX} bytes")));
        }
        // An environment shares its filters with its clones, so that one for a template costs little.
        let mut environment = shared().clone();
        environment
            .add_template_owned(NAME, normalized(source))
            .map_err(|error| TemplateError::of(&error, None))?;
        Ok(Template { environment: Arc::new(environment) })
    }

    /// Renders the template.
    ///
    /// # Errors
    /// A name is undefined, an operation fails, or it takes more than its limits.
    pub fn render(&self, context: &Context) -> Result<String, TemplateError> {
        let template =
            self.environment.get_template(NAME).map_err(|error| TemplateError::of(&error, None))?;
        let rendered = template.render(context.as_value()).map_err(|error| {
            let undefined = (error.kind() == ErrorKind::UndefinedError).then(|| self.undefined(context));
            TemplateError::of(&error, undefined.flatten())
        })?;
        match rendered.len() > TEMPLATE_OUTPUT_BYTES_MAX {
            true => Err(TemplateError::new(format!(
                "a template writes at most {TEMPLATE_OUTPUT_BYTES_MAX} bytes"
            ))),
            false => Ok(rendered),
        }
    }

    /// The names that the template reads and does not set itself, but those that every template knows.
    pub fn names(&self) -> BTreeSet<String> {
        let Ok(template) = self.environment.get_template(NAME) else {
            return BTreeSet::new();
        };
        let mut names: BTreeSet<String> = template.undeclared_variables(false).into_iter().collect();
        names.retain(|name| !self.environment.globals().any(|(known, _)| known == name));
        names
    }

    /// What Jinja would say of the first path of the template that leads nowhere.
    fn undefined(&self, context: &Context) -> Option<String> {
        let template = self.environment.get_template(NAME).ok()?;
        let paths: BTreeSet<String> = template.undeclared_variables(true).into_iter().collect();
        let names = self.names();
        paths.iter().filter(|path| path.split('.').next().is_some_and(|name| names.contains(name))).find_map(
            |path| {
                let mut parts = path.split('.');
                let name = parts.next()?;
                let Some(value) = context.find(name) else {
                    return Some(format!("'{name}' is undefined"));
                };
                let mut value = value.clone();
                for part in parts {
                    let next = value.get_attr(part).unwrap_or_default();
                    if next.is_undefined() {
                        return Some(no_attribute(&value, part));
                    }
                    value = next;
                }
                None
            },
        )
    }
}

fn no_attribute(value: &Value, name: &str) -> String {
    match value.kind() {
        ValueKind::None => format!("'None' has no attribute '{name}'"),
        _ => format!("'{} object' has no attribute '{name}'", type_name(value)),
    }
}

/// Renders a value as StackStorm's `render_values` does: lists and objects as JSON. What the rendering does not
/// change keeps its type, and all other scalars become texts.
///
/// # Errors
/// A template in it is wrong or fails, or what it gives in a list or an object is no JSON.
pub fn render_value(value: &Json, context: &Context) -> Result<Json, TemplateError> {
    if context.is_empty() {
        return Ok(value.clone());
    }
    let source = match value {
        Json::String(text) => text.clone(),
        Json::List(_) | Json::Map(_) => value.to_json(),
        scalar => text(&crate::python::conversion::to_template(scalar))
            .map_err(|error| TemplateError::of(&error, None))?,
    };
    let rendered = match Template::is_template(&source) || source.contains("{#") || source.ends_with('\n') {
        true => Template::compile(&source)?.render(&context.with_itself())?,
        false => source.clone(),
    };
    if rendered == source {
        return Ok(value.clone());
    }
    match value {
        Json::List(_) | Json::Map(_) => Json::from_json(rendered.as_bytes())
            .map_err(|error| TemplateError::new(format!("the rendered value is no JSON: {error}"))),
        _ => Ok(Json::String(rendered)),
    }
}
