//! Reading a pack: the manifest and the metadata files of a folder. A wrong file leaves out what it describes, and
//! nothing else.

use std::fs;
use std::path::{Path, PathBuf};

use imori_automation::value::{Map, Value};

use super::action::ActionDefinition;
use super::alias::AliasDefinition;
use super::document::{Document, PackProblem, Read, path_inside, read_document};
use super::fields::Fields;
use super::overrides::Overrides;
use super::pack::{MANIFEST_FILE, Pack, PackManifest, RuleDocument};
use super::parameters::{ParameterProblem, check_parameters};
use super::policy::PolicyDefinition;
use super::runners::RunnerTypes;
use super::sensor::SensorDefinition;
use super::trigger_type::TriggerTypeDefinition;
use crate::limits::{CONTENT_FILES_MAX, PACK_BYTES_MAX, PACK_ENTRIES_MAX, PACK_FOLDERS_DEPTH_MAX};

/// The file with the schema of a pack's configuration.
const CONFIG_SCHEMA_FILE: &str = "config.schema.yaml";

/// Runner types whose entry point is a file of the pack, and whether it is a YAML document.
const FILE_RUNNERS: [(&str, bool); 6] = [
    ("python-script", false),
    ("local-shell-script", false),
    ("remote-shell-script", false),
    ("winrm-ps-script", false),
    ("orquesta", true),
    ("action-chain", true),
];

/// Reads packs.
#[derive(Debug, Clone)]
pub struct PackReader {
    /// The runner types that actions may name.
    pub runners: RunnerTypes,
    /// The folder of overrides, if there is one.
    pub overrides: Option<PathBuf>,
}

impl PackReader {
    /// Reads all packs of a folder: folders with a `pack.yaml`, by name. What cannot be read as a pack is told
    /// beside them, with the name of its folder.
    pub fn packs(&self, folder: &Path) -> (Vec<Pack>, Vec<(String, Vec<PackProblem>)>) {
        let (mut packs, mut refused) = (Vec::new(), Vec::new());
        for name in pack_folders(folder) {
            match self.pack(&folder.join(&name)) {
                Ok(pack) => packs.push(pack),
                Err(problems) => refused.push((name, problems)),
            }
        }
        (packs, refused)
    }

    /// Reads the pack of a folder.
    ///
    /// # Errors
    /// The manifest is wrong, or the folder has too many files, so that nothing of the pack can be registered.
    pub fn pack(&self, folder: &Path) -> Result<Pack, Vec<PackProblem>> {
        let files = pack_files(folder).map_err(|problem| vec![problem])?;
        let document = read_document(folder, MANIFEST_FILE).map_err(|problem| vec![problem])?;
        let folder_name = folder.file_name().and_then(|name| name.to_str());
        let (manifest, problems) = PackManifest::from_document(&document, folder_name)?;
        let pack = Pack {
            manifest,
            folder: folder.to_owned(),
            files,
            actions: Vec::new(),
            sensors: Vec::new(),
            trigger_types: Vec::new(),
            rules: Vec::new(),
            aliases: Vec::new(),
            policies: Vec::new(),
            config_schema: None,
            problems,
        };
        let mut reading = Reading { overrides: Overrides::default(), runners: &self.runners, pack };
        if let Some(overrides) = &self.overrides {
            let (read, problems) = Overrides::read(overrides, &reading.pack.manifest.reference);
            reading.overrides = read;
            reading.pack.problems.extend(problems);
        }
        Ok(reading.all())
    }
}

/// The folders of a folder that are packs, sorted.
pub(crate) fn pack_folders(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let is_pack = |name: &String| !name.starts_with('.') && folder.join(name).join(MANIFEST_FILE).is_file();
    let mut names: Vec<_> = names.filter(is_pack).collect();
    names.sort_unstable();
    names
}

struct Reading<'a> {
    overrides: Overrides,
    runners: &'a RunnerTypes,
    pack: Pack,
}

