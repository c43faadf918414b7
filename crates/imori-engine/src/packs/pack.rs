//! Packs: the manifest `pack.yaml`, and all that a pack brings.

use std::path::PathBuf;

use imori_automation::value::{Map, Value};

use super::action::ActionDefinition;
use super::alias::AliasDefinition;
use super::document::{Document, PackProblem, Read};
use super::fields::Fields;
use super::policy::PolicyDefinition;
use super::sensor::SensorDefinition;
use super::trigger_type::TriggerTypeDefinition;

/// The file that makes a folder a pack.
pub const MANIFEST_FILE: &str = "pack.yaml";

/// What no pack may be called: overrides of all packs have this name.
const RESERVED: [&str; 1] = ["_global"];

/// A pack with all that it brings.
#[derive(Debug, Clone, PartialEq)]
pub struct Pack {
    /// Its manifest.
    pub manifest: PackManifest,
    /// Its folder.
    pub folder: PathBuf,
    /// All its files, relative to its folder, except git's and compiled Python.
    pub files: Vec<String>,
    /// Its actions.
    pub actions: Vec<ActionDefinition>,
    /// Its sensors.
    pub sensors: Vec<SensorDefinition>,
    /// Trigger types of `triggers` and of its sensors.
    pub trigger_types: Vec<TriggerTypeDefinition>,
    /// Its rules, which the rule engine checks.
    pub rules: Vec<RuleDocument>,
    /// Its aliases.
    pub aliases: Vec<AliasDefinition>,
    /// Its policies.
    pub policies: Vec<PolicyDefinition>,
    /// The schema of each key of its configuration, if it has `config.schema.yaml`.
    pub config_schema: Option<Map>,
    /// What is wrong with its files.
    pub problems: Vec<PackProblem>,
}

/// A rule as its file says it, with `pack`, `ref` and `metadata_file`.
#[derive(Debug, Clone, PartialEq)]
pub struct RuleDocument {
    /// The rule with the lines of its keys.
    pub document: Document,
    /// `pack.name`.
    pub reference: String,
}

impl Pack {
    /// The document as the API shows it, without the `id` that the engine gives.
    pub fn to_document(&self) -> Value {
        let Value::Map(mut map) = self.manifest.to_document() else { return Value::Null };
        let files = self.files.iter().map(|file| Value::from(file.as_str())).collect::<Vec<_>>();
        map.insert("files", Value::List(files));
        map.insert("path", self.folder.to_string_lossy().into_owned());
        Value::Map(map)
    }
}

/// What `pack.yaml` says.
#[derive(Debug, Clone, PartialEq)]
pub struct PackManifest {
    /// What the pack is called in references.
    pub reference: String,
    /// What people call it.
    pub name: String,
    /// What it says of itself.
    pub description: String,
    /// Words to find it by.
    pub keywords: Vec<String>,
    /// Three numbers, and what Semantic Versioning lets follow.
    pub version: String,
    /// Versions of StackStorm that it is for.
    pub stackstorm_version: Option<String>,
    /// Major versions of Python that it runs with; none means any.
    pub python_versions: Vec<String>,
    /// Who made it.
    pub author: String,
    /// Their address.
    pub email: String,
    /// Who helped.
    pub contributors: Vec<String>,
    /// Other packs that it needs, as `name` or `url`, each with `=version` or without.
    pub dependencies: Vec<String>,
    /// What it needs of the system.
    pub system: Map,
}

impl PackManifest {
    /// Reads `pack.yaml`. `folder` is the name of the pack's folder, which is its reference where it says none.
    ///
    /// # Errors
    /// What is wrong with it. Nothing of the pack can be registered then.
    pub fn from_document(document: &Document, folder: Option<&str>) -> Read<PackManifest> {
        let mut fields = Fields::of(document).map_err(|problem| vec![problem])?;
        let name = fields.required_text("name");
        let manifest = PackManifest {
            reference: reference(&mut fields, &name, folder),
            name,
            description: fields.required_text("description"),
            keywords: fields.texts("keywords"),
            version: version(&mut fields),
            stackstorm_version: fields.text("stackstorm_version"),
            python_versions: python_versions(&mut fields),
            author: fields.required_text("author"),
            email: fields.text("email").unwrap_or_default(),
            contributors: fields.texts("contributors"),
            dependencies: fields.texts("dependencies"),
            system: fields.map("system").unwrap_or_default(),
        };
        if manifest.email.is_empty() {
            fields.warn(&[], "key `email` is missing; StackStorm refuses a pack without it");
        }
        fields.read(manifest)
    }

