//! The result: medians beside their goals, as a table for people and as JSON for programs.

use std::collections::BTreeMap;

use imori_bench::record::latency::Latency;
use imori_bench::record::machine::Machine;
use imori_bench::report::spread::Spread;
use serde::Serialize;

use crate::automation::figure::{FIGURES, Figure, Goal, Unit, Value};
use crate::versus::text::{head, line, row};

/// Version of the JSON format.
const FORMAT: u32 = 1;

/// Measured values and reasons for those that are missing, by the names of the figures.
#[derive(Debug, Default)]
pub(crate) struct Results {
    values: BTreeMap<&'static str, Vec<f64>>,
    missing: BTreeMap<&'static str, Missing>,
}

/// The reason why a figure is missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Missing {
    /// The broker lacks what is measured.
    Unavailable(String),
    /// The measurement failed.
    Failed(String),
}

/// The circumstances of a run.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Circumstances {
    /// Version or address of the broker.
    pub(crate) broker: String,
    /// When the run began, in seconds since 1970.
    pub(crate) started_at: f64,
    /// The machine.
    pub(crate) machine: Machine,
    /// Load average of the machine over a minute, before the run.
    pub(crate) load_average: Option<f64>,
    /// Time that the broker's disk took to write and sync 4 KiB, beside the load.
    pub(crate) disk_sync: Option<Latency>,
    /// The options that values depend on.
    pub(crate) asked: serde_json::Map<String, serde_json::Value>,
    /// Notes that a reader needs before using the numbers.
    pub(crate) notes: Vec<String>,
}

/// The result of a run.
#[derive(Debug, Serialize)]
pub(crate) struct AutomationReport {
    format: u32,
    tool: &'static str,
    #[serde(flatten)]
    circumstances: Circumstances,
    figures: Vec<Row>,
}

/// A figure with its values.
#[derive(Debug, Serialize)]
struct Row {
    name: &'static str,
    title: &'static str,
    unit: Unit,
    goal: Goal,
    /// One for each round.
    values: Vec<f64>,
    median: Option<f64>,
    least: Option<f64>,
    greatest: Option<f64>,
    /// Whether the median keeps the goal.
    is_kept: Option<bool>,
    /// The reason why there is no value.
    missing: Option<String>,
}

impl Results {
    /// Adds the values of a round.
    pub(crate) fn add(&mut self, values: Vec<Value>) {
        for (name, value) in values {
            self.values.entry(name).or_default().push(value);
        }
    }

