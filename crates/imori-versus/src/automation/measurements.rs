//! The measurements: which figures each yields, and what it needs.

use anyhow::Result;

use crate::automation::figure::{FIGURES, Value};
use crate::automation::latency::{
    event_to_action, large_result, noop, python_cold, python_warm, shell, workflow,
};
use crate::automation::memory::memory;
use crate::automation::options::AutomationOptions;
use crate::automation::rules::RuleSets;
use crate::automation::subject::{Starter, Subject};
use crate::automation::throughput::{durable_events, noops, webhook_noops};

/// How a measurement is made.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// By requests to the broker.
    Broker(fn(&mut Subject, &AutomationOptions) -> Result<Vec<Value>>),
    /// By an execution of the workflow that has the figure's name, with this runner.
    Workflow(&'static str),
    /// On fresh brokers.
    Memory,
    /// In this process.
    Rules,
}

/// A measurement.
#[derive(Clone, Copy)]
pub(crate) struct Measurement {
    /// Names of its figures.
    pub(crate) figures: &'static [&'static str],
    /// How it is made.
    pub(crate) kind: Kind,
}

/// All measurements. Latencies come first, before there is much history.
pub(crate) const MEASUREMENTS: [Measurement; 16] = [
    by(&["noop"], Kind::Broker(noop)),
    by(&["shell"], Kind::Broker(shell)),
    by(&["python-cold"], Kind::Broker(python_cold)),
    by(&["python-warm"], Kind::Broker(python_warm)),
    by(&["result-4mb"], Kind::Broker(large_result)),
    by(&["chain-20"], Kind::Workflow("action-chain")),
    by(&["chain-100"], Kind::Workflow("action-chain")),
    by(&["orquesta-20"], Kind::Workflow("orquesta")),
    by(&["orquesta-100"], Kind::Workflow("orquesta")),
    by(&["items-101"], Kind::Workflow("orquesta")),
    by(&["event-action-p50", "event-action-p99"], Kind::Broker(event_to_action)),
    by(&["event-durable", "event-durable-cpu"], Kind::Broker(durable_events)),
    by(&["webhook-noop", "webhook-noop-cpu"], Kind::Broker(webhook_noops)),
    by(&["noops", "noops-cpu"], Kind::Broker(noops)),
    by(&["memory-idle", "memory-rules"], Kind::Memory),
    by(
        &[
            "rules-read",
            "rules-1",
            "rules-100",
            "rules-100-events",
            "rules-10000",
            "rules-growth",
            "rules-scan-100",
            "rules-scan-100-events",
            "rules-scan-10000",
        ],
        Kind::Rules,
    ),
];

const fn by(figures: &'static [&'static str], kind: Kind) -> Measurement {
    Measurement { figures, kind }
}

/// The outcome of a measurement in one round.
pub(crate) enum Measured {
    /// Its figures.
    Values(Vec<Value>),
    /// The reason why this broker cannot be measured so.
    Unavailable(String),
}

/// What measurements share.
pub(crate) struct Bench<'a> {
    options: &'a AutomationOptions,
    /// The means to start brokers; `None` if one runs already.
    starter: Option<Starter>,
    /// The broker; `None` until a measurement needs it.
    subject: Option<Subject>,
    rules: Option<RuleSets>,
}

impl Measurement {
    /// Whether `--only` chooses one of its figures.
    pub(crate) fn is_chosen(&self, only: &[String]) -> bool {
        FIGURES.iter().any(|figure| self.figures.contains(&figure.name) && figure.is_chosen(only))
    }

    /// Whether it needs the broker that all rounds share.
    pub(crate) fn needs_broker(&self) -> bool {
        matches!(self.kind, Kind::Broker(_) | Kind::Workflow(_))
    }
}

impl<'a> Bench<'a> {
    /// Measurements of a broker that runs, or of brokers that are started.
    pub(crate) fn new(
        options: &'a AutomationOptions,
        starter: Option<Starter>,
        subject: Option<Subject>,
    ) -> Bench<'a> {
        Bench { options, starter, subject, rules: None }
    }

    /// Starts the broker that all rounds share, unless one runs.
    pub(crate) fn subject(&mut self) -> Result<Option<&mut Subject>> {
        if self.subject.is_none()
            && let Some(starter) = &self.starter
        {
            self.subject = Some(starter.with_automation()?);
        }
        Ok(self.subject.as_mut())
    }

    /// Makes a measurement once.
    pub(crate) fn measure(&mut self, measurement: &Measurement) -> Result<Measured> {
        let options = self.options;
        let none = || Measured::Unavailable("there is no broker".to_owned());
        let values = match measurement.kind {
            Kind::Broker(measure) => match self.subject()? {
                Some(subject) => measure(subject, options)?,
                None => return Ok(none()),
            },
            Kind::Workflow(runner) => match (self.subject()?, measurement.figures.first()) {
                (Some(subject), Some(_)) if !subject.has_runner(runner) => {
                    return Ok(Measured::Unavailable(format!("the broker has no runner `{runner}`")));
                }
                (Some(subject), Some(figure)) => match workflow(subject, figure) {
                    Ok(values) => values,
                    // A runner that is only listed says so in the result.
                    Err(error) => return Ok(Measured::Unavailable(format!("{error:#}"))),
                },
                _ => return Ok(none()),
            },
            Kind::Memory => match &self.starter {
                Some(starter) => memory(starter, options.hold)?,
                None => {
                    let why = "a broker that runs already has no broker to compare with";
                    return Ok(Measured::Unavailable(why.to_owned()));
                }
            },
            Kind::Rules => {
                if self.rules.is_none() {
                    self.rules = Some(RuleSets::read()?);
                }
                match &self.rules {
                    Some(rules) => rules.evaluate(options.cpu_time)?,
                    None => return Ok(none()),
                }
            }
        };
        Ok(Measured::Values(values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_figure_is_measured_once() {
        for figure in &FIGURES {
            let count = MEASUREMENTS.iter().filter(|one| one.figures.contains(&figure.name)).count();
            assert_eq!(count, 1, "{}", figure.name);
        }
        let names = MEASUREMENTS.iter().flat_map(|one| one.figures);
        assert_eq!(names.count(), FIGURES.len());
    }

    #[test]
    fn rules_need_no_broker() {
        let chosen = |only: &str| {
            let only = vec![only.to_owned()];
            let chosen = MEASUREMENTS.iter().filter(move |one| one.is_chosen(&only));
            chosen.map(Measurement::needs_broker).collect::<Vec<_>>()
        };
        assert_eq!(chosen("rules"), [false]);
        assert_eq!(chosen("memory"), [false]);
        assert_eq!(chosen("noop"), [true, true]);
        assert!(chosen("x").is_empty());
    }
}
