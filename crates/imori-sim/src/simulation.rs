//! One run: cells, clients and time, the seed deciding who goes on.

use std::collections::BTreeMap;
use std::rc::Rc;

use corosensei::Coroutine;
use corosensei::stack::DefaultStack;
use imori_core::time::Time;
use imori_stomp::version::Version;

use crate::checker::{check_end, check_rest, expected_charge};
use crate::client::Client;
use crate::model::{Mode, Model, Reads, SessionRecord};
use crate::planted::Bug;
use crate::property::{Property, Violation};
use crate::random::Random;
use crate::shared::{Shared, Status};
use crate::trace::Trace;
use crate::workload::Workload;
use crate::world::CellWorld;

/// Decisions after which a run is taken not to come to rest.
const STEPS_MAX: u64 = 300_000;

/// Bytes of a cell's stack: the broker's verbs nest a few closures deep.
const STACK_BYTES: usize = 256 * 1024;

/// How far a run looks for something to happen before it counts as at rest: longer than any wait
/// of a connection that ends, shorter than what the broker does for ever.
const REST_MICROS: u64 = 6_000_000;

/// What a run came to.
#[derive(Debug)]
pub struct Outcome {
    /// A number that equal runs share.
    pub hash: u64,
    /// Decisions that were made.
    pub steps: u64,
    /// What was broken, if anything was.
    pub violation: Option<Violation>,
}

/// A run.
pub(crate) struct Simulation {
    shared: Rc<Shared>,
    fibers: Vec<Coroutine<(), (), ()>>,
    clients: Vec<Client>,
    model: Model,
    workload: Workload,
    /// A cell that is held up, and until when: so others get far ahead of it.
    held_up: (usize, u64),
}

impl Simulation {
    pub(crate) fn new(seed: u64, bug: Option<Bug>, is_traced: bool) -> Simulation {
        let random = Random::new(seed);
        let workload = Workload::new(&random);
        let shared = Rc::new(Shared::new(&workload, random, Trace::new(is_traced), bug));
        let fibers = (0..workload.cells).map(|id| fiber(id, Rc::clone(&shared))).collect();
        let mut model = Model::default();
        model.queues.clone_from(&workload.queues);
        Simulation { shared, fibers, clients: Vec::new(), model, workload, held_up: (0, 0) }
    }

    /// Runs to the end, or to the first violation.
    pub(crate) fn run(&mut self) -> Outcome {
        self.run_phases();
        let shared = &self.shared;
        let violation = shared.violation.take();
        Outcome { hash: shared.trace.hash(), steps: shared.step.get(), violation }
    }

    fn run_phases(&mut self) -> Option<()> {
        self.prepare()?;
        for _ in 0..self.workload.clients {
            let deeds = self.workload.deeds_each;
            self.connect(deeds);
        }
        self.rest("deeds")?;
        self.settle()?;
        if self.workload.mark_bytes.is_some() {
            // Only who drains queues ends an alarm.
            self.drain()?;
            self.end_alarm()?;
        }
        self.leave()?;
        let charged = self.shared.memory.gauge().bytes();
        self.shared.trace.note(&[charged as u64], || self.inventory());
        self.drain()?;
        let waiting = self.drained();
        let expected = expected_charge(&self.model, &waiting);
        self.leave()?;
        check_end(&self.shared, &self.model);
        if charged != expected && !self.workload.has_expirations {
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
        let shared = Rc::clone(&self.shared);
        shared.trace.note(&[phase.len() as u64], || format!("-- {phase}"));
        while self.step() {
            if shared.is_violated() {
                return None;
            }
            if shared.step.get() > STEPS_MAX {
                shared.violate(Property::Starvation, || format!("{phase} does not come to rest"));
                return None;
            }
        }
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
        let shared = Rc::clone(&self.shared);
        let step = shared.step.get() + 1;
        shared.step.set(step);
        self.look_at_remains();
        let mut ready: Vec<usize> = (0..shared.cells.len()).filter(|id| self.can_go_on(*id)).collect();
        if ready.len() > 1 && self.held_up.1 > step {
            ready.retain(|id| *id != self.held_up.0);
        }
        let now = shared.clock.get();
        let clients: Vec<usize> =
            (0..self.clients.len()).filter(|index| self.wants_turn(*index, now)).collect();
        if shared.random.chance(1, 256) {
            self.held_up = (shared.random.below(shared.cells.len()), step + shared.random.below(400) as u64);
        }
        if !ready.is_empty() && (clients.is_empty() || shared.random.chance(self.workload.cell_share, 16)) {
            let id = *shared.random.pick(&ready);
            if let Some(fiber) = self.fibers.get_mut(id) {
                fiber.resume(());
            }
            return true;
        }
        if clients.is_empty() {
            return self.let_time_pass();
        }
        let index = *shared.random.pick(&clients);
        self.client_turn(index);
        true
    }

    fn can_go_on(&self, id: usize) -> bool {
        let state = self.shared.cell(id);
        match state.status.get() {
            Status::Idle => state.has_work(&self.shared),
            Status::Ready => true,
            Status::Waiting(lock) => self.shared.locks.holder(lock).is_none(),
            Status::Failed => false,
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
        for id in 0..shared.cells.len() {
            if let Status::Waiting(lock) = shared.cell(id).status.get() {
                shared.violate(Property::Deadlock, || format!("cell {id} waits for {lock:?} for ever"));
                return false;
            }
        }
        let now = shared.clock.get();
        let timers = shared.cells.iter().filter_map(|cell| {
            let timer = cell.timers.borrow().peek().map(|first| Time(first.0.0.0 + 1));
            let tasks = cell.tasks.borrow();
            tasks.iter().filter_map(|task| task.deadline()).chain(timer).min()
        });
        let acting = self.clients.iter().filter(|client| !client.is_silent() && client.deeds_left > 0);
        let next = timers.chain(acting.map(|client| client.next_at)).filter(|at| *at > now).min();
        match next {
            Some(at) if at.0 <= now.0 + REST_MICROS => {
                shared.trace.note(&[at.0], || format!("-- it is {} us", at.0));
                shared.clock.set(at);
                true
            }
            _ => false,
        }
    }
}

fn fiber(id: usize, shared: Rc<Shared>) -> Coroutine<(), (), ()> {
    let stack = DefaultStack::new(STACK_BYTES).expect("the system has memory for a stack");
    Coroutine::with_stack(stack, move |yielder, ()| CellWorld::new(id, &shared, yielder).run())
}
