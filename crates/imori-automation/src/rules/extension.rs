//! What a rule has beyond StackStorm's: the keys of `x-imori`.

use super::error::{Fields, RuleError};
use super::period::micros;
use crate::criteria::Criteria;
use crate::limits::{
    RULE_ACTIONS_MAX, RULE_ALTERNATIVES_MAX, RULE_BREAKER_MAX, RULE_COUNT_MAX, RULE_LIMIT_MAX,
};
use crate::templates::Template;
use crate::value::{Map, Value};

/// An action and the parameters that a rule gives it.
#[derive(Debug, Clone, PartialEq)]
pub struct ActionCall {
    /// The reference of the action: its pack, a point, and its name.
    pub reference: String,
    /// The parameters, in which templates are not rendered yet.
    pub parameters: Map,
}

/// A number of matches within a span of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// The number, from 1.
    pub count: u32,
    /// The span in microseconds.
    pub micros: i64,
}

/// The keys of `x-imori`. With `dedup_key`, each of its values has a count, a window and a throttle of its own.
#[derive(Debug, Clone, Default)]
pub struct Extension {
    /// Sets of criteria of which one has to hold besides `criteria`; none asks for nothing.
    pub any_of: Vec<Criteria>,
    /// Actions that run besides `action`.
    pub actions: Vec<ActionCall>,
    /// The rule runs at the last of so many matches within the span, and counts anew.
    pub count: Option<Window>,
    /// Microseconds from a run in which further matches do not run.
    pub once_within: Option<i64>,
    /// At most so many runs within any such span.
    pub throttle: Option<Window>,
    /// The rule is suspended at more matches than these within the span. `None`: the engine's own bounds hold.
    pub breaker: Option<Window>,
    /// A template on the payload whose text tells matches apart.
    pub dedup_key: Option<Template>,
    /// Executions of the rule that may run at once. The engine, which knows them, holds it.
    pub limit: Option<u32>,
    /// Whether the result of the first action answers the message that is the payload: `reply: result`.
    pub replies: bool,
}

const KEYS: [&str; 9] =
    ["any_of", "actions", "count", "once_within", "throttle", "breaker", "dedup_key", "limit", "reply"];

impl Extension {
    /// Reads the value of `x-imori`.
    ///
    /// # Errors
    /// A key is unknown, a value has the wrong form, or a limit is exceeded.
    pub fn read(map: &Map) -> Result<Extension, RuleError> {
        let fields = Fields::of(map, &[], Some(&KEYS))?;
        let span =
            |key| fields.value(key).map(micros).transpose().map_err(|message| fields.error(key, message));
        Ok(Extension {
            any_of: alternatives(fields.list("any_of")?.unwrap_or_default())?,
            actions: actions(fields.list("actions")?.unwrap_or_default())?,
            count: window(&fields, "count", RULE_COUNT_MAX)?,
            once_within: span("once_within")?,
            throttle: window(&fields, "throttle", RULE_COUNT_MAX)?,
            breaker: window(&fields, "breaker", RULE_BREAKER_MAX)?,
            dedup_key: match fields.text("dedup_key")? {
                Some(text) => {
                    let wrong = |error| fields.error("dedup_key", format!("template: {error}"));
                    Some(Template::compile(text).map_err(wrong)?)
                }
                None => None,
            },
            limit: fields.count("limit", RULE_LIMIT_MAX)?,
            replies: match fields.text("reply")? {
                None => false,
                Some("result") => true,
                Some(other) => {
                    return Err(fields.error("reply", format!("`{other}` is unknown; use `result`")));
                }
            },
        })
    }

    /// Whether matches are counted or held back, so that the rule needs a state.
    pub fn has_state(&self) -> bool {
        self.count.is_some() || self.once_within.is_some() || self.throttle.is_some()
    }
}

impl ActionCall {
    /// Reads an object with `ref` and `parameters`.
    ///
    /// # Errors
    /// It has no `ref`, another key, or a value of the wrong type.
    pub fn read(value: &Value) -> Result<ActionCall, RuleError> {
        let map =
            value.as_map().ok_or_else(|| RuleError::new(&[], "the action is no object; give it a `ref`"))?;
        let fields = Fields::of(map, &[], Some(&["ref", "description", "parameters"]))?;
        fields.text("description")?;
        Ok(ActionCall {
            reference: fields.required_text("ref")?.to_owned(),
            parameters: fields.map("parameters")?.cloned().unwrap_or_default(),
        })
    }
}

fn alternatives(list: &[Value]) -> Result<Vec<Criteria>, RuleError> {
    if list.len() > RULE_ALTERNATIVES_MAX {
        return Err(RuleError::new(
            &["any_of"],
            format!("there are more than {RULE_ALTERNATIVES_MAX} items; use fewer"),
        ));
    }
    let compile = |(at, criteria): (usize, &Value)| {
        let at = at.to_string();
        let path = ["any_of", &at];
        let map = criteria
            .as_map()
            .ok_or_else(|| RuleError::new(&path, "the criteria are no object; write one"))?;
        Criteria::compile(map).map_err(|error| RuleError::of_criteria(error, &path))
    };
    list.iter().enumerate().map(compile).collect()
}

fn actions(list: &[Value]) -> Result<Vec<ActionCall>, RuleError> {
    if list.len() >= RULE_ACTIONS_MAX {
        return Err(RuleError::new(
            &["actions"],
            format!("the rule has more than {RULE_ACTIONS_MAX} actions; use fewer"),
        ));
    }
    let read = |(at, action): (usize, &Value)| {
        ActionCall::read(action).map_err(|error| error.below(&["actions", &at.to_string()]))
    };
    list.iter().enumerate().map(read).collect()
}

fn window(fields: &Fields<'_>, key: &str, max: i64) -> Result<Option<Window>, RuleError> {
    let Some(map) = fields.map(key)? else { return Ok(None) };
    let path = [key];
    let window = Fields::of(map, &path, Some(&["n", "within"]))?;
    let missing = |name: &str| {
        RuleError::new(&path, format!("there is no `{name}`; add it, as in `{{n: 3, within: 5m}}`"))
    };
    let count = window.count("n", max)?.ok_or_else(|| missing("n"))?;
    let within = window.value("within").ok_or_else(|| missing("within"))?;
    let micros = micros(within).map_err(|message| window.error("within", message))?;
    Ok(Some(Window { count, micros }))
}
