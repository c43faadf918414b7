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

pub(crate) use evaluator::{EvaluationError, Evaluator, Language, languages};
pub(crate) use inline::inline_parameters;
pub(crate) use jinja::syntax_error as jinja_syntax_error;
pub(crate) use scope::{CurrentTask, Scope, Statuses};
pub(crate) use yaql_parser::syntax_error as yaql_syntax_error;
