//! One run: cells, clients and time, the seed deciding who goes on.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use corosensei::Coroutine;
use corosensei::stack::DefaultStack;
use imori_core::time::Time;
use imori_stomp::version::Version;
use imori_store::sim_disk::{self, Call, EIO, ENOSPC, SimDisk, State, Trouble};

use crate::checker::{check_end, check_rest, expected_charge};
use crate::client::Client;
use crate::crash::{check_image, restore};
use crate::ending::{Crash, Kind, Phase};
use crate::journal::{Definitions, Device, Found, Step, Store};
use crate::model::{Mode, Model, Reads, SessionRecord};
use crate::planted::Bug;
use crate::property::{Property, Violation};
use crate::random::Random;
use crate::shared::Shared;
use crate::store_thread::StoreThread;
use crate::trace::Trace;
use crate::waits::{STORE_THREADS, Status};
use crate::workload::Workload;
use crate::world::CellWorld;

/// Decisions after which a run is taken not to come to rest.
const STEPS_MAX: u64 = 300_000;

/// Ends of the broker after which they are looked at less often, and after as many more again.
const POINTS_PER_RARITY: usize = 8;

/// Bytes of a cell's stack: the broker's verbs nest a few closures deep.
const STACK_BYTES: usize = 256 * 1024;

/// How far a run looks for something to happen before it counts as at rest: longer than any wait
/// of a connection that ends, shorter than what the broker does for ever.
const REST: Duration = Duration::from_secs(6);

/// How far where messages may be delayed for longer than that.
const LONG_REST: Duration = Duration::from_secs(70);

/// What the disk has no room for.
#[derive(Debug, Default)]
pub(crate) struct Shortage {
    /// Publishers waited for room at the last look.
    pub(crate) was_high: bool,
    /// Looks for which time had to pass, since publishers wait.
    pub(crate) looks: usize,
    /// When others gave all the room back, while publishers wait.
    pub(crate) ended_at: Option<Time>,
}

/// What a run came to.
#[derive(Debug)]
pub struct Outcome {
    /// A number that equal runs share.
    pub hash: u64,
    /// Decisions that were made.
    pub steps: u64,
    /// Ends of the broker that were looked at.
    pub points: u64,
    /// What was broken, if anything was.
    pub violation: Option<Violation>,
}

/// A run.
pub(crate) struct Simulation {
    pub(crate) shared: Rc<Shared>,
    fibers: Vec<Coroutine<(), (), ()>>,
    pub(crate) clients: Vec<Client>,
    pub(crate) model: Model,
    pub(crate) workload: Workload,
    /// A cell that is held up, and until when: so others get far ahead of it.
    held_up: (usize, u64),
    /// How far it looks for something to happen before it counts as at rest.
    patience: Duration,
    /// Its last end was marked as clean, and the disk failed under that.
    may_be_unmarked: bool,
    /// The broker may end by itself.
    pub(crate) may_crash: bool,
    crashes_left: usize,
    pub(crate) shortage: Shortage,
}

impl Simulation {
    pub(crate) fn new(seed: u64, bug: Option<Bug>, is_traced: bool) -> Simulation {
        let random = Random::new(seed);
        let workload = Workload::new(&random);
        let settings = Store::journal_settings(workload.file_blocks);
        let device = Device::new(SimDisk::default(), bug);
        let opened = Store::open(device, 0, workload.file_blocks, Definitions::default(), bug);
        let (store, _) = opened.expect("an empty disk that is well becomes a store");
        let shared = Rc::new(Shared::new(&workload, random, Trace::new(is_traced), bug, settings, store));
        let fibers = fibers(&shared);
        let mut model = Model::default();
        model.queues.clone_from(&workload.queues);
        let crashes_left = workload.crashes;
        let (clients, held_up) = (Vec::new(), (0, 0));
        let patience = if workload.long_waits() { LONG_REST } else { REST };
        let (may_be_unmarked, may_crash) = (false, false);
        Simulation {
            shared,
            fibers,
            clients,
            model,
            workload,
            held_up,
            patience,
            may_be_unmarked,
            may_crash,
            crashes_left,
            shortage: Shortage::default(),
        }
    }

