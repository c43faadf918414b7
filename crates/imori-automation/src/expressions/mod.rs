//! Expressions of workflows: texts with YAQL and Jinja, and the functions of orquesta that they call.

mod evaluator;
mod inline;
mod jinja;
mod yaql;
mod yaql_functions;
mod yaql_parser;
mod yaql_tokens;
mod yaql_values;
mod scope;

pub use evaluator::{EvaluationError, Evaluator};
pub(crate) use evaluator::{Language, languages};
pub use inline::inline_parameters;
pub(crate) use jinja::syntax_error as jinja_syntax_error;
pub use scope::{CurrentTask, Scope, Statuses};
pub use yaql::evaluate as evaluate_yaql;
pub use yaql_parser::{parse as parse_yaql, syntax_error as yaql_syntax_error};
pub use yaql_tokens::{Token, TokenError, tokens};
pub use yaql_values::Fault;
