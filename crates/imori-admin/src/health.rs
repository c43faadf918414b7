//! Whether the broker is ready, and whether a restart would help.
//!
//! Nothing that clients cause counts, such as memory used by messages or a full queue.

use std::time::Duration;

use imori_server::broker::Broker;
use imori_server::stall::Cause;
use imori_server::{AutomationState, Phase};

/// A cell that lags this much is considered dead.
const DEAD_LAG: Duration = Duration::from_secs(60);

/// A reason for being unhealthy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ailment {
    /// The broker is stopping, or has.
    Stopping,
    /// The disk does not respond: for how long, and the cause if known.
    DiskStalled(Duration, Option<Cause>),
    /// The store is damaged, with these findings.
    Damaged(Vec<String>),
    /// A cell lags by this much.
    CellStalled(Duration),
    /// The automation does not work, for this reason.
    AutomationAway(String),
    /// Publishers wait for memory or disk space.
    PublishersWait(&'static str),
}

impl Ailment {
    /// The name for machines.
    pub fn name(&self) -> &'static str {
        match self {
            Ailment::Stopping => "stopping",
            Ailment::DiskStalled(..) => "disk_stalled",
            Ailment::Damaged(_) => "damaged",
            Ailment::CellStalled(_) => "cell_stalled",
            Ailment::AutomationAway(_) => "automation_away",
            Ailment::PublishersWait(_) => "publishers_wait",
        }
    }

    /// The description for people.
    pub fn text(&self) -> String {
        match self {
            Ailment::Stopping => String::from("the broker is stopping"),
            Ailment::DiskStalled(lasts, cause) => {
                let because = cause.map(|cause| format!(": {}", cause.text())).unwrap_or_default();
                format!(
                    "the disk has not answered for {:.1} s, persistent messages are not confirmed{because}",
                    lasts.as_secs_f64()
                )
            }
            Ailment::Damaged(findings) => {
                let more = match findings.len() {
                    0 | 1 => String::new(),
                    count => format!(", and {} more", count - 1),
                };
                let first = findings.first().map(String::as_str).unwrap_or_default();
                format!("{first}{more}; `/storez` lists what was found, `imori store acknowledge` ends this")
            }
            Ailment::CellStalled(lag) => {
                format!("a cell has not come to its work for {:.0} s", lag.as_secs_f64())
            }
            Ailment::AutomationAway(reason) => reason.clone(),
            Ailment::PublishersWait(resource) => format!("publishers wait for {resource}"),
        }
    }
}

/// The reason why the broker is not ready, if any. Unacknowledged damage counts only with `counts_damage`: a restart
/// does not repair it, so probes that restart unhealthy brokers must not see it.
pub(crate) fn unreadiness(broker: &Broker, counts_damage: bool) -> Option<Ailment> {
    let stalled_flush = broker.settings().config().journal.stalled_flush_ms.duration();
    let lasts = broker.journal_figures().flushing_for.filter(|lasts| *lasts >= stalled_flush);
    let damages = if counts_damage { broker.damages() } else { Vec::new() };
    judge(broker.phase(), lasts, broker.flush_cause(), damages)
}

/// A part of the broker that has a readiness of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// The automation.
    Automation,
    /// Publishers.
    Publish,
}

impl Part {
    /// The part of this name.
    pub(crate) fn named(name: &str) -> Option<Part> {
        match name {
            "automation" => Some(Part::Automation),
            "publish" => Some(Part::Publish),
            _ => None,
        }
    }
}

/// The reason why a part of the broker is not ready, if any.
pub(crate) fn unreadiness_of(broker: &Broker, part: Part) -> Option<Ailment> {
    if let Some(ailment) = unreadiness(broker, false).filter(|_| part == Part::Publish) {
        return Some(ailment);
    }
    match part {
        Part::Automation if broker.phase() != Phase::Serving => Some(Ailment::Stopping),
        Part::Automation => match broker.automation_state() {
            AutomationState::Ready => None,
            AutomationState::Absent => {
                Some(Ailment::AutomationAway(String::from("this broker has no listener of the automation")))
            }
            AutomationState::Starting => {
                Some(Ailment::AutomationAway(String::from("the automation has not started yet")))
            }
            AutomationState::Away(reason) => Some(Ailment::AutomationAway(reason)),
        },
        Part::Publish if broker.memory_figures().is_alarmed => Some(Ailment::PublishersWait("memory")),
        Part::Publish if broker.journal_figures().is_room_scarce => {
            Some(Ailment::PublishersWait("disk space"))
        }
        Part::Publish => None,
    }
}

/// The reason why the broker needs a restart, if any: a dead cell. A slow, full or frozen disk is no reason, and neither
/// is a stop in progress.
pub(crate) fn lifelessness(broker: &Broker) -> Option<Ailment> {
    let lags = broker.cell_figures().into_iter().map(|cell| cell.lag);
    lags.max().filter(|lag| *lag >= DEAD_LAG).map(Ailment::CellStalled)
}

/// The ailment of a broker in this phase, by how long a flush lasts if that is too long, its cause, and the findings
/// of damage that count.
pub fn judge(
    phase: Phase,
    lasts: Option<Duration>,
    cause: Option<Cause>,
    damages: Vec<String>,
) -> Option<Ailment> {
    match (phase, lasts) {
        (Phase::Stopping | Phase::Ended, _) => Some(Ailment::Stopping),
        (Phase::Serving, Some(lasts)) => Some(Ailment::DiskStalled(lasts, cause)),
        (Phase::Serving, None) => (!damages.is_empty()).then_some(Ailment::Damaged(damages)),
    }
}
