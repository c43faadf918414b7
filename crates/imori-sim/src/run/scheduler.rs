//! The scheduler: at each step the seed picks a cell, a client, a store thread or the disk;
//! otherwise time passes.

use std::rc::Rc;

use imori_core::time::Time;
use imori_store::disk::sim_disk::State;

use super::simulation::Simulation;
use crate::broker_end::EndKind;
use crate::check::{check_apart, check_image, check_rest, recover_image};
use crate::client::{read_last_bytes, receive};
use crate::journal::Step;
use crate::machine::Status;
use crate::planted::Bug;
use crate::property::Property;
use crate::streams::{check_stream_image, check_streams_at_rest};

/// The number of decisions after which a run counts as never at rest.
const STEPS_MAX: u64 = 300_000;

/// Checked crash images per step of rarity: each time this many were checked, further checks become
/// rarer.
const POINTS_PER_RARITY: usize = 8;

/// One in this many actions on a channel is an operator closing the connection.
const CLOSURE_RARITY: usize = 80;

impl Simulation {
    /// Runs until no step is possible; `None` after a violation.
    pub(crate) fn rest(&mut self, phase: &str) -> Option<()> {
        self.shared.trace.note(&[phase.len() as u64], || format!("-- {phase}"));
        while self.step() {
            let shared = &self.shared;
            if shared.is_violated() {
                return None;
            }
            if shared.step.get() > STEPS_MAX {
                shared.violate(Property::Starvation, || format!("{phase} does not come to rest"));
                return None;
            }
        }
        let shared = Rc::clone(&self.shared);
        if !shared.is_violated() {
            check_rest(&shared, &mut self.model, &self.clients);
            check_streams_at_rest(&shared, &mut self.ledger, &self.stream_clients);
        }
        if self.clients.iter().all(|client| client.is_ended() || client.connection.is_reading.get()) {
            shared.rests.borrow_mut().push(shared.step.get());
        }
        if shared.is_violated() { None } else { Some(()) }
    }

    /// Lets one participant continue; false if none can, now or later.
    pub(crate) fn step(&mut self) -> bool {
        if self.is_crash_due() {
            return self.end().is_some();
        }
        let shared = Rc::clone(&self.shared);
        let step = shared.step.get() + 1;
        shared.step.set(step);
        self.change_room();
        self.read_last_bytes();
        let mut ready: Vec<usize> = (0..self.coroutines.len()).filter(|id| self.can_go_on(*id)).collect();
        if ready.len() > 1 && self.held_up.1 > step {
            ready.retain(|id| *id != self.held_up.0);
        }
        let now = shared.clock.get();
        let mut clients: Vec<usize> =
            (0..self.clients.len()).filter(|index| self.wants_turn(*index, now)).collect();
        let streams = self.stream_clients.iter().enumerate();
        let waiting = streams.filter(|(_, client)| self.stream_client_wants_turn(client, now));
        clients.extend(waiting.map(|(index, _)| self.clients.len() + index));
        if shared.random.chance(1, 256) {
            self.held_up =
                (shared.random.below(self.coroutines.len()), step + shared.random.below(400) as u64);
        }
        let mut steps = shared.log.borrow().steps();
        let has_others = steps.len() > 1 || !ready.is_empty() || !clients.is_empty();
        if has_others && shared.random.chance(self.workload.define_delay, 64) {
            // Keeps definitions in the journal alone for long.
            steps.retain(|step| *step != Step::Define);
        }
        if ready.is_empty() {
            self.look_at_shadow();
        }
        let is_disk_alone = !steps.is_empty() && ready.is_empty() && clients.is_empty();
        if is_disk_alone {
            check_apart(&shared, &self.model, &self.clients);
        }
        let is_disk_next = is_disk_alone || !steps.is_empty() && shared.random.chance(1, 4);
        if is_disk_next {
            let step = *shared.random.pick(&steps);
            self.watched(|this| this.journal_step(step));
            return true;
        }
        if !ready.is_empty() && (clients.is_empty() || shared.random.chance(self.workload.cell_share, 16)) {
            let id = *shared.random.pick(&ready);
            if id < shared.cells.len() {
                self.resume(id);
            } else {
                self.watched(|this| this.resume(id));
            }
            return true;
        }
        if clients.is_empty() {
            if shared.log.borrow().has_failed {
                drop(shared);
                return self.crash().is_some();
            }
            return !steps.is_empty() || self.let_time_pass();
        }
        let index = *shared.random.pick(&clients);
        self.active_at = now;
        match index.checked_sub(self.clients.len()) {
            None => self.client_turn(index),
            Some(of_streams) => self.stream_client_turn(of_streams),
        }
        true
    }