impl Reading<'_> {
    fn all(mut self) -> Pack {
        self.config_schema();
        let reference = self.pack.manifest.reference.clone();
        let runners = self.runners;
        for document in self.documents("triggers") {
            let read = TriggerTypeDefinition::from_document(&document, &reference);
            self.keep(read, |this, trigger_type| this.pack.trigger_types.push(trigger_type));
        }
        for document in self.documents("sensors") {
            let read = SensorDefinition::from_document(&document, &reference);
            self.keep(read, |this, (sensor, trigger_types)| this.sensor(&document, sensor, trigger_types));
        }
        for document in self.documents("actions") {
            let read = ActionDefinition::from_document(&document, &reference, runners);
            self.keep(read, |this, action| this.action(&document, action));
        }
        for document in self.documents("rules") {
            let read = rule(document, &reference, &self.overrides);
            self.keep(read, |this, rule| this.pack.rules.push(rule));
        }
        for document in self.documents("aliases") {
            let read = AliasDefinition::from_document(&document, &reference);
            self.keep(read, |this, mut alias| {
                alias.enabled = this.overrides.enabled("aliases", &alias.name, alias.enabled);
                this.pack.aliases.push(alias);
            });
        }
        for document in self.documents("policies") {
            let read = PolicyDefinition::from_document(&document, &reference);
            self.keep(read, |this, policy| this.pack.policies.push(policy));
        }
        self.duplicates();
        self.pack
    }

    /// The YAML files that stand directly in a folder of the pack.
    fn documents(&mut self, kind: &str) -> Vec<Document> {
        let is_document = |file: &&String| {
            let name = file.strip_prefix(kind).and_then(|rest| rest.strip_prefix('/'));
            name.is_some_and(|name| {
                !name.contains('/')
                    && !name.starts_with('.')
                    && (name.ends_with(".yaml") || name.ends_with(".yml"))
            })
        };
        let is_config = |file: &&String| {
            kind == "actions" && matches!(file.as_str(), "actions/config.yaml" | "actions/config.yml")
        };
        let files: Vec<_> =
            self.pack.files.iter().filter(is_document).filter(|file| !is_config(file)).cloned().collect();
        if files.len() > CONTENT_FILES_MAX {
            let message =
                format!("has more than {CONTENT_FILES_MAX} metadata files; the others are left out");
            self.pack.problems.push(PackProblem::of(kind, message));
        }
        let mut documents = Vec::new();
        for file in files.iter().take(CONTENT_FILES_MAX) {
            match read_document(&self.pack.folder, file) {
                Ok(document) => documents.push(document),
                Err(problem) => self.pack.problems.push(problem),
            }
        }
        documents
    }

    fn keep<T>(&mut self, read: Read<T>, kept: impl FnOnce(&mut Self, T)) {
        match read {
            Ok((definition, warnings)) => {
                self.pack.problems.extend(warnings);
                kept(self, definition);
            }
            Err(problems) => self.pack.problems.extend(problems),
        }
    }

    fn action(&mut self, document: &Document, mut action: ActionDefinition) {
        action.enabled = self.overrides.enabled("actions", &action.name, action.enabled);
        let is_workflow =
            FILE_RUNNERS.iter().find(|(name, _)| *name == action.runner_type).map(|(_, is_yaml)| *is_yaml);
        if let Some(is_workflow) = is_workflow {
            let file = format!("actions/{}", action.entry_point);
            let at = ["entry_point"];
            if action.entry_point.is_empty() {
                self.pack
                    .problems
                    .push(document.problem(&at, "key `entry_point` is missing; name the file that runs"));
                return;
            }
            match path_inside(&self.pack.folder, &file) {
                Err(message) => return self.pack.problems.push(document.problem(&at, message)),
                Ok(path) if !path.is_file() => {
                    let message = format!("`{file}` is not there; the action fails when it runs");
                    self.pack.problems.push(document.problem(&at, message).as_warning());
                }
                // The workflow is read anew when it runs; here its author learns what a run would say.
                Ok(_) if is_workflow => {
                    let unread = read_document(&self.pack.folder, &file).err();
                    self.pack.problems.extend(unread.map(PackProblem::as_warning));
                }
                Ok(_) => {}
            }
        }
        self.pack.actions.push(action);
    }

    fn sensor(
        &mut self,
        document: &Document,
        mut sensor: SensorDefinition,
        brought: Vec<TriggerTypeDefinition>,
    ) {
        match path_inside(&self.pack.folder, &sensor.entry_file) {
            Err(message) => return self.pack.problems.push(document.problem(&["entry_point"], message)),
            Ok(path) if !path.is_file() => {
                let message = format!("`{}` is not there; the sensor cannot start", sensor.entry_file);
                self.pack.problems.push(document.problem(&["entry_point"], message).as_warning());
            }
            Ok(_) => {}
        }
        sensor.enabled = self.overrides.enabled("sensors", &sensor.class_name, sensor.enabled);
        self.pack.sensors.push(sensor);
        self.pack.trigger_types.extend(brought);
    }

    fn config_schema(&mut self) {
        if !self.pack.files.iter().any(|file| file == CONFIG_SCHEMA_FILE) {
            return;
        }
        let read = read_document(&self.pack.folder, CONFIG_SCHEMA_FILE).map_err(|problem| vec![problem]);
        let read = read.and_then(|document| {
            Fields::of(&document).map_err(|problem| vec![problem])?;
            let schema = document.value().as_map().cloned().unwrap_or_default();
            let located = |(path, message): ParameterProblem| {
                document.problem(&path.iter().map(String::as_str).collect::<Vec<_>>(), message)
            };
            let found = check_parameters(&schema);
            let wrong: Vec<_> = found.wrong.into_iter().map(located).collect();
            // StackStorm goes on without the schema then; packs of the exchange have such keys.
            let unknown = found.unknown.into_iter().map(located).map(PackProblem::as_warning);
            if wrong.is_empty() { Ok((schema, unknown.collect())) } else { Err(wrong) }
        });
        self.keep(read, |this, schema| this.pack.config_schema = Some(schema));
    }

    /// Of two files that describe the same thing, the later one counts, as it is registered over the other.
    fn duplicates(&mut self) {
        let pack = &mut self.pack;
        last_of(&mut pack.actions, &mut pack.problems, |it| (it.reference(), it.metadata_file.clone()));
        last_of(&mut pack.sensors, &mut pack.problems, |it| (it.reference(), it.metadata_file.clone()));
        last_of(&mut pack.rules, &mut pack.problems, |it| {
            (it.reference.clone(), it.document.file().to_owned())
        });
        last_of(&mut pack.aliases, &mut pack.problems, |it| (it.reference(), it.metadata_file.clone()));
        last_of(&mut pack.policies, &mut pack.problems, |it| (it.reference(), it.metadata_file.clone()));
        // Several sensors may declare the same trigger type, for example with a common base class.
        last_of(&mut pack.trigger_types, &mut Vec::new(), |it| (it.reference(), it.metadata_file.clone()));
    }
}

