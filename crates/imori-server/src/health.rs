//! Whether the broker can do its work, and whether a restart would help it.
//!
//! Nothing that a client makes counts: neither memory that messages take nor a queue that is full.

use std::time::Duration;

use crate::shared::{Phase, Shared};
use crate::stall::Cause;

/// A cell that is so late will not come back.
const DEAD_LAG: Duration = Duration::from_secs(60);

/// Why the broker is not well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ailment {
    /// The broker is stopping, or has.
    Stopping,
    /// The disk does not answer: since when, and why as far as is known.
    DiskStalled(Duration, Option<Cause>),
    /// The store was found damaged, in these ways.
    Damaged(Vec<String>),
    /// A cell has not come to its work for so long.
    CellStalled(Duration),
}

impl Ailment {
    /// The name by which machines know it.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Ailment::Stopping => "stopping",
            Ailment::DiskStalled(..) => "disk_stalled",
            Ailment::Damaged(_) => "damaged",
            Ailment::CellStalled(_) => "cell_stalled",
        }
    }

    /// The sentence for people.
    pub(crate) fn text(&self) -> String {
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
        }
    }
}

impl Shared {
    /// Why the broker cannot do its work, if it cannot. Damage that nobody has acknowledged counts where it is asked for. A restart does not mend it, so it must be hidden from a probe that
    /// restarts what is not healthy.
    pub(crate) fn unreadiness(&self, counts_damage: bool) -> Option<Ailment> {
        let stalled_flush = self.settings.load().config.journal.stalled_flush_ms.duration();
        let phase = *self.phase.borrow();
        let lasts = self.journal.flushing_for().filter(|lasts| *lasts >= stalled_flush);
        let damages = if counts_damage { self.damages.findings() } else { Vec::new() };
        judge(phase, lasts, self.stalls.flush_cause(), damages)
    }

    /// Why the broker does not run any more, if so. A disk that is slow, full or frozen is no reason to end it, and
    /// neither is a stop under way; a cell that comes to nothing any more is one.
    pub(crate) fn lifelessness(&self) -> Option<Ailment> {
        let now = self.clock.now();
        let cells = self.cells.get().into_iter().flatten();
        let lags = cells.map(|cell| cell.pulse.lag(now, cell.load.is_parked()));
        lags.max().filter(|lag| *lag >= DEAD_LAG).map(Ailment::CellStalled)
    }
}

fn judge(
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broker_whose_disk_stands_still_is_not_healthy() {
        let stalled = Some(Duration::from_millis(1_250));
        let damages = ["one is lost".to_string(), "two is lost".to_string()];
        let (none, one, both) = (&damages[..0], &damages[..1], &damages[..]);
        let told = "is lost; `/storez` lists what was found, `imori store acknowledge` ends this";
        let many =
            "one is lost, and 1 more; `/storez` lists what was found, `imori store acknowledge` ends this";
        let unconfirmed = "for 1.2 s, persistent messages are not confirmed";
        for (phase, lasts, cause, damages, name, words) in [
            (Phase::Serving, None, None, none, None, ""),
            (Phase::Serving, None, Some(Cause::Cpu), none, None, ""),
            (Phase::Serving, stalled, None, none, Some("disk_stalled"), unconfirmed),
            (Phase::Serving, stalled, None, both, Some("disk_stalled"), unconfirmed),
            (
                Phase::Serving,
                stalled,
                Some(Cause::Frozen),
                none,
                Some("disk_stalled"),
                "the file system is frozen",
            ),
            (Phase::Stopping, stalled, None, both, Some("stopping"), "the broker is stopping"),
            (Phase::Serving, None, None, one, Some("damaged"), told),
            (Phase::Serving, None, None, both, Some("damaged"), many),
        ] {
            let ailment = judge(phase, lasts, cause, damages.to_vec());
            assert_eq!(ailment.as_ref().map(Ailment::name), name, "{ailment:?}");
            let text = ailment.as_ref().map(Ailment::text).unwrap_or_default();
            assert!(text.ends_with(words), "{text}");
        }
        let stalled = Ailment::CellStalled(Duration::from_secs(61));
        assert_eq!(stalled.text(), "a cell has not come to its work for 61 s");
    }
}
