//! YAML as PyYAML's safe loader reads it, with the positions of its values.

mod document;
pub(crate) mod quotes;
mod scalar;
mod lines;
mod error;

pub use document::{load, load_with_lines};
pub use error::YamlError;
pub use lines::{Lines, Position};