fn last_of<T>(list: &mut Vec<T>, problems: &mut Vec<PackProblem>, name: impl Fn(&T) -> (String, String)) {
    let mut seen = std::collections::BTreeMap::new();
    let mut kept = Vec::new();
    for item in std::mem::take(list).into_iter().rev() {
        let (reference, file) = name(&item);
        match seen.get(&reference) {
            None => {
                seen.insert(reference, file);
                kept.push(item);
            }
            Some(other) => {
                let message =
                    format!("`{reference}` is described by `{other}` too, which counts; remove one");
                problems.push(PackProblem::of(file, message).as_warning());
            }
        }
    }
    kept.reverse();
    *list = kept;
}

/// A rule's document: what the rule engine does not need to check again.
fn rule(document: Document, pack: &str, overrides: &Overrides) -> Read<RuleDocument> {
    let mut fields = Fields::of(&document).map_err(|problem| vec![problem])?;
    let pack = fields.pack(pack);
    let name = fields.required_text("name");
    let ((), warnings) = fields.read(())?;
    let reference = format!("{pack}.{name}");
    let mut map = document.value().as_map().cloned().unwrap_or_else(Map::new);
    let own = map.get("enabled").and_then(Value::as_bool);
    let enabled = overrides.enabled("rules", &name, own.unwrap_or(false));
    // What is no boolean stays for the rule engine to complain about.
    if own.is_some_and(|own| own != enabled) || (enabled && !map.contains_key("enabled")) {
        map.insert("enabled", enabled);
    }
    map.insert("pack", pack);
    map.insert("ref", reference.as_str());
    map.insert("metadata_file", document.file());
    Ok((RuleDocument { document: document.with_value(Value::Map(map)), reference }, warnings))
}

/// All files of a pack, relative to its folder and sorted, except git's and compiled Python.
///
/// # Errors
/// The folder cannot be read, or it holds too much.
pub(crate) fn pack_files(folder: &Path) -> Result<Vec<String>, PackProblem> {
    let mut files = Vec::new();
    let mut bytes = 0_u64;
    let mut open = vec![(folder.to_owned(), String::new(), 0)];
    let mut entries = 0;
    while let Some((path, prefix, depth)) = open.pop() {
        if depth > PACK_FOLDERS_DEPTH_MAX {
            return Err(PackProblem::of(
                prefix,
                format!("is nested more than {PACK_FOLDERS_DEPTH_MAX} folders deep"),
            ));
        }
        let unreadable = |error| PackProblem::of(prefix.as_str(), format!("cannot be read: {error}"));
        for entry in fs::read_dir(&path).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            entries += 1;
            if entries > PACK_ENTRIES_MAX {
                return Err(PackProblem::of(
                    "",
                    format!("the pack has more than {PACK_ENTRIES_MAX} files and folders"),
                ));
            }
            // A link is listed as a file and never followed.
            let Ok(metadata) = entry.path().symlink_metadata() else { continue };
            let relative = format!("{prefix}{name}");
            if metadata.is_dir() {
                if name != ".git" && name != "__pycache__" {
                    open.push((entry.path(), format!("{relative}/"), depth + 1));
                }
            } else if !name.ends_with(".pyc") {
                bytes = bytes.saturating_add(metadata.len());
                files.push(relative);
            }
        }
    }
    if bytes > PACK_BYTES_MAX {
        return Err(PackProblem::of("", format!("the pack has more than {PACK_BYTES_MAX} bytes")));
    }
    files.sort_unstable();
    Ok(files)
}