    /// Notes why figures are missing. Values of earlier rounds stay.
    pub(crate) fn miss(&mut self, names: &[&'static str], why: &Missing) {
        for name in names {
            self.missing.insert(name, why.clone());
        }
    }

    /// Whether one of these figures has been given up.
    pub(crate) fn is_missing(&self, names: &[&'static str]) -> bool {
        names.iter().any(|name| self.missing.contains_key(name))
    }

    /// Whether a measurement failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.missing.values().any(|why| matches!(why, Missing::Failed(_)))
    }

    /// The report, with the figures that `only` chooses.
    pub(crate) fn report(&self, circumstances: Circumstances, only: &[String]) -> AutomationReport {
        let chosen = FIGURES.iter().filter(|figure| figure.is_chosen(only));
        AutomationReport {
            format: FORMAT,
            tool: env!("CARGO_PKG_VERSION"),
            circumstances,
            figures: chosen.map(|figure| self.row(figure)).collect(),
        }
    }

    fn row(&self, figure: &Figure) -> Row {
        let values = self.values.get(figure.name).cloned().unwrap_or_default();
        let spread = Spread::of(values.iter().copied());
        let missing = match self.missing.get(figure.name) {
            Some(Missing::Unavailable(why)) => Some(format!("not available: {why}")),
            Some(Missing::Failed(why)) => Some(format!("failed: {why}")),
            None if spread.is_none() => Some("too few samples".to_owned()),
            None => None,
        };
        Row {
            name: figure.name,
            title: figure.title,
            unit: figure.unit,
            goal: figure.goal,
            values,
            median: spread.map(|spread| spread.median),
            least: spread.map(|spread| spread.least),
            greatest: spread.map(|spread| spread.greatest),
            is_kept: spread.and_then(|spread| figure.goal.is_kept_by(spread.median)),
            missing,
        }
    }
}

impl AutomationReport {
    /// The table, as Markdown.
    pub(crate) fn markdown(&self) -> String {
        let facts = &self.circumstances;
        let mut text = "# Automation\n\n".to_owned();
        line(&mut text, &format!("- broker: {}", facts.broker));
        let machine = &facts.machine;
        line(&mut text, &format!("- machine: {} x {}, {}", machine.cpus, machine.cpu, machine.kernel));
        if let Some(load) = facts.load_average {
            line(&mut text, &format!("- load average before the run: {load:.2}"));
        }
        if let Some(median) = facts.disk_sync.as_ref().and_then(|sync| sync.p50_us) {
            let text_of = imori_bench::page::quantity::time(median);
            line(
                &mut text,
                &format!("- a write of 4 KiB with a sync beside the load: {text_of} in the median"),
            );
        }
        for note in &facts.notes {
            line(&mut text, &format!("- {note}"));
        }
        head(&mut text, "figure", &["what", "median (least to greatest)", "goal", "kept"]);
        for row in &self.figures {
            row.write(&mut text);
        }
        text
    }
}

impl Row {
    fn write(&self, text: &mut String) {
        let figure = Figure { name: self.name, title: self.title, unit: self.unit, goal: self.goal };
        let spread = Spread::of(self.values.iter().copied());
        let value = match (spread, &self.missing) {
            (Some(spread), None) => spread.show(|value| figure.shown(value)),
            (Some(spread), Some(why)) => format!("{}; {why}", spread.show(|value| figure.shown(value))),
            (None, why) => why.clone().unwrap_or_default(),
        };
        let kept = match self.is_kept {
            Some(true) => "yes",
            Some(false) => "no",
            None => "",
        };
        let value = value.replace(['\n', '|'], " ");
        row(text, self.name, &[self.title, &value, &figure.shown_goal(), kept]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circumstances() -> Circumstances {
        Circumstances {
            broker: "imori 1.2.3".to_owned(),
            started_at: 0.0,
            machine: Machine::default(),
            load_average: Some(1.5),
            disk_sync: None,
            asked: serde_json::Map::new(),
            notes: vec!["a note".to_owned()],
        }
    }

    #[test]
    fn medians_stand_beside_their_goals() {
        let mut results = Results::default();
        for value in [9e3, 12e3, 8e3] {
            results.add(vec![("noop", value), ("shell", value + 10e3)]);
        }
        results.miss(&["chain-20"], &Missing::Unavailable("no | runner".to_owned()));
        assert!(!results.has_failed() && results.is_missing(&["noop", "chain-20"]));
        results.miss(&["noops"], &Missing::Failed("no answer".to_owned()));
        assert!(results.has_failed());
        let only = ["noop", "shell", "chain-20"].map(str::to_owned);
        let report = results.report(circumstances(), &only);
        let text = report.markdown();
        for part in [
            "- broker: imori 1.2.3",
            "- load average before the run: 1.50",
            "- a note",
            "| noop | one noop, from the request to its end | 9.00 ms (8.00 to 12.0 ms) | ≤ 10.0 ms | yes |",
            "| 19.0 ms (18.0 to 22.0 ms) | ≤ 15.0 ms | no |",
            "| not available: no   runner | ≤ 300 ms |  |",
            "| failed: no answer | ≥ 2 000 /s |  |",
        ] {
            assert!(text.contains(part), "`{part}` is not in\n{text}");
        }
        assert!(!text.contains("python-warm"));
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["broker"], "imori 1.2.3");
        let noop = json["figures"].as_array().unwrap().iter().find(|row| row["name"] == "noop").unwrap();
        assert_eq!((&noop["median"], &noop["is_kept"]), (&9e3.into(), &true.into()));
        assert_eq!(noop["values"], serde_json::json!([9e3, 12e3, 8e3]));
        assert_eq!(noop["goal"], serde_json::json!({ "at_most": 10e3 }));
    }
}