    fn resume(&mut self, id: usize) {
        if let Some(coroutine) = self.coroutines.get_mut(id) {
            coroutine.resume(());
        }
    }

    /// Runs a step of the store, and checks some of the crash images that it passes through.
    pub(crate) fn watched(&mut self, go_on: impl FnOnce(&mut Simulation)) {
        let disk = self.shared.log.borrow().device.disk.clone();
        if self.workload.persistent_share > 0 {
            disk.watch();
        }
        // Clients may have learned more since the last change of the disk.
        if self.shared.random.chance(1, 2) {
            self.look_at(&disk.state());
        }
        go_on(self);
        for (call, file, at, len) in disk.take_trace() {
            let words = [call as u64, file as u64, at, len as u64];
            self.shared.trace.note(&words, || format!("disk: {call:?} of {len} at {at} in file {file}"));
        }
        for state in disk.take_snapshots() {
            self.look_at(&state);
        }
    }

    pub(crate) fn journal_step(&mut self, step: Step) {
        let shared = &self.shared;
        let before = shared.log.borrow().progress;
        shared.log.borrow_mut().step(step);
        let progress = shared.log.borrow().progress;
        let words = [step as u64, progress.written.0, progress.synced.0];
        shared.trace.note(&words, || format!("journal: {step:?}, {progress:?}"));
        let (is_written, is_synced) = (progress.written != before.written, progress.synced != before.synced);
        if is_written || is_synced {
            for cell in &shared.cells {
                let wants_all = is_synced && shared.memory.is_disk_alarmed();
                if is_written && cell.awaits_write.take() || is_synced && cell.awaits_sync.take() || wants_all
                {
                    cell.is_woken.set(!shared.has(Bug::LostJournalWake) || shared.random.chance(3, 4));
                }
            }
        }
    }

    /// Checks a crash image, more rarely the more were checked: long runs would take most of the
    /// time.
    fn look_at(&self, state: &State) {
        let shared = &self.shared;
        let rarity = 2 + usize::try_from(shared.points.get()).unwrap_or(usize::MAX) / POINTS_PER_RARITY;
        for (kind, is_looked_at) in [
            (EndKind::PowerCut, shared.random.chance(1, rarity)),
            (EndKind::Kill, shared.random.chance(1, 2 * rarity) && !state.has_lost()),
        ] {
            if is_looked_at {
                shared.points.set(shared.points.get() + 1);
                match self.workload.streams.is_empty() {
                    true => check_image(shared, &self.model, state, kind),
                    false => self.look_at_streams(state, kind),
                }
            }
        }
    }

    fn look_at_streams(&self, state: &State, kind: EndKind) {
        if let Some((disk, recovered)) = recover_image(&self.shared, state, kind) {
            check_stream_image(&self.shared, &self.ledger, (disk, &recovered), kind);
        }
    }

    fn can_go_on(&self, id: usize) -> bool {
        let shared = &self.shared;
        match shared.status(id).get() {
            Status::Idle => match id.checked_sub(shared.cells.len()) {
                None => shared.cell(id).has_work(shared),
                Some(of_store) => shared.is_store_due(of_store),
            },
            Status::Ready => true,
            Status::Waiting(lock) => self.shared.locks.holder(lock).is_none(),
            Status::Failed | Status::Over => false,
        }
    }

    fn wants_turn(&self, index: usize, now: Time) -> bool {
        let Some(client) = self.clients.get(index).filter(|client| !client.is_ended()) else {
            return false;
        };
        let pipe = self.shared.network.pipe(client.connection.pipe);
        let hears = client.connection.is_reading.get() && (!pipe.to_client.is_empty() || pipe.server_closed);
        hears || !client.is_silent() && client.actions_left > 0 && client.next_at <= now
    }

