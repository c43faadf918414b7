//! Jinja templates as StackStorm renders them.

mod template;
mod expression;
mod source;
mod environment;
mod rewriting;
mod tokens;
mod conditions;
mod context;
mod error;

pub use context::{Context, Decrypt, Lookup};
pub use error::TemplateError;
pub(crate) use expression::evaluate as evaluate_expression;
pub use template::{Template, render_value};
