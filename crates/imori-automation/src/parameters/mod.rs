//! Parameters of actions, runners and triggers: their schemas, defaults, casts and secrets.

mod render;
mod graph;
mod positions;
mod secrets;
mod action_schema;
mod schema;
mod defaults;
mod validation;
mod best_match;
mod cast;

pub use action_schema::{action_schema, immutable_parameters, merged_parameters};
pub use cast::cast;
pub use positions::positional_arguments;
pub use render::{ParameterContext, render_final_parameters, render_live_parameters};
pub use schema::{Defaults, Schema};
pub use secrets::{MASK, mask, mask_parameters};

use std::fmt;

/// Why a schema, a parameter or its value is refused, in StackStorm's words where it has some.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParameterError {
    text: String,
    path: Vec<String>,
}

impl ParameterError {
    fn new(text: impl Into<String>) -> ParameterError {
        ParameterError { text: text.into(), path: Vec::new() }
    }

    fn at(path: Vec<String>, text: impl Into<String>) -> ParameterError {
        ParameterError { text: text.into(), path }
    }

    /// The same error of a part of a value.
    fn within(mut self, name: &str) -> ParameterError {
        self.path.insert(0, name.to_owned());
        self
    }

    /// The keys and positions that lead to the wrong part of the value; empty where it is the whole.
    pub fn path(&self) -> &[String] {
        &self.path
    }
}

impl fmt::Display for ParameterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for ParameterError {}