    /// Runs to the end, or to the first violation.
    pub(crate) fn run(&mut self) -> Outcome {
        self.run_phases();
        let shared = &self.shared;
        let violation = shared.violation.take();
        let (steps, points) = (shared.step.get(), shared.points.get());
        Outcome { hash: shared.trace.hash(), steps, points, violation }
    }

    fn run_phases(&mut self) -> Option<()> {
        self.prepare()?;
        for _ in 0..self.workload.clients {
            let deeds = self.workload.deeds_each;
            self.connect(deeds);
        }
        self.may_crash = true;
        self.plan_trouble();
        self.rest("deeds")?;
        self.may_crash = self.workload.crashes > 0;
        if self.workload.crashes > 0 && self.shared.random.chance(1, 2) {
            self.end()?;
            self.rest("going on")?;
        }
        self.settle()?;
        self.may_crash = false;
        self.shared.log.borrow().device.disk.heal();
        let has_failed = self.shared.log.borrow().has_failed;
        if has_failed || self.workload.crashes > 0 && self.shared.random.chance(1, 3) {
            if has_failed {
                self.crash()?;
            } else {
                self.end()?;
            }
            self.shared.log.borrow().device.disk.heal();
            self.rest("going on again")?;
        }
        if self.workload.delays.is_some() || self.workload.long_waits() {
            self.patience = LONG_REST;
            self.rest("waiting for what is delayed")?;
            self.patience = REST;
        }
        if self.workload.mark_bytes.is_some() {
            // Only who drains queues ends an alarm.
            self.drain()?;
            self.end_alarm()?;
        }
        self.leave()?;
        let charged = self.shared.memory.gauge().bytes();
        self.shared.trace.note(&[charged as u64], || self.inventory());
        self.take_room();
        self.drain()?;
        let waiting = self.drained();
        let expected = expected_charge(&self.model, &waiting);
        self.leave()?;
        check_end(&self.shared, &self.model);
        // One that died was copied by its record: it may share nothing any more with where it is alive.
        let is_unknown = !self.model.crashes.is_empty() && waiting.values().any(|queues| *queues > 1);
        // What is on disk alone is not charged: what is too long for memory, and what a start found in pages.
        let may_be_on_disk = self.workload.paging.is_short() || !self.model.crashes.is_empty();
        // A restored queue with too much in it drops that when more comes or is read.
        let may_drop =
            !self.model.crashes.is_empty() && self.model.queues.iter().any(|queue| queue.is_bounded);
        let is_charged = charged == expected || may_be_on_disk && charged < expected;
        if !is_charged && !self.workload.has_expirations && !is_unknown && !may_drop {
            let text =
                || format!("{charged} bytes were charged for {} messages, not {expected}", waiting.len());
            self.shared.violate(Property::Memory, text);
        }
        None
    }

    /// Makes the queues that have to be there before anybody uses them.
    fn prepare(&mut self) -> Option<()> {
        self.connect(0);
        let shared = Rc::clone(&self.shared);
        for queue in 0..self.model.queues.len() {
            let is_bound = self.model.queue(queue).pattern.is_some();
            let client = self.clients.last_mut()?;
            if is_bound {
                client.subscribe_bound(&shared, &mut self.model, queue);
            } else if self.model.queue(queue).is_dead_letter_queue {
                client.subscribe_queue(&shared, &mut self.model, queue, 1);
            } else {
                continue;
            }
            self.rest("preparing")?;
            self.clients.last_mut()?.unsubscribe(&shared, &mut self.model);
            self.rest("preparing")?;
        }
        self.clients.last_mut()?.leave(&shared);
        self.rest("preparing")
    }

    /// Everybody reads again; some settle what they have.
    fn settle(&mut self) -> Option<()> {
        let shared = Rc::clone(&self.shared);
        let settles_all = self.workload.mark_bytes.is_some();
        for client in self.clients.iter_mut().filter(|client| !client.is_ended) {
            client.is_reading = true;
            client.deeds_left = 0;
            if !client.is_silent() && (settles_all || shared.random.chance(1, 2)) {
                client.commit(&shared, &mut self.model);
                client.settle_all(&shared, &mut self.model);
                client.accepts_all = true;
            }
        }
        drop(shared);
        self.rest("settling")
    }

