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

#[cfg(test)]
mod tests {
    use super::*;

    fn extension(text: &str) -> Extension {
        let value = crate::yaml::load(text).unwrap();
        Extension::read(value.as_map().unwrap()).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    /// Decides about matches at these seconds, each with its host.
    fn decisions(text: &str, matches: &[(i64, &str)]) -> Vec<Decision> {
        let extension = extension(text);
        let mut state = RuleState::default();
        let decide = |(second, host): &(i64, &str)| {
            let payload = Value::from_json(format!(r#"{{"host":"{host}"}}"#).as_bytes()).unwrap();
            state.decide(&extension, &TriggerInstance::new(&payload, Timestamp::from_seconds(*second)))
        };
        matches.iter().map(decide).collect()
    }

    fn until(second: i64) -> Timestamp {
        Timestamp::from_seconds(second)
    }

    #[test]
    fn a_rule_without_such_keys_always_runs() {
        assert_eq!(decisions("limit: 1", &[(0, "a"), (0, "a")]), [Decision::Run, Decision::Run]);
    }

    #[test]
    fn a_count_runs_at_the_last_match_and_begins_anew() {
        let given = decisions(
            "count: {n: 3, within: 10}",
            &[(0, ""), (1, ""), (10, ""), (11, ""), (12, ""), (13, "")],
        );
        let counted = Decision::Counted;
        // The first match is out of the window at 10, and that at 1 at 11.
        assert_eq!(given, [counted(1), counted(2), counted(2), counted(2), Decision::Run, counted(1)]);
    }

    #[test]
    fn once_within_holds_matches_back_from_the_run_on() {
        let given = decisions("once_within: 10", &[(0, ""), (9, ""), (10, ""), (19, ""), (20, "")]);
        let held = |second| Decision::RanAlready(until(second));
        assert_eq!(given, [Decision::Run, held(10), Decision::Run, held(20), Decision::Run]);
    }

    #[test]
    fn a_throttle_allows_runs_within_any_window() {
        let given =
            decisions("throttle: {n: 2, within: 10}", &[(0, ""), (8, ""), (9, ""), (10, ""), (11, "")]);
        let held = |second| Decision::Throttled(until(second));
        assert_eq!(given, [Decision::Run, Decision::Run, held(10), Decision::Run, held(18)]);
    }

    #[test]
    fn each_value_of_the_key_is_decided_alone() {
        let text = "{once_within: 10, dedup_key: '{{ trigger.host }}'}";
        let given = decisions(text, &[(0, "a"), (1, "b"), (2, "a")]);
        assert_eq!(given, [Decision::Run, Decision::Run, Decision::RanAlready(until(10))]);
        let failed = decisions("{once_within: 10, dedup_key: '{{ trigger.missing }}'}", &[(0, "a")]);
        assert!(matches!(failed.as_slice(), [Decision::Failed(reason)] if reason.contains("dedup_key")));
    }

    #[test]
    fn a_stored_state_decides_as_the_one_it_was_made_of() {
        let text = "{count: {n: 2, within: 10}, once_within: 5, throttle: {n: 2, within: 60}}";
        let extension = extension(text);
        let seconds = [0, 1, 2, 3, 7, 8, 20, 21, 22, 30, 31, 70, 71];
        let mut whole = RuleState::default();
        let mut stored = None;
        for second in seconds {
            let now = Timestamp::from_seconds(second);
            let mut again = RuleState::default();
            again.restore("k", stored.as_ref()).unwrap();
            let expected = whole.decide_key(&extension, "k", now).0;
            assert_eq!(again.decide_key(&extension, "k", now).0, expected, "at {second}");
            stored = again.stored("k");
        }
        let mut state = RuleState::default();
        assert!(state.restore("k", Some(&Value::from("no state"))).is_err());
        state.restore("k", stored.as_ref()).unwrap();
        state.restore("k", None).unwrap();
        assert!(state.is_empty());
    }

    #[test]
    fn the_key_that_matched_longest_ago_is_forgotten() {
        let extension = extension("{once_within: 1h, dedup_key: '{{ trigger.n }}'}");
        let mut state = RuleState::default();
        let mut decide = |n: i64, second: i64| {
            let payload = Value::Map(Map::from_iter([("n", n)]));
            state.decide(&extension, &TriggerInstance::new(&payload, Timestamp::from_seconds(second)))
        };
        for n in 0..RULE_KEYS_MAX as i64 {
            assert_eq!(decide(n, n / 10), Decision::Run);
        }
        assert!(matches!(decide(0, 500), Decision::RanAlready(_)));
        assert_eq!(decide(-1, 501), Decision::Run);
        assert!(matches!(decide(0, 502), Decision::RanAlready(_)));
        assert_eq!(decide(1, 503), Decision::Run);
        assert_eq!(state.len(), RULE_KEYS_MAX);
    }
}
