//! Configurations of packs: read when an action runs, so that a change counts at once.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use imori_automation::templates::{Context, Lookup, Template as Jinja};
use imori_automation::value::{Map, Value};
use tracing::warn;

use crate::engine::Engine;
use crate::packs::configuration::Configuration;
use crate::registry::RegisteredPack;

impl Engine {
    /// The configuration of a pack with its templates resolved; empty if the pack has none or it is wrong.
    pub(crate) fn config(self: &Arc<Self>, pack: &str, datastore: Arc<dyn Lookup>) -> Map {
        let registry = self.registry();
        let Some(registered) = registry.packs.get(pack) else { return Map::new() };
        let configuration = self.configuration(registered);
        let context = Context::new().with_lookup("st2kv", datastore);
        let mut resolve = |template: crate::packs::configuration::Template<'_>| {
            let compiled = Jinja::compile(template.text).map_err(|error| error.to_string())?;
            let text = compiled.render(&context).map_err(|error| error.to_string())?;
            match template.is_secret {
                true => self.cipher.decrypt(&text).map(Value::from),
                false => Ok(Value::from(text)),
            }
        };
        match configuration.resolved(&mut resolve) {
            Ok(values) => values,
            Err(problems) => {
                for problem in problems {
                    warn!(pack, %problem, "the configuration of a pack is wrong");
                }
                Map::new()
            }
        }
    }

    /// The configuration of a pack as the API shows it, if an operator has set one.
    pub(crate) fn stored_config(&self, pack: &RegisteredPack) -> Option<Map> {
        let name = pack.pack.manifest.reference.as_str();
        let is_set = self.configs_folder().join(format!("{name}.yaml")).exists();
        is_set.then(|| shown(pack, self.configuration(pack).masked()))
    }

    /// Writes the configuration of a pack.
    ///
    /// # Errors
    /// A value is wrong, or the file cannot be written.
    pub(crate) fn set_config(&self, pack: &RegisteredPack, values: Map) -> Result<Map, String> {
        let folder = self.configs_folder();
        let name = pack.pack.manifest.reference.as_str();
        let path = folder.join(format!("{name}.yaml"));
        // JSON is YAML too. The file is read as an operator's own would be, before it takes the other's place.
        let checked = folder.join(format!(".checked-{name}"));
        let text = Value::Map(values).to_json();
        let failed = |error: std::io::Error| error.to_string();
        fs::create_dir_all(&checked).map_err(failed)?;
        let next = checked.join(format!("{name}.yaml"));
        fs::write(&next, text).map_err(failed)?;
        let read = Configuration::read(&pack.pack, &checked, &[]);
        let moved = match read.problems.first() {
            Some(problem) => Err(problem.to_string()),
            None => fs::rename(&next, &path).map_err(failed),
        };
        fs::remove_dir_all(&checked).map_err(failed)?;
        moved.map(|()| shown(pack, read.masked()))
    }

    fn configuration(&self, pack: &RegisteredPack) -> Configuration {
        let folder = self.configs_folder();
        Configuration::read(&pack.pack, Path::new(&folder), &self.options.variables)
    }
}

fn shown(pack: &RegisteredPack, values: Map) -> Map {
    let mut shown = Map::new();
    shown.insert("id", pack.document.get("id").cloned().unwrap_or_default());
    shown.insert("pack", pack.pack.manifest.reference.as_str());
    shown.insert("values", values);
    shown
}