    /// The document as the API shows it, without the `id` that the engine gives.
    pub fn to_document(&self) -> Value {
        let texts =
            |texts: &[String]| Value::List(texts.iter().map(|text| Value::from(text.as_str())).collect());
        Value::Map(Map::from_iter([
            ("ref", Value::from(self.reference.as_str())),
            ("uid", Value::from(format!("pack:{}", self.reference))),
            ("name", Value::from(self.name.as_str())),
            ("description", Value::from(self.description.as_str())),
            ("keywords", texts(&self.keywords)),
            ("version", Value::from(self.version.as_str())),
            ("stackstorm_version", Value::from(self.stackstorm_version.clone())),
            ("python_versions", texts(&self.python_versions)),
            ("author", Value::from(self.author.as_str())),
            ("email", Value::from(self.email.as_str())),
            ("contributors", texts(&self.contributors)),
            ("dependencies", texts(&self.dependencies)),
            ("system", Value::Map(self.system.clone())),
        ]))
    }
}

/// Whether a text may be the reference of a pack.
pub fn is_pack_reference(text: &str) -> bool {
    let is_word = |letter: u8| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == b'_';
    !text.is_empty() && text.len() <= 128 && text.bytes().all(is_word) && !RESERVED.contains(&text)
}

/// The key `ref`, or the folder's name, or the pack's name: the first that is there, of which a folder's name must be
/// a word to count.
fn reference(fields: &mut Fields<'_>, name: &str, folder: Option<&str>) -> String {
    let given = fields.text("ref").filter(|reference| !reference.is_empty());
    let (key, reference) = match (given, folder.filter(|folder| is_pack_reference(folder))) {
        (Some(reference), _) => ("ref", reference),
        (None, Some(folder)) => ("name", folder.to_owned()),
        (None, None) => ("name", name.to_owned()),
    };
    if RESERVED.contains(&reference.as_str()) {
        fields.complain(&[key], format!("`{reference}` is reserved; choose another name"));
    } else if !is_pack_reference(&reference) && !reference.is_empty() {
        let message =
            format!("`{reference}` is no reference of a pack; give it a `ref` of `a` to `z`, digits and `_`");
        fields.complain(&[key], message);
    }
    reference
}

/// YAML reads `1.0` as a number, which StackStorm takes as the text.
fn version(fields: &mut Fields<'_>) -> String {
    let version = match fields.value("version") {
        Some(Value::String(version)) => version.clone(),
        Some(number @ (Value::Int(_) | Value::Float(_))) => number.to_json(),
        _ => return fields.required_text("version"),
    };
    if !is_version(&version) {
        let message =
            format!("version `{version}` is no semantic version; give it three numbers, as in `0.1.0`");
        fields.complain(&["version"], message);
    }
    version
}

/// Whether a text is a version of Semantic Versioning, in lower case as StackStorm wants it.
pub fn is_version(text: &str) -> bool {
    let (text, build) = text.split_once('+').map_or((text, None), |(text, build)| (text, Some(build)));
    let (numbers, before) = text.split_once('-').map_or((text, None), |(text, before)| (text, Some(before)));
    let is_number = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|digit| digit.is_ascii_digit())
            && (part == "0" || !part.starts_with('0'))
    };
    let is_word = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
    };
    numbers.split('.').count() == 3
        && numbers.split('.').all(is_number)
        && [before, build].into_iter().flatten().all(|words| words.split('.').all(is_word))
}

fn python_versions(fields: &mut Fields<'_>) -> Vec<String> {
    let versions = fields.texts("python_versions");
    for (index, version) in versions.iter().enumerate() {
        if !["2", "3"].contains(&version.as_str()) {
            let message = format!("Python version `{version}` is unknown; use `\"2\"` or `\"3\"`");
            fields.complain(&["python_versions", &index.to_string()], message);
        }
    }
    versions
}
