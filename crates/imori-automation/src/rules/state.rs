//! Whether a match of a rule runs: its counts, windows and throttles.

use std::collections::VecDeque;

use foldhash::fast::FixedState;
use indexmap::IndexMap;

use super::extension::{Extension, Window};
use crate::criteria::TriggerInstance;
use crate::limits::{RULE_KEY_BYTES_MAX, RULE_KEYS_MAX};
use crate::times::Timestamp;
use crate::value::{Map, Value};

/// What a rule remembers of its matches, for each value of its `dedup_key`.
#[derive(Debug, Clone, Default)]
pub struct RuleState {
    keys: IndexMap<String, KeyState, FixedState>,
}

/// The decision on a match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// The rule runs.
    Run,
    /// Matches so far, of those that `count` asks for.
    Counted(u32),
    /// The rule has run within `once_within`, which ends at this moment.
    RanAlready(Timestamp),
    /// The rule has run as often as `throttle` allows, until this moment.
    Throttled(Timestamp),
    /// The `dedup_key` cannot be rendered, for this reason.
    Failed(String),
}

#[derive(Debug, Clone, Default)]
struct KeyState {
    /// When it last matched, in microseconds since 1970.
    matched: i64,
    /// The last run.
    ran: Option<i64>,
    counted: VecDeque<i64>,
    runs: VecDeque<i64>,
}

impl RuleState {
    /// Decides about a match, and remembers it. First counts `count`, then `once_within`, then `throttle`.
    pub fn decide(&mut self, extension: &Extension, instance: &TriggerInstance<'_>) -> Decision {
        if !extension.has_state() {
            return Decision::Run;
        }
        let key = match RuleState::key(extension, instance) {
            Ok(key) => key,
            Err(reason) => return Decision::Failed(reason),
        };
        self.decide_key(extension, &key, instance.now()).0
    }

    /// The key that tells a match apart, from `dedup_key`; empty without one.
    ///
    /// # Errors
    /// It cannot be rendered, or is too long.
    pub fn key(extension: &Extension, instance: &TriggerInstance<'_>) -> Result<String, String> {
        match extension.dedup_key.as_ref().map(|template| template.render(instance.context())) {
            None => Ok(String::new()),
            Some(Ok(key)) if key.len() <= RULE_KEY_BYTES_MAX => Ok(key),
            Some(Ok(_)) => Err(format!("`dedup_key` is longer than {RULE_KEY_BYTES_MAX} bytes; shorten it")),
            Some(Err(error)) => Err(format!("`dedup_key`: {error}")),
        }
    }

    /// Decides about a match with this key. Returns also the key that is forgotten to make room, if one is.
    pub fn decide_key(
        &mut self,
        extension: &Extension,
        key: &str,
        now: Timestamp,
    ) -> (Decision, Option<String>) {
        let has_no_room = self.keys.len() >= RULE_KEYS_MAX && !self.keys.contains_key(key);
        let forgotten = if has_no_room { self.forget_oldest() } else { None };
        let now = now.micros();
        let state = self.keys.entry(key.to_owned()).or_default();
        state.matched = now;
        (state.decide(extension, now), forgotten)
    }

    /// What is remembered for a key, to be stored; `None` if it is nothing.
    pub fn stored(&self, key: &str) -> Option<Value> {
        self.keys.get(key).map(KeyState::to_value)
    }

    /// Remembers for a key what was stored; `None` forgets it.
    ///
    /// # Errors
    /// The value was not made by [`RuleState::stored`].
    pub fn restore(&mut self, key: &str, stored: Option<&Value>) -> Result<(), String> {
        match stored {
            None => drop(self.keys.swap_remove(key)),
            Some(value) => {
                let state = KeyState::read(value)
                    .ok_or_else(|| format!("the state of the key `{key}` cannot be read"))?;
                self.keys.insert(key.to_owned(), state);
                if self.keys.len() > RULE_KEYS_MAX {
                    self.forget_oldest();
                }
            }
        }
        Ok(())
    }

    /// The number of values of `dedup_key` that are remembered.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether nothing is remembered.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    fn forget_oldest(&mut self) -> Option<String> {
        let (at, _) = self.keys.values().enumerate().min_by_key(|(_, state)| state.matched)?;
        self.keys.swap_remove_index(at).map(|(key, _)| key)
    }
}

impl KeyState {
    fn to_value(&self) -> Value {
        let list = |moments: &VecDeque<i64>| Value::List(moments.iter().map(|at| Value::Int(*at)).collect());
        Value::Map(Map::from_iter([
            ("matched", Value::Int(self.matched)),
            ("ran", self.ran.map_or(Value::Null, Value::Int)),
            ("counted", list(&self.counted)),
            ("runs", list(&self.runs)),
        ]))
    }

    fn read(value: &Value) -> Option<KeyState> {
        let list = |key: &str| -> Option<VecDeque<i64>> {
            value.get(key)?.as_list()?.iter().map(Value::as_int).collect()
        };
        Some(KeyState {
            matched: value.get("matched")?.as_int()?,
            ran: match value.get("ran")? {
                Value::Null => None,
                ran => Some(ran.as_int()?),
            },
            counted: list("counted")?,
            runs: list("runs")?,
        })
    }

    fn decide(&mut self, extension: &Extension, now: i64) -> Decision {
        if let Some(count) = extension.count {
            forget_before(&mut self.counted, count, now);
            self.counted.push_back(now);
            if self.counted.len() < count.count as usize {
                return Decision::Counted(self.counted.len() as u32);
            }
            self.counted.clear();
        }
        if let (Some(span), Some(ran)) = (extension.once_within, self.ran)
            && now < ran.saturating_add(span)
        {
            return Decision::RanAlready(Timestamp::from_micros(ran.saturating_add(span)));
        }
        if let Some(throttle) = extension.throttle {
            forget_before(&mut self.runs, throttle, now);
            if self.runs.len() >= throttle.count as usize {
                let first = self.runs.front().copied().unwrap_or(now);
                return Decision::Throttled(Timestamp::from_micros(first.saturating_add(throttle.micros)));
            }
            self.runs.push_back(now);
        }
        self.ran = Some(now);
        Decision::Run
    }
}

/// Forgets the moments that no window which ends now has.
fn forget_before(moments: &mut VecDeque<i64>, window: Window, now: i64) {
    while moments.front().is_some_and(|first| first.saturating_add(window.micros) <= now) {
        moments.pop_front();
    }
}