    /// Clients that have parked all they may are not heard, nor are their settles: those who hold what
    /// keeps the alarm on have to go. Without them it ends.
    fn end_alarm(&mut self) -> Option<()> {
        let shared = Rc::clone(&self.shared);
        if !shared.memory.is_alarmed() {
            return Some(());
        }
        let drainer = self.clients.len() - 1;
        for client in self.clients.iter_mut().take(drainer) {
            client.reset(&shared, &mut self.model);
        }
        self.rest("ending the alarm")?;
        // Queues of those who went may have come up again.
        self.drain()?;
        if shared.memory.is_alarmed() {
            shared.violate(Property::Memory, || format!("the alarm does not end: {}", self.inventory()));
            return None;
        }
        Some(())
    }

    /// Everybody goes.
    fn leave(&mut self) -> Option<()> {
        let shared = Rc::clone(&self.shared);
        for client in self.clients.iter_mut().filter(|client| !client.is_ended) {
            client.deeds_left = 0;
            let leaves = client.accepts_all || shared.random.chance(2, 3);
            match client.is_leaving {
                false if leaves => client.leave(&shared),
                false => client.die(&shared, &mut self.model),
                true => {}
            }
        }
        drop(shared);
        self.rest("leaving")
    }

    /// One client reads every queue there is to its end.
    fn drain(&mut self) -> Option<()> {
        let shared = Rc::clone(&self.shared);
        self.connect(0);
        self.clients.last_mut()?.accepts_all = true;
        for queue in 0..self.model.queues.len() {
            let spec = self.model.queue(queue).clone();
            let mut is_there = false;
            shared.queues.each(|_, queue| is_there |= queue.name().as_bytes() == spec.name.as_bytes());
            if !is_there || spec.name.starts_with("own") && !self.is_free(&spec.name) {
                continue;
            }
            let client = self.clients.last_mut()?;
            let prefix = "/amq/queue/";
            let destination = [prefix, &spec.name].concat();
            client.subscribe(
                &shared,
                &mut self.model,
                Reads::Queue(queue),
                &destination,
                &[],
                Mode::Individual,
                1000,
            );
        }
        drop(shared);
        self.rest("draining")
    }

    /// What waits where, for people.
    fn inventory(&self) -> String {
        let mut text = format!("{} bytes are charged", self.shared.memory.gauge().bytes());
        self.shared.queues.each(|_, queue| {
            text.push_str(&format!(
                ", {} + {} in `{}`",
                queue.ready_len(),
                queue.unsettled_len(),
                queue.name()
            ));
        });
        text
    }

    /// What the one who drained got: the messages that waited, and in how many queues each did.
    fn drained(&self) -> BTreeMap<usize, usize> {
        let drainer = self.clients.last().map(|client| client.session);
        let mut waiting = BTreeMap::new();
        for ((message, _), fate) in &self.model.fates {
            if Some(fate.session) == drainer {
                *waiting.entry(*message).or_insert(0) += 1;
            }
        }
        waiting
    }

    fn is_free(&self, name: &str) -> bool {
        let mut is_free = true;
        self.shared.queues.each(|_, queue| {
            is_free &= queue.name().as_bytes() != name.as_bytes() || queue.settings().exclusive_to.is_none();
        });
        is_free
    }

    fn connect(&mut self, deeds: usize) {
        let shared = &self.shared;
        let session = shared.network.open(self.workload.window);
        self.model.sessions.push(SessionRecord::default());
        let cell = shared.random.below(shared.cells.len());
        let version = *shared.random.pick(&[Version::V12, Version::V12, Version::V11]);
        let mut client = Client::new(session, cell, version, deeds);
        client.connect(shared);
        shared.cell(cell).arrivals.borrow_mut().push_back(session);
        self.clients.push(client);
    }

