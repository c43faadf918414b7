//! Sensors: Python classes that pull triggers.

use imori_automation::value::{Map, Value};

use super::document::{Document, Read};
use super::fields::Fields;
use super::trigger_type::TriggerTypeDefinition;

/// Least seconds between two polls.
const POLL_INTERVAL_MIN: f64 = 4.0;

const KEYS: [&str; 13] = [
    "id",
    "ref",
    "uid",
    "name",
    "class_name",
    "pack",
    "description",
    "artifact_uri",
    "entry_point",
    "enabled",
    "trigger_types",
    "poll_interval",
    "metadata_file",
];

/// A sensor of a pack.
#[derive(Debug, Clone, PartialEq)]
pub struct SensorDefinition {
    /// The pack.
    pub pack: String,
    /// The name of its class, which is the sensor's name too.
    pub class_name: String,
    /// What it says of itself.
    pub description: Option<String>,
    /// The Python file, relative to the folder of the metadata file.
    pub entry_point: String,
    /// The Python file, relative to the pack.
    pub entry_file: String,
    /// Seconds between two polls of a polling sensor.
    pub poll_interval: Option<f64>,
    /// Whether it runs.
    pub enabled: bool,
    /// References of the trigger types that it pulls.
    pub trigger_types: Vec<String>,
    /// The file, relative to the pack.
    pub metadata_file: String,
}

impl SensorDefinition {
    /// Reads a file of `sensors`: the sensor, and the trigger types that it brings.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn from_document(
        document: &Document,
        pack: &str,
    ) -> Read<(SensorDefinition, Vec<TriggerTypeDefinition>)> {
        let mut fields = Fields::of(document).map_err(|problem| vec![problem])?;
        let pack = fields.pack(pack);
        let entry_point = fields.required_text("entry_point");
        let folder = document.file().rsplit_once('/').map_or("", |(folder, _)| folder);
        let poll_interval = fields.number("poll_interval").filter(|interval| *interval != 0.0);
        if poll_interval.is_some_and(|interval| interval < POLL_INTERVAL_MIN) {
            let message = format!("key `poll_interval` is less than {POLL_INTERVAL_MIN} seconds; raise it");
            fields.complain(&["poll_interval"], message);
        }
        let mut trigger_types = Vec::new();
        for (index, value) in
            fields.value("trigger_types").and_then(Value::as_list).unwrap_or_default().iter().enumerate()
        {
            let path = fields.path(&["trigger_types", &index.to_string()]);
            let read = Fields::at(document, path, value).map_err(|problem| vec![problem]);
            match read.and_then(|fields| TriggerTypeDefinition::from_fields(fields, pack.clone())) {
                Ok((trigger_type, warnings)) => {
                    trigger_types.push(trigger_type);
                    fields.add(warnings);
                }
                Err(problems) => fields.add(problems),
            }
        }
        let definition = SensorDefinition {
            class_name: fields.required_text("class_name"),
            description: fields.text("description"),
            entry_file: if folder.is_empty() {
                entry_point.clone()
            } else {
                format!("{folder}/{entry_point}")
            },
            entry_point,
            poll_interval,
            enabled: fields.flag("enabled", true),
            trigger_types: trigger_types.iter().map(TriggerTypeDefinition::reference).collect(),
            metadata_file: document.file().to_owned(),
            pack,
        };
        fields.list("trigger_types");
        // StackStorm ignores others.
        fields.mostly(&KEYS);
        fields.read((definition, trigger_types))
    }

    /// `pack.class`.
    pub fn reference(&self) -> String {
        format!("{}.{}", self.pack, self.class_name)
    }

    /// The document as the API shows it, without the `id` that the engine gives. `pack_folder` is the pack's absolute
    /// path.
    pub fn to_document(&self, pack_folder: &str) -> Value {
        let module = self.entry_file.trim_end_matches(".py").replace('/', ".");
        let trigger_types: Vec<_> =
            self.trigger_types.iter().map(|reference| Value::from(reference.as_str())).collect();
        Value::Map(Map::from_iter([
            ("name", Value::from(self.class_name.as_str())),
            ("pack", Value::from(self.pack.as_str())),
            ("ref", Value::from(self.reference())),
            ("uid", Value::from(format!("sensor_type:{}:{}", self.pack, self.class_name))),
            ("description", Value::from(self.description.clone())),
            ("artifact_uri", Value::from(format!("file://{pack_folder}/{}", self.entry_file))),
            ("entry_point", Value::from(format!("{module}.{}", self.class_name))),
            ("trigger_types", Value::List(trigger_types)),
            ("poll_interval", self.poll_interval.map_or(Value::Null, |interval| Value::Int(interval as i64))),
            ("enabled", Value::Bool(self.enabled)),
            ("metadata_file", Value::from(self.metadata_file.as_str())),
        ]))
    }
}
