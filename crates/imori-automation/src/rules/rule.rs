//! One rule.

use super::error::{Fields, RuleError};
use super::extension::{ActionCall, Extension};
use crate::criteria::{Criteria, Explanation, Failure, Outcome, TriggerInstance};
use crate::value::{Map, Value};

/// A rule, with its criteria compiled.
#[derive(Debug, Clone)]
pub struct Rule {
    /// Its pack and its name, with a point between.
    pub reference: String,
    /// Its name.
    pub name: String,
    /// Its pack.
    pub pack: String,
    /// When it is evaluated.
    pub kind: RuleKind,
    /// What it waits for.
    pub trigger: RuleTrigger,
    /// What has to hold for the payload.
    pub criteria: Criteria,
    /// What it runs.
    pub action: ActionCall,
    /// Whether it is evaluated at all.
    pub is_enabled: bool,
    /// What it has beyond StackStorm's.
    pub extension: Extension,
    source: Map,
}

/// When a rule is evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleKind {
    /// For each instance of its trigger.
    Standard,
    /// For instances that no standard rule matches.
    Backstop,
}

/// The trigger of a rule.
#[derive(Debug, Clone, PartialEq)]
pub struct RuleTrigger {
    /// The reference of the trigger's type.
    pub type_reference: String,
    /// The parameters of the trigger.
    pub parameters: Map,
    /// The reference of the trigger itself, where it is known.
    pub reference: Option<String>,
}

/// The verdict of each criterion of a rule.
#[derive(Debug, Clone, PartialEq)]
pub struct RuleExplanation {
    /// Whether the rule matches, provided that it is enabled.
    pub is_match: bool,
    /// The criteria.
    pub criteria: Explanation,
    /// The sets of `any_of`.
    pub any_of: Vec<Explanation>,
}

/// The pack of rules that name none.
const DEFAULT_PACK: &str = "default";

const KEYS: [&str; 14] = [
    "name",
    "pack",
    "description",
    "type",
    "trigger",
    "criteria",
    "action",
    "enabled",
    "context",
    "tags",
    "metadata_file",
    "id",
    "ref",
    "uid",
];
const EXTENSION: &str = "x-imori";

impl Rule {
    /// Reads a rule as it is written in a pack or sent to the API. A rule that does not say `enabled` is not.
    ///
    /// # Errors
    /// A key is unknown or missing, a value has the wrong type, or the criteria cannot be compiled.
    pub fn read(value: &Value) -> Result<Rule, RuleError> {
        let map = value.as_map().ok_or_else(|| RuleError::new(&[], "the rule is no object; write one"))?;
        let known = [&KEYS[..], &[EXTENSION]].concat();
        let fields = Fields::of(map, &[], Some(&known))?;
        for key in ["description", "metadata_file", "id", "ref", "uid"] {
            fields.text(key)?;
        }
        fields.map("context")?;
        for (at, tag) in fields.list("tags")?.unwrap_or_default().iter().enumerate() {
            tag.as_map().ok_or_else(|| {
                RuleError::new(
                    &["tags", &at.to_string()],
                    "the tag is no object; give it a `name` and a `value`",
                )
            })?;
        }
        let name = fields.required_text("name")?.to_owned();
        let pack = fields.text("pack")?.filter(|pack| !pack.is_empty()).unwrap_or(DEFAULT_PACK).to_owned();
        let criteria = fields.map("criteria")?.cloned().unwrap_or_default();
        Ok(Rule {
            reference: format!("{pack}.{name}"),
            name,
            pack,
            kind: kind(&fields)?,
            trigger: trigger(fields.required_map("trigger")?)?,
            criteria: Criteria::compile(&criteria)
                .map_err(|error| RuleError::of_criteria(error, &["criteria"]))?,
            action: ActionCall::read(&Value::Map(fields.required_map("action")?.clone()))
                .map_err(|error| error.below(&["action"]))?,
            is_enabled: fields.bool("enabled")?.unwrap_or(false),
            extension: match fields.map(EXTENSION)? {
                Some(map) => Extension::read(map).map_err(|error| error.below(&[EXTENSION]))?,
                None => Extension::default(),
            },
            source: map.clone(),
        })
    }