    /// Lets everything happen until nothing does; `None` where that showed a violation.
    fn rest(&mut self, phase: &str) -> Option<()> {
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
        }
        if self.clients.iter().all(|client| client.is_ended || client.is_reading) {
            shared.rests.borrow_mut().push(shared.step.get());
        }
        if shared.is_violated() { None } else { Some(()) }
    }

    /// Lets one of those go on who can; false where nobody can and no time will change that.
    fn step(&mut self) -> bool {
        if self.is_crash_due() {
            return self.end().is_some();
        }
        let shared = Rc::clone(&self.shared);
        let step = shared.step.get() + 1;
        shared.step.set(step);
        self.change_room();
        self.look_at_remains();
        let mut ready: Vec<usize> = (0..self.fibers.len()).filter(|id| self.can_go_on(*id)).collect();
        if ready.len() > 1 && self.held_up.1 > step {
            ready.retain(|id| *id != self.held_up.0);
        }
        let now = shared.clock.get();
        let clients: Vec<usize> =
            (0..self.clients.len()).filter(|index| self.wants_turn(*index, now)).collect();
        if shared.random.chance(1, 256) {
            self.held_up = (shared.random.below(self.fibers.len()), step + shared.random.below(400) as u64);
        }
        let mut steps = shared.log.borrow().steps();
        let has_others = steps.len() > 1 || !ready.is_empty() || !clients.is_empty();
        if has_others && shared.random.chance(self.workload.define_delay, 64) {
            // Definitions stay for long in the journal alone.
            steps.retain(|step| *step != Step::Define);
        }
        let is_disk_next =
            !steps.is_empty() && (ready.is_empty() && clients.is_empty() || shared.random.chance(1, 4));
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
        self.client_turn(index);
        true
    }

    fn resume(&mut self, id: usize) {
        if let Some(fiber) = self.fibers.get_mut(id) {
            fiber.resume(());
        }
    }

    /// One of the store's threads goes on; then each end of the broker meanwhile may be looked at.
    fn watched(&mut self, go_on: impl FnOnce(&mut Simulation)) {
        let disk = self.shared.log.borrow().device.disk.clone();
        if self.workload.persistent_share > 0 {
            disk.watch();
        }
        // Clients may know more than when the disk was changed last.
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

    fn journal_step(&mut self, step: Step) {
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

    /// The more ends of a run were looked at, the rarer it is done: long runs would take most of the time.
    fn look_at(&self, state: &State) {
        let shared = &self.shared;
        let rarity = 2 + usize::try_from(shared.points.get()).unwrap_or(usize::MAX) / POINTS_PER_RARITY;
        for (kind, is_looked_at) in [
            (Kind::PowerCut, shared.random.chance(1, rarity)),
            (Kind::Kill, shared.random.chance(1, 2 * rarity) && !state.has_lost()),
        ] {
            if is_looked_at {
                shared.points.set(shared.points.get() + 1);
                check_image(shared, &self.model, state, kind);
            }
        }
    }

    /// The disk has failed, or the seed has it so.
    fn is_crash_due(&mut self) -> bool {
        let shared = &self.shared;
        if shared.log.borrow().has_failed {
            return shared.random.chance(1, 20);
        }
        let is_due =
            self.may_crash && self.crashes_left > 0 && shared.random.chance(1, self.workload.crash_every);
        self.crashes_left -= usize::from(is_due);
        is_due
    }

    /// The broker ends, by a word or without, and another goes on.
    fn end(&mut self) -> Option<()> {
        if self.workload.stops && self.shared.random.chance(1, 2) { self.stop() } else { self.crash() }
    }

    /// The broker is told to stop, and ends by itself, unless something else ends it meanwhile.
    fn stop(&mut self) -> Option<()> {
        self.model.has_stopped = true;
        let ends_before = self.model.crashes.len();
        let deadline = *self.shared.random.pick(&[0, 30, 300, 3_000]) + self.shared.step.get();
        let is_in_time = |this: &Simulation| this.shared.step.get() < deadline && this.has_connections();
        let threads = self.fibers.len();
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
                self.go_on(Kind::Clean)
            }
            None => self.crash(),
        }
    }

    fn has_connections(&self) -> bool {
        self.shared.cells.iter().any(|cell| !cell.tasks.borrow().is_empty())
    }

    /// The threads of the journal end; tells whether the end is marked as clean, for certain or perhaps, if it may be.
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

    /// The broker ends without a word.
    fn crash(&mut self) -> Option<()> {
        let has_lost = self.shared.log.borrow().device.disk.state().has_lost();
        let kind = match has_lost || self.shared.random.chance(1, 2) {
            true => Kind::PowerCut,
            false => Kind::Kill,
        };
        self.go_on(kind)
    }

    /// Another broker goes on from what is on the disk.
    fn go_on(&mut self, kind: Kind) -> Option<()> {
        self.fibers.clear();
        self.look_at_remains();
        let shared = Rc::get_mut(&mut self.shared).expect("the cells are gone, and nobody else keeps it");
        let state = shared.log.get_mut().device.disk.state();
        let at = shared.step.get() + 1;
        shared.step.set(at);
        shared.trace.note(&[kind as u64], || format!("-- the broker ends: {kind:?}"));
        for cell in &shared.cells {
            cell.links.each(|_, link| shared.keep_unsent(link));
        }
        for client in &mut self.clients {
            let is_there = !shared.network.pipe(client.session).is_over;
            if is_there {
                client.look_at_remains(shared, &mut self.model);
            }
            let mut pipe = shared.network.pipe(client.session);
            (pipe.is_ending, pipe.is_over, pipe.is_reset) = (true, true, true);
        }
        if self.workload.delays.is_some() || self.workload.repeats.is_some() {
            let away = Duration::from_millis(*shared.random.pick(&[0, 0, 5, 50, 3_000]));
            shared.clock.set(shared.clock.get().after(away));
        }
        let back = shared.clock.get();
        let (store, found, kind) = self.reopen(&state, kind)?;
        self.model.crash(Crash { at, kind, back, was_clean: found.was_clean });
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
        self.fibers = fibers(&self.shared);
        self.shortage = Shortage::default();
        self.plan_trouble();
        let deeds: Vec<usize> =
            self.clients.iter_mut().map(|client| std::mem::take(&mut client.deeds_left)).collect();
        deeds.into_iter().filter(|deeds| *deeds > 0).for_each(|deeds| self.connect(deeds));
        if self.shared.is_violated() { None } else { Some(()) }
    }

    /// Opens what an end has left; that can end too, by a power cut, and is done again. Gives the worse of both ends.
    fn reopen(&mut self, state: &State, kind: Kind) -> Option<(Store, Found, Kind)> {
        let shared = &self.shared;
        let left = |state: &State, kind: Kind| match kind {
            Kind::Kill => state.clone(),
            Kind::PowerCut => state.crash(&mut sim_disk::Random(shared.random.next())),
            // The machine may go down right after it.
            Kind::Clean if shared.random.chance(1, 2) => state.clone(),
            Kind::Clean => state.crash(&mut sim_disk::Random(shared.random.next())),
        };
        // The system numbers its starts.
        let start_again = |kind| shared.boot.set(u8::from(kind == Kind::PowerCut) + shared.boot.get());
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
                state = left(shared.random.pick(&snapshots), Kind::PowerCut);
                start_again(Kind::PowerCut);
                is_interrupted = true;
            }
        }
        // On a disk that is full it may not come up, until others make room.
        let mut opened = open(state.clone(), room_bytes, false);
        if opened.is_err() && room_bytes < u64::MAX {
            opened = open(state, u64::MAX, false);
        }
        match opened {
            Ok((store, found)) => {
                let is_clean = kind == Kind::Clean;
                let is_doubtful = is_interrupted || self.may_be_unmarked;
                if found.was_clean && !is_clean || !found.was_clean && is_clean && !is_doubtful {
                    let was_clean = found.was_clean;
                    shared.violate(Property::Recovery, || format!("{kind:?}, taken for clean: {was_clean}"));
                }
                let (count, next) = (found.recovered.records.len() as u64, found.recovered.next.0);
                shared.trace.note(&[count, next], || format!("-- {count} records are there, {next} is next"));
                let is_worse = is_interrupted && kind == Kind::Kill;
                Some((store, found, if is_worse { Kind::PowerCut } else { kind }))
            }
            Err(error) => {
                shared.violate(Property::Recovery, || error);
                None
            }
        }
    }

    /// Sometimes the disk fails, or has no room for a while.
    fn plan_trouble(&self) {
        let random = &self.shared.random;
        if !self.workload.has_disk_trouble || random.chance(1, 2) {
            return;
        }
        let (call, trouble) = *random.pick(&[
            (Call::Write, Trouble::Error(EIO)),
            (Call::Write, Trouble::Error(ENOSPC)),
            (Call::Write, Trouble::Short),
            (Call::Write, Trouble::Short),
            (Call::Write, Trouble::Short),
            (Call::Sync, Trouble::Error(EIO)),
            (Call::Sync, Trouble::Error(EIO)),
            (Call::SyncFolder, Trouble::Error(EIO)),
        ]);
        self.shared.log.borrow().device.disk.trouble(call, random.below(12), trouble);
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
        let Some(client) = self.clients.get(index).filter(|client| !client.is_ended) else {
            return false;
        };
        let pipe = self.shared.network.pipe(client.session);
        let hears = client.is_reading && (!pipe.to_client.is_empty() || pipe.server_closed);
        hears || !client.is_silent() && client.deeds_left > 0 && client.next_at <= now
    }

    fn client_turn(&mut self, index: usize) {
        let shared = Rc::clone(&self.shared);
        let Some(client) = self.clients.get_mut(index) else { return };
        let acts = !client.is_silent() && client.deeds_left > 0 && client.next_at <= shared.clock.get();
        let (len, is_closed) = {
            let pipe = shared.network.pipe(client.session);
            (pipe.to_client.len(), pipe.server_closed)
        };
        let hears = client.is_reading && len > 0;
        if hears && (!acts || shared.random.chance(1, 2)) {
            let len = if shared.random.chance(1, 2) { len } else { shared.random.between(1, len) };
            let bytes: Vec<u8> = shared.network.pipe(client.session).to_client.drain(..len).collect();
            client.hear(&shared, &mut self.model, &bytes);
        } else if acts {
            client.act(&shared, &mut self.model, &self.workload);
        } else if is_closed {
            client.close(&shared, &mut self.model);
        }
        if client.is_ended && client.deeds_left > 0 {
            let deeds = std::mem::take(&mut client.deeds_left);
            self.connect(deeds - 1);
        }
    }

    /// Looks at what the broker had for connections that it has let go.
    fn look_at_remains(&mut self) {
        for client in &mut self.clients {
            if self.shared.network.pipe(client.session).has_remains {
                client.look_at_remains(&self.shared, &mut self.model);
            }
        }
    }

    fn let_time_pass(&mut self) -> bool {
        let shared = &self.shared;
        for id in 0..self.fibers.len() {
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
        let acting = self.clients.iter().filter(|client| !client.is_silent() && client.deeds_left > 0);
        let next = timers.chain(acting.map(|client| client.next_at)).chain(look).filter(|at| *at > now).min();
        match next {
            Some(at) if at <= now.after(self.patience) => {
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

/// The cells, then the threads of the store.
fn fibers(shared: &Rc<Shared>) -> Vec<Coroutine<(), (), ()>> {
    let cells = shared.cells.len();
    let fiber = |id: usize| {
        let shared = Rc::clone(shared);
        let stack = DefaultStack::new(STACK_BYTES).expect("the system has memory for a stack");
        Coroutine::with_stack(stack, move |yielder, ()| match id.checked_sub(cells) {
            None => CellWorld::new(id, &shared, yielder).run(),
            Some(of_store) => StoreThread::new(of_store, &shared, yielder).run(),
        })
    };
    (0..cells + STORE_THREADS).map(fiber).collect()
}
