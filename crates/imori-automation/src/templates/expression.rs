//! One expression of Jinja, with a value of its own kind.

use minijinja::value::Value;

use super::context::Context;
use super::environment::shared;
use super::error::TemplateError;
use super::rewriting::rewritten;
use crate::limits::TEMPLATE_BYTES_MAX;

/// The value of an expression without its braces; it may be undefined.
///
/// # Errors
/// Its syntax is wrong, an operation fails, or it takes more than its limits.
pub(crate) fn evaluate(source: &str, context: &Context) -> Result<Value, TemplateError> {
    if source.len() > TEMPLATE_BYTES_MAX {
        return Err(TemplateError::new(format!("an expression has at most {TEMPLATE_BYTES_MAX} bytes")));
    }
    let tag = format!("{{{{ {source} }}}}");
    let code = match rewritten(&tag, "}}") {
        Some((code, bytes)) if bytes == tag.len() => code,
        _ => tag,
    };
    let code = code.strip_prefix("{{").and_then(|code| code.strip_suffix("}}")).unwrap_or(source);
    let compiled = shared().compile_expression(code).map_err(|error| TemplateError::of(&error, None))?;
    compiled.eval(context.as_value()).map_err(|error| TemplateError::of(&error, None))
}
