//! The figures: their names, units and goals, and whether a median keeps its goal.

use imori_bench::page::quantity::{bytes, grouped, time};
use serde::Serialize;

/// The unit of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Unit {
    /// Something a second.
    PerSecond,
    /// Something per second of CPU time.
    PerCpuSecond,
    /// Microseconds.
    Micros,
    /// Bytes.
    Bytes,
    /// A ratio.
    Ratio,
}

/// The bound that a figure is to keep.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Goal {
    /// At least this.
    AtLeast(f64),
    /// At most this.
    AtMost(f64),
    /// None; the figure is shown for comparison.
    None,
}

/// A figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Figure {
    /// The name, which `--only` chooses by.
    pub(crate) name: &'static str,
    /// What is measured.
    pub(crate) title: &'static str,
    /// The unit.
    pub(crate) unit: Unit,
    /// The goal.
    pub(crate) goal: Goal,
}

/// The name of a figure, and a measured value.
pub(crate) type Value = (&'static str, f64);

const MIB: f64 = 1_048_576.0;

/// All figures, in the order of the table.
pub(crate) const FIGURES: [Figure; 29] = [
    figure(
        "event-durable",
        "events on disk, sent to a webhook that no rule matches",
        Unit::PerSecond,
        Goal::AtLeast(10e3),
    ),
    figure("event-durable-cpu", "CPU of the broker for one of these", Unit::Micros, Goal::None),
    figure("event-action-p50", "event to the end of its action, median", Unit::Micros, Goal::None),
    figure("event-action-p99", "event to the end of its action, 99 of 100", Unit::Micros, Goal::AtMost(20e3)),
    figure("webhook-noop", "webhook, rule, noop", Unit::PerSecond, Goal::AtLeast(1e3)),
    figure("webhook-noop-cpu", "CPU of the broker for one of these", Unit::Micros, Goal::None),
    figure("noops", "noops requested by the API", Unit::PerSecond, Goal::AtLeast(2e3)),
    figure("noops-cpu", "CPU of the broker for one of these", Unit::Micros, Goal::None),
    figure("noop", "one noop, from the request to its end", Unit::Micros, Goal::AtMost(10e3)),
    figure("shell", "one `echo` of the shell", Unit::Micros, Goal::AtMost(15e3)),
    figure("python-warm", "one Python action, its Python runs already", Unit::Micros, Goal::AtMost(25e3)),
    figure("python-cold", "one Python action, its Python starts", Unit::Micros, Goal::AtMost(250e3)),
    figure("chain-20", "action-chain of 20 noops", Unit::Micros, Goal::AtMost(300e3)),
    figure("chain-100", "action-chain of 100 noops", Unit::Micros, Goal::AtMost(1_200e3)),
    figure("orquesta-20", "Orquesta workflow of 20 noops in a row", Unit::Micros, Goal::AtMost(300e3)),
    figure("orquesta-100", "Orquesta workflow of 100 noops in a row", Unit::Micros, Goal::AtMost(1_200e3)),
    figure("items-101", "Orquesta task with 101 items", Unit::Micros, Goal::AtMost(500e3)),
    figure("result-4mb", "a Python action that returns 4 MB", Unit::Micros, Goal::AtMost(200e3)),
    figure(
        "memory-idle",
        "memory of an idle broker over one without automation",
        Unit::Bytes,
        Goal::AtMost(3.0 * MIB),
    ),
    figure("memory-rules", "memory that 50 rules add", Unit::Bytes, Goal::AtMost(8.0 * MIB)),
    figure("rules-read", "payloads of 1 KB read, no rule", Unit::PerCpuSecond, Goal::None),
    figure("rules-1", "evaluations, 1 rule on the trigger", Unit::PerCpuSecond, Goal::None),
    figure("rules-100", "evaluations, 100 rules with an `equals`", Unit::PerCpuSecond, Goal::AtLeast(500e3)),
    figure("rules-100-events", "events, 100 rules with an `equals`", Unit::PerCpuSecond, Goal::None),
    figure(
        "rules-10000",
        "evaluations, 10,000 rules with an `equals`",
        Unit::PerCpuSecond,
        Goal::AtLeast(500e3),
    ),
    figure(
        "rules-growth",
        "an event with 10,000 such rules, over one with 1",
        Unit::Ratio,
        Goal::AtMost(3.0),
    ),
    figure(
        "rules-scan-100",
        "evaluations, 100 rules without `equals`",
        Unit::PerCpuSecond,
        Goal::AtLeast(500e3),
    ),
    figure("rules-scan-100-events", "events, 100 rules without `equals`", Unit::PerCpuSecond, Goal::None),
    figure(
        "rules-scan-10000",
        "evaluations, 10,000 rules without `equals`",
        Unit::PerCpuSecond,
        Goal::AtLeast(500e3),
    ),
];

const fn figure(name: &'static str, title: &'static str, unit: Unit, goal: Goal) -> Figure {
    Figure { name, title, unit, goal }
}

impl Figure {
    /// Whether `--only` chooses it; an empty list chooses all.
    pub(crate) fn is_chosen(&self, only: &[String]) -> bool {
        only.is_empty() || only.iter().any(|begin| self.name.starts_with(begin.as_str()))
    }

    /// Formats a value with its unit.
    pub(crate) fn shown(&self, value: f64) -> String {
        match self.unit {
            Unit::PerSecond => format!("{} /s", grouped(value)),
            Unit::PerCpuSecond => format!("{} /CPU-s", grouped(value)),
            Unit::Micros => time(value),
            Unit::Bytes => bytes(value),
            Unit::Ratio => format!("x{value:.2}"),
        }
    }

    /// The goal with its unit; empty if there is none.
    pub(crate) fn shown_goal(&self) -> String {
        match self.goal {
            Goal::AtLeast(bound) => format!("≥ {}", self.shown(bound)),
            Goal::AtMost(bound) => format!("≤ {}", self.shown(bound)),
            Goal::None => String::new(),
        }
    }
}

impl Goal {
    /// Whether a value keeps it; `None` without a goal.
    pub(crate) fn is_kept_by(self, value: f64) -> Option<bool> {
        match self {
            Goal::AtLeast(bound) => Some(value >= bound),
            Goal::AtMost(bound) => Some(value <= bound),
            Goal::None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_chosen_by_their_beginning() {
        for (at, figure) in FIGURES.iter().enumerate() {
            assert!(FIGURES.iter().skip(at + 1).all(|other| other.name != figure.name), "{}", figure.name);
        }
        let chosen = |only: &[&str]| {
            let only: Vec<String> = only.iter().map(|word| (*word).to_owned()).collect();
            FIGURES.iter().filter(|figure| figure.is_chosen(&only)).count()
        };
        assert_eq!((chosen(&[]), chosen(&["memory", "shell"]), chosen(&["x"])), (FIGURES.len(), 3, 0));
    }

    #[test]
    fn a_goal_is_kept_at_its_bound() {
        for (goal, value, expected) in [
            (Goal::AtLeast(10.0), 10.0, Some(true)),
            (Goal::AtLeast(10.0), 9.9, Some(false)),
            (Goal::AtMost(10.0), 10.0, Some(true)),
            (Goal::AtMost(10.0), 10.1, Some(false)),
            (Goal::None, 1.0, None),
        ] {
            assert_eq!(goal.is_kept_by(value), expected, "{goal:?} {value}");
        }
    }

    #[test]
    fn values_are_shown_with_their_units() {
        let shown = |unit, value| figure("x", "x", unit, Goal::AtMost(value)).shown_goal();
        for (unit, value, expected) in [
            (Unit::PerSecond, 12_345.0, "≤ 12 345 /s"),
            (Unit::PerCpuSecond, 500e3, "≤ 500 000 /CPU-s"),
            (Unit::Micros, 20e3, "≤ 20.0 ms"),
            (Unit::Bytes, 3.0 * MIB, "≤ 3.00 MiB"),
            (Unit::Ratio, 3.0, "≤ x3.00"),
        ] {
            assert_eq!(shown(unit, value), expected);
        }
    }
}
