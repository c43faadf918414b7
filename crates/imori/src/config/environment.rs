//! The environment: `IMORI__SECTION__KEY=value` sets a key.

use std::ffi::OsString;

use imori_server::config::Value;
use toml::de::DeValue;

use super::loading::Loading;
use super::problem::{Location, PREFIX, Problem};
use super::value::reading;

/// Loads the variables that begin with the prefix, sorted by name.
pub(super) fn load(variables: impl Iterator<Item = (OsString, OsString)>, loading: &mut Loading) {
    let mut ours: Vec<(String, OsString)> = variables
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
        .filter(|(name, _)| name.starts_with(PREFIX))
        .collect();
    ours.sort();
    for (name, value) in ours {
        let dotted = name.trim_start_matches(PREFIX).to_lowercase();
        let (section, key) = dotted.split_once("__").unwrap_or((&dotted, ""));
        let location = Location::Variable(name.clone());
        match value.into_string() {
            Ok(text) => loading.set(&location, section, key, &readings(&text), &text),
            Err(_) => loading.report(Problem::not_text(&location)),
        }
    }
}

/// The value parsed as TOML, if it is TOML, and as plain text; a key accepts one of the two.
fn readings(text: &str) -> Vec<Value> {
    let mut readings = Vec::new();
    if let Ok(value) = DeValue::parse(text) {
        readings.push(reading(value.get_ref()));
    }
    readings.push(Value::Text(String::from(text)));
    readings
}
