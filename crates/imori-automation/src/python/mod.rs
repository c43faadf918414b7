//! Values as Python has them: their texts, methods and order.

pub(crate) mod methods;
pub(crate) mod text_methods;
pub(crate) mod literal;
pub(crate) mod yaml_writer;
pub(crate) mod yaml_reader;
pub(crate) mod numbers;
pub(crate) mod regexes;
pub(crate) mod arguments;
pub(crate) mod json_values;
pub(crate) mod conversion;
pub(crate) mod values;
pub(crate) mod objects;

pub(crate) use json_values::{repr, repr_text, text_of, type_of};
pub(crate) use literal::python_literal;
pub(crate) use numbers::{float_of_text, int_of_text};
pub(crate) use regexes::python_regex;
pub(crate) use text_methods::capitalized as capitalized_text;

/// What `use_none` writes for Python's `None`; a cast of a parameter reads it back.
pub(crate) const NONE_MAGIC_VALUE: &str = "%*****__%NONE%__*****%";
