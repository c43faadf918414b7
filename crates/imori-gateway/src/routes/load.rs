//! Reads a routes file, and reports all its faults at once.

use std::path::Path;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

use super::compile::Compiler;
use super::configuration::Configuration;
use super::entry::{DeliverEntry, GatewayEntry, LimitsEntry, RouteEntry, ScriptsEntry};
use super::problem::{Problem, Problems, line_of};

/// The top-level keys.
const KEYS: [&str; 5] = ["gateway", "limits", "scripts", "route", "deliver"];

/// Reads the text of the routes file at this path, and the scripts that it names.
///
/// # Errors
/// All faults that were found, by file and line.
pub fn load(text: &str, path: &Path) -> Result<Configuration, Problems> {
    let (file, folder) = (path.display().to_string(), path.parent().unwrap_or(Path::new("")).to_path_buf());
    let file = file.as_str();
    let mut reading = Reading { text, file, problems: Vec::new() };
    let (document, errors) = DeTable::parse_recoverable(text);
    for error in errors {
        let at = error.span().map_or(0, |span| span.start);
        reading.fault(at, error.message().to_owned());
    }
    // What was recovered of a broken document would only add faults that are none.
    if !reading.problems.is_empty() {
        return Err(Problems(reading.problems));
    }
    let mut gateway = GatewayEntry::default();
    let mut limits = LimitsEntry::default();
    let mut scripts = (0, ScriptsEntry::default());
    let (mut routes, mut deliveries) = (Vec::new(), Vec::new());
    let mut keys: Vec<_> = document.into_inner().into_iter().collect();
    keys.sort_by_key(|(key, _)| key.span().start);
    for (key, value) in keys {
        let at = key.span().start;
        match key.get_ref().as_ref() {
            "gateway" => gateway = reading.entry(value).unwrap_or_default(),
            "limits" => limits = reading.entry(value).unwrap_or_default(),
            "scripts" => scripts = (at, reading.entry(value).unwrap_or_default()),
            "route" => routes = reading.entries::<RouteEntry>("route", value),
            "deliver" => deliveries = reading.entries::<DeliverEntry>("deliver", value),
            other => reading.fault(at, format!("there is no `{other}`; the keys are {}", KEYS.join(", "))),
        }
    }
    let mut compiler = Compiler::new(file, text, folder, gateway, limits);
    let scripts_of_all = compiler.scripts(scripts.0, scripts.1);
    let routes: Vec<_> = routes.into_iter().filter_map(|(at, entry)| compiler.route(at, entry)).collect();
    let deliveries: Vec<_> =
        deliveries.into_iter().filter_map(|(at, entry)| compiler.delivery(at, entry)).collect();
    let (configuration, problems) =
        compiler.finish(routes.into_iter().map(Arc::new).collect(), deliveries, scripts_of_all, path);
    reading.problems.extend(problems);
    match reading.problems.is_empty() {
        true => Ok(configuration),
        false => {
            reading.problems.sort_by_key(|problem| problem.line);
            Err(Problems(reading.problems))
        }
    }
}

struct Reading<'a> {
    text: &'a str,
    file: &'a str,
    problems: Vec<Problem>,
}

impl Reading<'_> {
    fn fault(&mut self, at: usize, message: String) {
        let (file, line) = (self.file.to_owned(), line_of(self.text, at));
        self.problems.push(Problem { file, line, message });
    }

    fn entry<T: DeserializeOwned>(&mut self, value: Spanned<DeValue<'_>>) -> Option<T> {
        let start = value.span().start;
        match T::deserialize(ValueDeserializer::from(value)) {
            Ok(entry) => Some(entry),
            Err(error) => {
                let at = error.span().map_or(start, |span| span.start);
                self.fault(at, error.message().to_owned());
                None
            }
        }
    }

    fn entries<T: DeserializeOwned>(&mut self, name: &str, value: Spanned<DeValue<'_>>) -> Vec<(usize, T)> {
        let at = value.span().start;
        let DeValue::Array(values) = value.into_inner() else {
            self.fault(at, format!("`{name}` is a list of tables; begin each with `[[{name}]]`"));
            return Vec::new();
        };
        let spanned = values.into_iter().map(|value| (value.span().start, value));
        spanned.filter_map(|(at, value)| Some((at, self.entry(value)?))).collect()
    }
}
