//! Fields of requests, and arguments of declarations and bindings, as values of AMQP 1.0.

use imori_core::arguments::{NameError, arguments_of};
use imori_core::message::Value as CoreValue;
use imori_core::name::Name;
use imori_core::queue::QueueSettings;
use imori_core::route::Arguments;

use crate::codec::map::MapBuf;
use crate::codec::value::{Map, Symbol, Value};
use crate::header_block::core_value;
use crate::management::response::{Response, put};

/// Refuses names that clients do not choose.
pub(super) fn check_name(name: &str) -> Result<(), Response> {
    imori_core::arguments::check_name(name)
        .map_err(|error| Response::refused(if error == NameError::Reserved { 403 } else { 400 }, error))
}

/// Returns a field of a map by its name, which may be a string or a symbol; `None` if it is null.
pub(super) fn field<'a>(map: Map<'a>, name: &str) -> Option<Value<'a>> {
    map.find(name).filter(|value| *value != Value::Null)
}

/// Reads a boolean, or returns `absent` if it is missing.
pub(super) fn flag(map: Map<'_>, name: &str, absent: bool) -> Result<bool, Response> {
    match field(map, name) {
        None => Ok(absent),
        Some(Value::Bool(flag)) => Ok(flag),
        Some(_) => Err(Response::refused(400, format_args!("`{name}` is not a truth value"))),
    }
}

/// Reads a text; `None` if it is missing.
pub(super) fn text<'a>(map: Map<'a>, name: &str) -> Result<Option<&'a str>, Response> {
    match field(map, name) {
        None => Ok(None),
        Some(Value::String(text) | Value::Symbol(Symbol(text))) => Ok(Some(text)),
        Some(_) => Err(Response::refused(400, format_args!("`{name}` is not a text"))),
    }
}

/// Reads a nested map; empty if it is missing.
pub(super) fn map<'a>(outer: Map<'a>, name: &str) -> Result<Map<'a>, Response> {
    match field(outer, name) {
        None => Ok(Map::EMPTY),
        Some(Value::Map(map)) => Ok(map),
        Some(_) => Err(Response::refused(400, format_args!("`{name}` is not a map"))),
    }
}

/// Returns the names and values of a declaration's arguments; one without a value is left out.
pub(super) fn entries<'a>(arguments: Map<'a>) -> impl Iterator<Item = (&'a [u8], CoreValue<'a>)> {
    arguments.iter().filter_map(|(key, value)| match key {
        Value::String(key) | Value::Symbol(Symbol(key)) if value != Value::Null => {
            Some((key.as_bytes(), core_value(value)))
        }
        _ => None,
    })
}

/// Returns the arguments that would declare a queue with these settings.
pub(super) fn of_settings(settings: &QueueSettings) -> MapBuf {
    let mut map = MapBuf::new();
    for (name, value) in arguments_of(settings) {
        match &value {
            CoreValue::Text(text) => put(&mut map, name, Value::String(&String::from_utf8_lossy(text))),
            CoreValue::Bool(flag) => put(&mut map, name, Value::Bool(*flag)),
            CoreValue::Int(number) => put(&mut map, name, number_of(*number)),
            CoreValue::Uint(number) => put(&mut map, name, Value::Ulong(*number)),
            CoreValue::Float(number) => put(&mut map, name, Value::Double(*number)),
            // Only arguments without effect can be anything else.
            _ => {}
        }
    }
    map
}

/// RabbitMQ's clients expect limits as unsigned numbers.
fn number_of(number: i64) -> Value<'static> {
    u64::try_from(number).map_or(Value::Long(number), Value::Ulong)
}

/// Reads the arguments of a binding.
pub(super) fn of_binding(map: Map<'_>) -> Result<Arguments, Response> {
    let mut entries = Vec::new();
    for (key, value) in map.iter() {
        let (Value::String(key) | Value::Symbol(Symbol(key))) = key else {
            return Err(Response::refused(400, "the name of an argument is not a text"));
        };
        entries.push((Name::from(key), core_value(value).into_owned()));
    }
    let arguments = Arguments::new(entries);
    arguments.check().map_err(|error| Response::refused(400, error))?;
    Ok(arguments)
}
