//! A sensor as it is registered.

use std::path::PathBuf;

use imori_automation::ids::Id;
use imori_automation::value::{Map, Value};

use crate::packs::pack::Pack;
use crate::packs::sensor::SensorDefinition;

/// A sensor of a pack.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RegisteredSensor {
    /// The document that the API shows, without what the sensor does at the moment.
    pub(crate) document: Map,
    /// The sensor as its pack defines it.
    pub(crate) definition: SensorDefinition,
    /// The folder of its pack.
    pub(crate) pack_folder: PathBuf,
    /// Major versions of Python that its pack runs with.
    pub(crate) python_versions: Vec<String>,
    /// Whether it runs: what its pack says, or an operator later.
    pub(crate) is_enabled: bool,
    /// Whether it runs only while a rule waits for its triggers, so that the sensors of our own packs cost nothing
    /// where nobody uses them.
    pub(crate) is_on_demand: bool,
    /// Changes when its pack or the configuration of that is read again, which restarts the sensor.
    pub(crate) generation: u64,
}

impl RegisteredSensor {
    /// A sensor of this pack. `enabled` is what an operator chose, if one did.
    pub(crate) fn new(definition: &SensorDefinition, pack: &Pack, enabled: Option<bool>) -> RegisteredSensor {
        let reference = definition.reference();
        let mut document = match definition.to_document(&pack.folder.to_string_lossy()) {
            Value::Map(document) => document,
            _ => Map::new(),
        };
        let is_enabled = enabled.unwrap_or(definition.enabled);
        document.insert("id", Id::derived(0, &[b"sensor", reference.as_bytes()]).to_string());
        document.insert("enabled", is_enabled);
        RegisteredSensor {
            document,
            definition: definition.clone(),
            pack_folder: pack.folder.clone(),
            python_versions: pack.manifest.python_versions.clone(),
            is_enabled,
            is_on_demand: false,
            generation: 0,
        }
    }

    /// Its reference.
    pub(crate) fn reference(&self) -> String {
        self.definition.reference()
    }
}
