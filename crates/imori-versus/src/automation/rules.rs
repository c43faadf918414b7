//! Rules evaluated in this process, in CPU time: for each event the JSON of its payload is read, and the rules of its
//! trigger that match are found.

use std::fs;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use imori_automation::criteria::TriggerInstance;
use imori_automation::rules::{Rule, RuleSet};
use imori_automation::times::Timestamp;
use imori_automation::value::Value;
use imori_automation::yaml;

use crate::automation::figure::Value as FigureValue;

/// A push as a forge sends it, of about 1 KB.
pub(crate) const PUSH: &str = include_str!("../../../imori-automation/benches/push.txt");

/// A rule for pushes, with placeholders for its number and the operator of its first criterion.
const RULE: &str = include_str!("../../../imori-automation/benches/rule.yaml");

/// The trigger of the rules.
const TRIGGER: &str = "core.st2.webhook";

/// The keys that lead to the pattern of a rule's first criterion.
const PATTERN: [&str; 3] = ["criteria", "trigger.body.repository.name", "pattern"];

/// The time of the events, in seconds since 1970.
const NOW: i64 = 1_790_000_000;

/// Events between two looks at the CPU time.
const BATCH: u64 = 16;

/// The sets of rules that are measured.
#[derive(Debug)]
pub(crate) struct RuleSets {
    none: RuleSet,
    equals: [RuleSet; 3],
    scanned: [RuleSet; 2],
}

/// CPU time of an event in nanoseconds, by set.
#[derive(Debug, Clone, Copy, PartialEq)]
struct EventNanos {
    none: f64,
    equals: [f64; 3],
    scanned: [f64; 2],
}

impl RuleSets {
    /// Reads the rules.
    pub(crate) fn read() -> Result<RuleSets> {
        // The index finds rules by the values of `equals`; it knows nothing of `iequals`.
        let of = |count, operator| rule_set(count, operator);
        Ok(RuleSets {
            none: RuleSet::new(),
            equals: [of(1, "equals")?, of(100, "equals")?, of(10_000, "equals")?],
            scanned: [of(100, "iequals")?, of(10_000, "iequals")?],
        })
    }

    /// Evaluates each set for this CPU time.
    pub(crate) fn evaluate(&self, cpu_time: Duration) -> Result<Vec<FigureValue>> {
        let event = |rules: &RuleSet| event_nanos(rules, usize::from(!rules.is_empty()), cpu_time);
        let [one, hundred, many] = &self.equals;
        let [scanned, scanned_many] = &self.scanned;
        Ok(EventNanos {
            none: event(&self.none)?,
            equals: [event(one)?, event(hundred)?, event(many)?],
            scanned: [event(scanned)?, event(scanned_many)?],
        }
        .figures())
    }
}

impl EventNanos {
    fn figures(self) -> Vec<FigureValue> {
        let a_second = |nanos: f64| 1e9 / nanos;
        let [one, hundred, many] = self.equals;
        let [scanned, scanned_many] = self.scanned;
        vec![
            ("rules-read", a_second(self.none)),
            ("rules-1", a_second(one)),
            ("rules-100", a_second(hundred) * 100.0),
            ("rules-100-events", a_second(hundred)),
            ("rules-10000", a_second(many) * 10_000.0),
            ("rules-growth", many / one),
            ("rules-scan-100", a_second(scanned) * 100.0),
            ("rules-scan-100-events", a_second(scanned)),
            ("rules-scan-10000", a_second(scanned_many) * 10_000.0),
        ]
    }
}

/// So many rules, of which the first matches a push.
fn rule_set(count: usize, operator: &str) -> Result<RuleSet> {
    let text = RULE.replace("NUMBER", "0").replace("OPERATOR", operator);
    let written = yaml::load(&text).map_err(|error| anyhow!("the rule: {error}"))?;
    (0..count)
        .map(|number| {
            let mut written = written.clone();
            set(&mut written, &["name"], format!("rule{number}"))?;
            set(&mut written, &PATTERN, format!("repository-{number}"))?;
            Rule::read(&written).map(Arc::new).map_err(|error| anyhow!("rule {number}: {error}"))
        })
        .collect()
}

/// Sets a text within a rule.
fn set(rule: &mut Value, path: &[&str], text: String) -> Result<()> {
    let mut at = rule;
    for key in path {
        at = match at {
            Value::Map(map) => map.get_mut(key),
            _ => None,
        }
        .with_context(|| format!("the rule has no `{key}`"))?;
    }
    *at = Value::String(text);
    Ok(())
}

/// CPU time of one event in nanoseconds; `matching` rules have to match it.
fn event_nanos(rules: &RuleSet, matching: usize, cpu_time: Duration) -> Result<f64> {
    let budget = cpu_time.as_nanos() as f64;
    let begin = cpu_nanos()?;
    let mut events = 0_u64;
    loop {
        for _ in 0..BATCH {
            let payload = Value::from_json(black_box(PUSH).trim_end().as_bytes());
            let payload = payload.map_err(|error| anyhow!("the payload: {error}"))?;
            let instance = TriggerInstance::new(&payload, Timestamp::from_seconds(NOW));
            let matches = black_box(rules.matches(TRIGGER, &instance));
            let (found, failed) = (matches.matched.len(), matches.failed.len());
            ensure!(
                (found, failed) == (matching, 0),
                "`{found}` rules match and `{failed}` fail, of which `{matching}` should match"
            );
        }
        events += BATCH;
        let spent = cpu_nanos()?.saturating_sub(begin) as f64;
        if spent >= budget && spent > 0.0 {
            return Ok(spent / events as f64);
        }
    }
}

/// CPU time of this thread in nanoseconds.
fn cpu_nanos() -> Result<u64> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let first = text.split_ascii_whitespace().next().and_then(|number| number.parse().ok());
    first.context("`/proc/thread-self/schedstat` cannot be read; mount `/proc`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_follow_from_the_time_of_an_event() {
        let times = EventNanos { none: 5e3, equals: [10e3, 20e3, 25e3], scanned: [50e3, 2e6] };
        let expected = [
            ("rules-read", 200e3),
            ("rules-1", 100e3),
            ("rules-100", 5e6),
            ("rules-100-events", 50e3),
            ("rules-10000", 400e6),
            ("rules-growth", 2.5),
            ("rules-scan-100", 2e6),
            ("rules-scan-100-events", 20e3),
            ("rules-scan-10000", 5e6),
        ];
        assert_eq!(times.figures(), expected);
    }

    #[test]
    fn one_rule_of_each_set_matches() {
        for (count, operator) in [(1, "equals"), (30, "equals"), (30, "iequals")] {
            let rules = rule_set(count, operator).unwrap();
            assert!(event_nanos(&rules, 1, Duration::ZERO).unwrap() > 0.0, "{count} {operator}");
            assert!(event_nanos(&rules, 2, Duration::ZERO).is_err(), "{count} {operator}");
        }
        assert!(event_nanos(&RuleSet::new(), 0, Duration::ZERO).is_ok());
    }
}
