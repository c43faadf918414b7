//! Overrides: files beside the packs that enable or disable what packs bring.

use std::path::Path;

use imori_automation::value::{Map, Value};

use super::document::{Document, PackProblem, read_document};
use super::fields::quoted;

/// What an override may change.
const CHANGEABLE: [&str; 1] = ["enabled"];

/// The overrides of a pack: the global ones, then its own.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    files: Vec<Map>,
}

impl Overrides {
    /// Reads `_global.yaml` and `PACK.yaml` of a folder, which need not be there.
    pub fn read(folder: &Path, pack: &str) -> (Overrides, Vec<PackProblem>) {
        let (mut overrides, mut problems) = (Overrides::default(), Vec::new());
        for name in ["_global", pack] {
            let file = format!("{name}.yaml");
            if !folder.join(&file).exists() {
                continue;
            }
            let read = read_document(folder, &file).map_err(|problem| vec![problem]);
            match read.and_then(|document| checked(&document)) {
                Ok(mut map) => {
                    if name == "_global" {
                        map.iter_mut().for_each(|(_, kind)| without_exceptions(kind));
                    }
                    overrides.files.push(map);
                }
                Err(found) => problems.extend(found),
            }
        }
        (overrides, problems)
    }

    /// Whether something is enabled: of `kind` `actions`, `sensors`, `rules` or `aliases`, with this name, and
    /// `enabled` in its own file.
    pub fn enabled(&self, kind: &str, name: &str, enabled: bool) -> bool {
        let said = |map: &Map| {
            let kind = map.get(kind)?;
            let exception = kind.get("exceptions").and_then(|all| all.get(name));
            exception.into_iter().chain(kind.get("defaults")).find_map(|keys| keys.get("enabled")?.as_bool())
        };
        self.files.iter().rev().find_map(said).unwrap_or(enabled)
    }
}

/// Exceptions count in the file of a pack only.
fn without_exceptions(kind: &mut Value) {
    if let Value::Map(map) = kind {
        map.remove("exceptions");
    }
}

fn checked(document: &Document) -> Result<Map, Vec<PackProblem>> {
    let Some(map) = document.value().as_map() else {
        return Err(vec![
            document.problem(&[], "is no object; give it `actions`, `sensors`, `rules` or `aliases`"),
        ]);
    };
    let mut problems = Vec::new();
    for (kind, value) in map.iter() {
        let exceptions = value.get("exceptions").and_then(Value::as_map);
        let named = exceptions
            .into_iter()
            .flat_map(Map::iter)
            .map(|(name, keys)| (vec![kind, "exceptions", name], keys));
        let defaults = value.get("defaults").map(|keys| (vec![kind, "defaults"], keys));
        for (path, keys) in defaults.into_iter().chain(named) {
            for (key, _) in
                keys.as_map().into_iter().flat_map(Map::iter).filter(|(key, _)| !CHANGEABLE.contains(key))
            {
                let steps: Vec<_> = path.iter().copied().chain([key]).collect();
                let message = format!("key `{key}` cannot be overridden; use {}", quoted(&CHANGEABLE));
                problems.push(document.problem(&steps, message));
            }
        }
    }
    if problems.is_empty() { Ok(map.clone()) } else { Err(problems) }
}
