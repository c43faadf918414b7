//! Arguments in requests: converts JSON to the values that the broker's argument tables read.

use imori_core::message::Value as CoreValue;
use imori_core::name::Name;
use imori_core::route::Arguments;
use imori_server::json_value::value_of;
use serde_json::{Map, Value};

/// Returns the names and values of a declaration's arguments.
pub(crate) fn entries(arguments: &Map<String, Value>) -> impl Iterator<Item = (&[u8], CoreValue<'_>)> {
    arguments.iter().map(|(name, value)| (name.as_bytes(), value_of(value)))
}

/// Returns the arguments of a binding.
pub(crate) fn binding_arguments(arguments: &Map<String, Value>) -> Arguments {
    Arguments::new(entries(arguments).map(|(name, value)| (Name::new(name), value.into_owned())))
}
