//! Ends the broker, cleanly or not, and restarts it from the disk.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use imori_store::disk::sim_disk::{self, Call, DiskFault, EIO, ENOSPC, SimDisk, State};

use super::simulation::{DiskFull, Simulation, coroutines};
use crate::broker_end::{Crash, EndKind, Phase};
use crate::client::read_last_bytes;
use crate::journal::{Device, OpenedStore, Step, Store};
use crate::machine::{STORE_THREADS, Status};
use crate::property::Property;
use crate::store::restore;

/// Factor by which the broker ends more often while dead letters are pending.
const PENDING_RARITY: usize = 4;

impl Simulation {
    /// Whether the broker ends now: after a disk failure, or because the seed decides so.
    pub(crate) fn is_crash_due(&mut self) -> bool {
        let shared = &self.shared;
        if shared.log.borrow().has_failed {
            return shared.random.chance(1, 20);
        }
        let may_end = self.may_crash && self.crashes_left > 0;
        let every = match self.workload.rejects && shared.has_pending_dead_letters() {
            true => self.workload.crash_every / PENDING_RARITY,
            false => self.workload.crash_every,
        };
        let is_due = may_end && shared.random.chance(1, every);
        self.crashes_left -= usize::from(is_due);
        is_due
    }

    /// Ends the broker, cleanly or not, and starts another.
    pub(crate) fn end(&mut self) -> Option<()> {
        if self.workload.stops && self.shared.random.chance(1, 2) { self.stop() } else { self.crash() }
    }

    /// Stops the broker in order, unless a crash interrupts that.
    fn stop(&mut self) -> Option<()> {
        self.model.has_stopped = true;
        let ends_before = self.model.crashes.len();
        let deadline = *self.shared.random.pick(&[0, 30, 300, 3_000]) + self.shared.step.get();
        let is_in_time = |this: &Simulation| this.shared.step.get() < deadline && this.has_connections();
        let threads = self.coroutines.len();
        let cells = threads - STORE_THREADS;
        for (phase, of) in [
            (Phase::Stopping, 0..0),
            (Phase::Ended, 0..cells),
            (Phase::Closing, cells + 1..threads),
            (Phase::Keeping, cells..cells + 1),
        ] {
            self.shared.phase.set(phase);
            self.shared.trace.note(&[phase as u64], || format!("-- the broker stops: {phase:?}"));
            let is_over =
                |this: &Simulation| of.clone().all(|thread| this.shared.status(thread).get() == Status::Over);
            while if phase == Phase::Stopping { is_in_time(self) } else { !is_over(self) } {
                let goes_on = self.step();
                if self.shared.is_violated() {
                    return None;
                }
                if self.model.crashes.len() > ends_before {
                    return Some(());
                }
                if !goes_on && phase > Phase::Stopping {
                    self.shared.violate(Property::Starvation, || format!("{phase:?} does not end"));
                    return None;
                }
                if !goes_on {
                    break;
                }
            }
        }
        match self.finish() {
            Some(is_marked) => {
                self.may_be_unmarked = !is_marked;
                self.go_on(EndKind::Clean)
            }
            None => self.crash(),
        }
    }

    fn has_connections(&self) -> bool {
        self.shared.cells.iter().any(|cell| !cell.tasks.borrow().is_empty())
    }

    /// Lets the journal's threads finish. Returns whether the mark of a clean end is certainly
    /// durable, or `None` if the end must not be marked.
    fn finish(&mut self) -> Option<bool> {
        loop {
            let mut steps = self.shared.log.borrow().steps();
            steps.retain(|step| *step != Step::Define);
            if steps.is_empty() {
                break;
            }
            let step = *self.shared.random.pick(&steps);
            self.watched(|this| this.journal_step(step));
        }
        let is_all = {
            let log = self.shared.log.borrow();
            !log.has_failed && log.progress.synced >= log.last() && !log.is_checkpoint_refused()
        };
        if !is_all || self.shared.is_violated() {
            return None;
        }
        let mut is_marked = false;
        self.watched(|this| is_marked = this.shared.log.borrow_mut().end_clean());
        Some(is_marked)
    }

    /// Crashes the broker and starts another.
    pub(crate) fn crash(&mut self) -> Option<()> {
        let has_lost = self.shared.log.borrow().device.disk.state().has_lost();
        let kind = match has_lost || self.shared.random.chance(1, 2) {
            true => EndKind::PowerCut,
            false => EndKind::Kill,
        };
        self.go_on(kind)
    }