    fn client_turn(&mut self, index: usize) {
        let shared = Rc::clone(&self.shared);
        let Some(client) = self.clients.get_mut(index) else { return };
        let acts = !client.is_silent() && client.actions_left > 0 && client.next_at <= shared.clock.get();
        let (len, is_closed) = {
            let pipe = shared.network.pipe(client.connection.pipe);
            (pipe.to_client.len(), pipe.server_closed)
        };
        let hears = client.connection.is_reading.get() && len > 0;
        if hears && (!acts || shared.random.chance(1, 2)) {
            let len = if shared.random.chance(1, 2) { len } else { shared.random.between(1, len) };
            let pipe = client.connection.pipe;
            let bytes: Vec<u8> = shared.network.pipe(pipe).to_client.drain(..len).collect();
            receive(&mut self.clients, &shared, &mut self.model, pipe, &bytes);
        } else if acts && client.channel().is_some() && shared.random.chance(1, CLOSURE_RARITY) {
            self.close_by_operator(index);
        } else if acts {
            client.act(&shared, &mut self.model, &self.workload);
        } else if is_closed {
            client.close(&shared, &mut self.model);
        }
        self.follow(index);
    }

    /// Lets an operator close a client's connection, if its cell has accepted it.
    fn close_by_operator(&mut self, index: usize) {
        let Some(connection) = self.clients.get(index).map(|client| Rc::clone(&client.connection)) else {
            return;
        };
        let cell = self.shared.cell(connection.cell);
        let is_of_cell = cell.tasks.borrow().iter().any(|task| task.pipe == connection.pipe);
        if !is_of_cell || self.clients.iter().any(|other| other.is_intruder && other.is_on(&connection)) {
            return;
        }
        for client in self.clients.iter_mut().filter(|client| client.is_on(&connection)) {
            if !client.is_silent() {
                client.await_end(&self.shared, &mut self.model);
            }
        }
        cell.closures.borrow_mut().push_back(connection.pipe);
    }

    /// Replaces sessions of this client's connection that ended with actions left: on the same
    /// channel, or on a new connection if this one is gone.
    fn follow(&mut self, index: usize) {
        let Some(connection) = self.clients.get(index).map(|client| Rc::clone(&client.connection)) else {
            return;
        };
        let (mut channels, mut left) = (Vec::new(), 0);
        for client in self.clients.iter_mut().filter(|client| Rc::ptr_eq(&client.connection, &connection)) {
            if !client.is_ended() || client.actions_left == 0 {
                continue;
            }
            let actions = std::mem::take(&mut client.actions_left);
            match client.channel().filter(|_| !connection.is_gone()) {
                Some(channel) => channels.push((channel, actions)),
                None => left += actions,
            }
        }
        for (channel, actions) in channels {
            self.open_channel(&connection, channel, actions - 1);
        }
        if left > 0 {
            self.connect(left - 1);
        }
    }

    /// Reads the unwritten output of connections that the broker has ended.
    pub(crate) fn read_last_bytes(&mut self) {
        for pipe in self.shared.let_go.take() {
            let has_last_bytes = self.shared.network.pipe(pipe).has_last_bytes;
            if has_last_bytes && self.workload.streams.is_empty() {
                read_last_bytes(&mut self.clients, &self.shared, &mut self.model, pipe);
            } else if has_last_bytes {
                self.read_last_of_streams(pipe);
            }
        }
    }

    fn let_time_pass(&mut self) -> bool {
        let shared = &self.shared;
        for id in 0..self.coroutines.len() {
            if let Status::Waiting(lock) = shared.status(id).get() {
                shared.violate(Property::Deadlock, || format!("thread {id} waits for {lock:?} for ever"));
                return false;
            }
        }
        let now = shared.clock.get();
        let look = self.next_look();
        let timers = shared.cells.iter().filter_map(|cell| {
            let timer = cell.timers.borrow().peek().map(|first| Time(first.0.0.0 + 1));
            let tasks = cell.tasks.borrow();
            tasks.iter().filter_map(|task| task.deadline()).chain(timer).min()
        });
        let acting = self.clients.iter().filter(|client| !client.is_silent() && client.actions_left > 0);
        let acting = acting.map(|client| client.next_at);
        let of_streams =
            self.stream_clients.iter().filter(|client| !client.is_gone && client.actions_left > 0);
        let acting = acting.chain(of_streams.map(|client| client.next_at));
        let next = timers.chain(acting).chain(look).filter(|at| *at > now).min();
        // A consumer of a stream looks for its reader again and again.
        let since = if self.workload.streams.is_empty() { now } else { self.active_at };
        match next {
            Some(at) if at <= since.after(self.patience) => {
                shared.trace.note(&[at.0], || format!("-- it is {} us", at.0));
                shared.clock.set(at);
                if look == Some(at) {
                    self.look_in_vain();
                }
                true
            }
            _ => false,
        }
    }
}