    /// The rule for the store and the API, with its defaults; [`Rule::read`] gives the same rule of it.
    pub fn to_value(&self) -> Value {
        let mut map = self.source.clone();
        map.insert("ref", self.reference.as_str());
        map.insert("pack", self.pack.as_str());
        map.insert("enabled", self.is_enabled);
        for key in ["criteria", "context"] {
            if map.get(key).is_none_or(Value::is_null) {
                map.insert(key, Map::new());
            }
        }
        if map.get("tags").is_none_or(Value::is_null) {
            map.insert("tags", Vec::new());
        }
        for key in ["description", "metadata_file"] {
            if map.get(key).is_none_or(Value::is_null) {
                map.insert(key, "");
            }
        }
        let parameters = Map::new();
        let kind = map
            .get("type")
            .and_then(|kind| kind.get("parameters"))
            .and_then(Value::as_map)
            .unwrap_or(&parameters);
        let kind = Map::from_iter([
            ("ref", Value::from(self.kind.name())),
            ("parameters", Value::Map(kind.clone())),
        ]);
        map.insert("type", kind);
        Value::Map(map)
    }

    /// A field as it is written, such as `description`, `tags` or `context`.
    pub fn field(&self, key: &str) -> Option<&Value> {
        self.source.get(key)
    }

    /// The rule with another state of `enabled`.
    #[must_use]
    pub fn with_enabled(mut self, is_enabled: bool) -> Rule {
        self.is_enabled = is_enabled;
        self.source.insert("enabled", is_enabled);
        self
    }

    /// The rule with the reference of its trigger, once it is known.
    #[must_use]
    pub fn with_trigger_reference(mut self, reference: &str) -> Rule {
        if let Some(Value::Map(trigger)) = self.source.get_mut("trigger") {
            trigger.insert("ref", reference);
        }
        self.trigger.reference = Some(reference.to_owned());
        self
    }

    /// The trigger reference under which a rule set looks the rule up: the trigger's own, or its type's if it has none.
    pub fn trigger_reference(&self) -> &str {
        self.trigger.reference.as_deref().unwrap_or(&self.trigger.type_reference)
    }

    /// All actions that it runs.
    pub fn actions(&self) -> impl Iterator<Item = &ActionCall> {
        std::iter::once(&self.action).chain(&self.extension.actions)
    }

    /// Evaluates its criteria, whether it is enabled or not.
    pub fn evaluate(&self, instance: &TriggerInstance<'_>) -> Outcome {
        let outcome = self.criteria.evaluate_instance(instance);
        if !outcome.is_match || self.extension.any_of.is_empty() {
            return outcome;
        }
        let mut failure: Option<Failure> = outcome.failure;
        let is_match = self.extension.any_of.iter().any(|criteria| {
            let outcome = criteria.evaluate_instance(instance);
            failure = failure.take().or(outcome.failure);
            outcome.is_match
        });
        Outcome { is_match, failure }
    }

    /// Evaluates all of its criteria and tells what each gives.
    pub fn explain(&self, instance: &TriggerInstance<'_>) -> RuleExplanation {
        let criteria = self.criteria.explain(instance);
        let any_of: Vec<_> =
            self.extension.any_of.iter().map(|criteria| criteria.explain(instance)).collect();
        let is_any = any_of.is_empty() || any_of.iter().any(|criteria| criteria.is_match);
        RuleExplanation { is_match: criteria.is_match && is_any, criteria, any_of }
    }
}

impl RuleKind {
    /// Its name in StackStorm.
    pub fn name(self) -> &'static str {
        match self {
            RuleKind::Standard => "standard",
            RuleKind::Backstop => "backstop",
        }
    }
}

fn kind(fields: &Fields<'_>) -> Result<RuleKind, RuleError> {
    let Some(map) = fields.map("type")? else { return Ok(RuleKind::Standard) };
    let fields = Fields::of(map, &["type"], Some(&["ref", "parameters"]))?;
    fields.map("parameters")?;
    match fields.required_text("ref")? {
        "standard" => Ok(RuleKind::Standard),
        "backstop" => Ok(RuleKind::Backstop),
        other => Err(fields.error("ref", format!("type `{other}` is unknown; use standard or backstop"))),
    }
}

fn trigger(map: &Map) -> Result<RuleTrigger, RuleError> {
    // StackStorm allows further keys here.
    let fields = Fields::of(map, &["trigger"], None)?;
    fields.text("description")?;
    Ok(RuleTrigger {
        type_reference: fields.required_text("type")?.to_owned(),
        parameters: fields.map("parameters")?.cloned().unwrap_or_default(),
        reference: fields.text("ref")?.map(ToOwned::to_owned),
    })
}