    /// Starts another broker from what the last one left on the disk.
    fn go_on(&mut self, kind: EndKind) -> Option<()> {
        let has_streams = !self.workload.streams.is_empty();
        self.coroutines.clear();
        self.shared.note_end_with_pending();
        self.read_last_bytes();
        let shared = Rc::get_mut(&mut self.shared).expect("the cells are gone, and nobody else keeps it");
        let state = shared.log.get_mut().device.disk.state();
        let at = shared.step.get() + 1;
        shared.step.set(at);
        shared.trace.note(&[kind as u64], || format!("-- the broker ends: {kind:?}"));
        for cell in &shared.cells {
            cell.links.each(|_, link| shared.keep_unsent(link));
        }
        for pipe in 0..shared.network.len() {
            let is_there = !shared.network.pipe(pipe).is_over;
            if is_there && !has_streams {
                read_last_bytes(&mut self.clients, shared, &mut self.model, pipe);
            } else if is_there {
                let of_pipe = self.stream_clients.iter_mut().filter(|client| client.pipe == pipe);
                of_pipe.for_each(|client| client.receive_last(shared, &mut self.ledger));
            }
            let mut pipe = shared.network.pipe(pipe);
            (pipe.is_ending, pipe.is_over, pipe.is_reset) = (true, true, true);
        }
        if self.workload.delays.is_some() || self.workload.repeats.is_some() || has_streams {
            let away = Duration::from_millis(*shared.random.pick(&[0, 0, 5, 50, 3_000]));
            shared.clock.set(shared.clock.get().after(away));
        }
        let back = shared.clock.get();
        let (store, found, kind) = self.reopen(&state, kind)?;
        self.model.crash(Crash { at, kind, back, was_clean: found.was_clean });
        self.ledger.broker_ended(at);
        let shared = Rc::get_mut(&mut self.shared).expect("nobody else keeps it");
        let mut next = shared.next_life(&self.workload, store);
        let restored = restore(&mut next, found);
        self.shared = Rc::new(next);
        let shared = &self.shared;
        match restored {
            Ok(awakenings) => shared.cell(0).awakenings.borrow_mut().extend(awakenings),
            Err(error) => {
                shared.violate(Property::Recovery, || format!("a record cannot be read: {error}"));
                return None;
            }
        }
        self.coroutines = coroutines(&self.shared);
        self.disk_full = DiskFull::default();
        if self.workload.room_every.is_some() {
            self.look_at_space();
        }
        self.plan_trouble();
        let mut actions = BTreeMap::<usize, usize>::new();
        for client in &mut self.clients {
            *actions.entry(client.connection.pipe).or_default() += std::mem::take(&mut client.actions_left);
        }
        actions.into_values().filter(|actions| *actions > 0).for_each(|actions| self.connect(actions));
        self.reconnect_stream_clients();
        if self.shared.is_violated() { None } else { Some(()) }
    }

    /// Opens the store that an end left. A power cut may interrupt the opening, which is then
    /// repeated; the returned kind is the worse of both ends.
    fn reopen(&mut self, state: &State, kind: EndKind) -> Option<(Store, OpenedStore, EndKind)> {
        let shared = &self.shared;
        let left = |state: &State, kind: EndKind| match kind {
            EndKind::Kill => state.clone(),
            EndKind::PowerCut => state.crash(&mut sim_disk::Random(shared.random.next())),
            // The machine may lose power right after the clean end.
            EndKind::Clean if shared.random.chance(1, 2) => state.clone(),
            EndKind::Clean => state.crash(&mut sim_disk::Random(shared.random.next())),
        };
        // A power cut restarts the machine, which counts its boots.
        let start_again =
            |kind| shared.boot.set(shared.boot.get().wrapping_add(u8::from(kind == EndKind::PowerCut)));
        start_again(kind);
        let room_bytes = shared.log.borrow().device.room_bytes();
        let open = |state: State, room_bytes: u64, is_watched: bool| {
            let disk = SimDisk::new(state);
            if is_watched {
                disk.watch();
            }
            let definitions = shared.log.borrow().definitions.left();
            let device = Device::new(disk, shared.bug);
            device.set_room_bytes(room_bytes);
            Store::open(device, shared.boot.get(), self.workload.file_blocks, definitions, shared.bug)
        };
        let (mut state, mut is_interrupted) = (left(state, kind), false);
        if shared.random.chance(1, 4)
            && let Ok((store, _)) = open(state.clone(), u64::MAX, true)
        {
            let snapshots = store.log.device.disk.take_snapshots();
            if !snapshots.is_empty() {
                shared.trace.note(&[snapshots.len() as u64], || String::from("-- it ends while it opens"));
                state = left(shared.random.pick(&snapshots), EndKind::PowerCut);
                start_again(EndKind::PowerCut);
                is_interrupted = true;
            }
        }
        // A full disk may prevent the start until other users free space.
        let mut opened = open(state.clone(), room_bytes, false);
        if opened.is_err() && room_bytes < u64::MAX {
            opened = open(state, u64::MAX, false);
        }
        match opened {
            Ok((store, found)) => {
                let is_clean = kind == EndKind::Clean;
                let is_doubtful = is_interrupted || self.may_be_unmarked;
                if found.was_clean && !is_clean || !found.was_clean && is_clean && !is_doubtful {
                    let was_clean = found.was_clean;
                    shared.violate(Property::Recovery, || format!("{kind:?}, taken for clean: {was_clean}"));
                }
                let (count, next) = (found.recovered.records.len() as u64, found.recovered.next.0);
                shared.trace.note(&[count, next], || format!("-- {count} records are there, {next} is next"));
                let is_worse = is_interrupted && kind == EndKind::Kill;
                Some((store, found, if is_worse { EndKind::PowerCut } else { kind }))
            }
            Err(error) => {
                shared.violate(Property::Recovery, || error);
                None
            }
        }
    }

    /// Injects a disk fault into some runs.
    pub(crate) fn plan_trouble(&self) {
        let random = &self.shared.random;
        if !self.workload.has_disk_trouble || random.chance(1, 2) {
            return;
        }
        let (call, trouble) = *random.pick(&[
            (Call::Write, DiskFault::Error(EIO)),
            (Call::Write, DiskFault::Error(ENOSPC)),
            (Call::Write, DiskFault::Short),
            (Call::Write, DiskFault::Short),
            (Call::Write, DiskFault::Short),
            (Call::Sync, DiskFault::Error(EIO)),
            (Call::Sync, DiskFault::Error(EIO)),
            (Call::SyncFolder, DiskFault::Error(EIO)),
        ]);
        self.shared.log.borrow().device.disk.inject(call, random.below(12), trouble);
    }
}
