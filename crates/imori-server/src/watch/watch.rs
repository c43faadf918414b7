//! The loop of the watch: samples several times a second, and reports what is late while it lasts.

use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use imori_core::time::Time;
use tracing::{info, warn};

use super::lateness::{Late, Lateness};
use super::space::SpaceWatch;
use crate::clock::millis;
use crate::limits::{CELL_LATE, STALL_WATCH_EVERY};
use crate::shared::{Phase, Shared};
use crate::stall::happenings::Happening;
use crate::stall::{Device, LateWork, Stall, Step, judge_cell, judge_flush};

/// Runs until the broker has ended.
pub(crate) fn keep_watch(shared: &Arc<Shared>, space: SpaceWatch) {
    let device = Device::of(shared.journal.folder().path());
    let cells = shared.cells.get().map_or(0, |cells| cells.len());
    let mut watch = Watch {
        shared,
        flush: Lateness::new("journal", device),
        is_told_unready: false,
        cells: (0..cells).map(|cell| Lateness::new(&format!("cell-{cell}"), device)).collect(),
        space,
        second_ends: Instant::now() + Duration::from_secs(1),
    };
    while *shared.phase.borrow() < Phase::Ended {
        sleep(STALL_WATCH_EVERY);
        watch.look();
        shared.settings.load().tls.iter().for_each(|tls| tls.look());
    }
}

struct Watch<'a> {
    shared: &'a Shared,
    flush: Lateness,
    is_told_unready: bool,
    cells: Vec<Lateness>,
    space: SpaceWatch,
    second_ends: Instant,
}

impl Watch<'_> {
    fn look(&mut self) {
        let now = self.shared.clock.now();
        let is_flush_late = self.look_at_flush(now);
        // A cell that is ending is not late.
        if *self.shared.phase.borrow() == Phase::Serving {
            self.look_at_cells(now);
        }
        if Instant::now() >= self.second_ends {
            self.second_ends = Instant::now() + Duration::from_secs(1);
            self.shared.cells.get().into_iter().flatten().for_each(|cell| cell.pulse.end_second());
        }
        // If the disk does not respond, a query of its free space could block too.
        if !is_flush_late {
            self.space.look(self.shared);
        }
    }

    fn look_at_flush(&mut self, now: Time) -> bool {
        let lasts = self.shared.journal.flushing_for();
        let (slow_flush, stalled_flush) = {
            let journal = &self.shared.settings.load().config.journal;
            (journal.slow_flush_ms.duration(), journal.stalled_flush_ms.duration())
        };
        let late = self.flush.look(now, lasts, slow_flush);
        match late {
            Late::No => {}
            Late::Begins => {
                let stall = self.stall_of_flush(now);
                self.flush.number = Some(self.shared.stalls.begin(stall));
                report(self.shared, &stall);
                tell(&stall, "a flush takes long: confirms of persistent messages wait for the disk");
            }
            Late::GoesOn => {
                let stall = self.stall_of_flush(now);
                self.renew(self.flush.number, stall);
                if stall.lasted >= stalled_flush && !self.is_told_unready {
                    self.is_told_unready = true;
                    tell(&stall, "the flush does not end: the broker says that it is not healthy");
                }
            }
            Late::Ends(number) => {
                self.is_told_unready = false;
                if let Some(stall) = self.shared.stalls.end(number, now) {
                    let (lasted_ms, cause) = (millis(stall.lasted), stall.cause.text());
                    info!(lasted_ms, cause, "the long flush is over");
                }
            }
        }
        lasts.is_some_and(|lasts| lasts >= slow_flush)
    }

    fn stall_of_flush(&mut self, now: Time) -> Stall {
        let (journal, flush) = (&self.shared.journal, &mut self.flush);
        let cause = flush.cause(judge_flush(flush.evidence()));
        let progress = journal.waiters().progress();
        let unsynced = progress.written.0.saturating_sub(progress.synced.0);
        Stall {
            what: LateWork::Flush,
            began: flush.began(),
            lasted: now.since(flush.began()),
            is_over: false,
            cause,
            evidence: *flush.evidence(),
            // Only one batch is in flight, so records written but not synced belong to it.
            step: Some(if unsynced > 0 { Step::Sync } else { Step::Write }),
            queued_bytes: journal.queued_bytes(),
            unsynced,
        }
    }

    fn look_at_cells(&mut self, now: Time) {
        for (id, lateness) in (0..).zip(&mut self.cells) {
            let Some(cell) = self.shared.cell(id) else { continue };
            let lag = cell.pulse.lag(now, cell.load.is_parked());
            cell.pulse.note(lag);
            let late = lateness.look(now, Some(lag), CELL_LATE);
            match late {
                Late::No => {}
                Late::Begins => {
                    let stall = stall_of_cell(id, lateness, now);
                    lateness.number = Some(self.shared.stalls.begin(stall));
                    report(self.shared, &stall);
                    tell(&stall, "a cell comes late to its work: its connections wait");
                }
                Late::GoesOn => {
                    let stall = stall_of_cell(id, lateness, now);
                    lateness.number.into_iter().for_each(|number| self.shared.stalls.renew(number, stall));
                }
                Late::Ends(number) => {
                    if let Some(stall) = self.shared.stalls.end(number, now) {
                        let (lasted_ms, cause) = (millis(stall.lasted), stall.cause.text());
                        info!(cell = id, lasted_ms, cause, "the cell works again");
                    }
                }
            }
        }
    }

    fn renew(&self, number: Option<u64>, stall: Stall) {
        if let Some(number) = number {
            self.shared.stalls.renew(number, stall);
        }
    }
}

fn stall_of_cell(id: u16, lateness: &mut Lateness, now: Time) -> Stall {
    let cause = lateness.cause(judge_cell(lateness.evidence()));
    Stall {
        what: LateWork::Cell(id),
        began: lateness.began(),
        lasted: now.since(lateness.began()),
        is_over: false,
        cause,
        evidence: *lateness.evidence(),
        step: None,
        queued_bytes: 0,
        unsynced: 0,
    }
}

/// Reports a new stall to readers of the event ring.
fn report(shared: &Shared, stall: &Stall) {
    let object = match stall.what {
        LateWork::Cell(id) => format!("cell {id}"),
        LateWork::Flush => String::from("flush"),
    };
    shared.report(Happening {
        kind: "stall.found",
        object: Some(object),
        detail: Some(stall.cause.text().to_owned()),
        ..Happening::default()
    });
}

fn tell(stall: &Stall, what: &'static str) {
    let seen = &stall.evidence;
    warn!(
        cell = stall.what.cell(),
        lasts_ms = millis(stall.lasted),
        cause = stall.cause.text(),
        step = stall.step.map(Step::text),
        queued_bytes = (stall.what == LateWork::Flush).then_some(stall.queued_bytes),
        unsynced_records = (stall.what == LateWork::Flush).then_some(stall.unsynced),
        device_in_flight = seen.in_flight_max,
        device_completed = seen.completed,
        device_silent_ms = seen.completed.map(|_| millis(seen.silent)),
        device_busy_ms = seen.device_busy.map(millis),
        ran_ms = millis(seen.ran),
        without_processor_ms = millis(seen.starved),
        watched_ms = millis(seen.watched),
        threads_waiting_for_disk = seen.others_waiting,
        io_some_percent = seen.io_pressure.map(|pressure| pressure.some_percent),
        io_full_percent = seen.io_pressure.map(|pressure| pressure.full_percent),
        cpu_some_percent = seen.cpu_pressure.map(|pressure| pressure.some_percent),
        "{what}"
    );
}
