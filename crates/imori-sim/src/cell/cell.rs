//! The main loop of a virtual cell.

use imori_core::broker::{queue_restored, queue_woken};
use imori_core::outbound::CutReason;
use imori_core::world::World;
use imori_server::login::{Authenticator, BuiltInUser};
use imori_server::turn::{Host, Signal, give_signal};

use super::world::CellWorld;
use crate::broker_end::Phase;
use crate::machine::Status;
use crate::machine::Task;
use crate::machine::{CellState, Shared};
use crate::message_text::OPERATORS_REASON;
use crate::planted::Bug;

/// A piece of work for a cell.
enum Work {
    Accept,
    /// Close a connection for an operator.
    Close,
    /// Tell the connections that the broker stops.
    TellStopping,
    Task(usize),
    Timer,
    Flush,
    /// Release confirms, as the journal has advanced.
    Journal,
    /// Wake a restored queue.
    Restored,
    /// Tell a queue of its pages.
    Pages,
    /// Check the login with this index; in the server a verifier's thread does that.
    Login(usize),
}

impl CellState {
    /// Whether the cell has work now.
    pub(crate) fn has_work(&self, shared: &Shared) -> bool {
        let phase = shared.phase.get();
        !self.arrivals.borrow().is_empty() && phase == Phase::Serving
            || !self.closures.borrow().is_empty()
            || phase == Phase::Stopping && !self.has_told.get()
            || phase > Phase::Stopping
            || self.is_woken.get()
            || !self.awakenings.borrow().is_empty()
            || !self.page_news.borrow().is_empty()
            || !self.logins.borrow().is_empty()
            || self.cell_scratch.touched_len() > 0
            || self.is_timer_due(shared)
            || self.tasks.borrow().iter().any(|task| task.is_ready(&shared.network, shared.clock.get()))
    }

    fn is_timer_due(&self, shared: &Shared) -> bool {
        // A deadline has to be passed, not just reached.
        self.timers.borrow().peek().is_some_and(|first| first.0.0 < shared.clock.get())
    }
}

impl CellWorld<'_> {
    /// Runs the cell. Never returns; the run drops the coroutine.
    pub(crate) fn run(&self) {
        self.state().turns.park(false);
        while self.shared.phase.get() <= Phase::Stopping {
            match self.next_work() {
                None => {
                    self.begin_turn();
                    self.end_turn();
                    self.state().turns.park(true);
                    self.stop(Status::Idle);
                    self.begin_turn();
                    self.state().turns.park(false);
                }
                Some(work) => self.do_work(&work),
            }
        }
        self.end_all();
    }

    /// Ends the remaining connections, which releases their deliveries; other work is dropped.
    fn end_all(&self) {
        while let Some(mut task) = { self.state().tasks.borrow_mut().pop() } {
            self.begin_turn();
            if !self.shared.has(Bug::EndWithoutRelease) {
                task.end(self);
            }
            self.end_turn();
        }
        self.state().turns.park(true);
        loop {
            self.stop(Status::Over);
        }
    }

    /// Picks a piece of work at random; touched connections are flushed before the cell idles.
    fn next_work(&self) -> Option<Work> {
        let shared = self.shared;
        let state = self.state();
        let mut choices: Vec<Work> = Vec::new();
        let phase = shared.phase.get();
        if phase == Phase::Stopping && !state.has_told.get() {
            choices.push(Work::TellStopping);
        }
        if !state.arrivals.borrow().is_empty() && phase == Phase::Serving {
            choices.push(Work::Accept);
        }
        if !state.closures.borrow().is_empty() {
            choices.push(Work::Close);
        }
        if state.is_woken.get() {
            choices.push(Work::Journal);
        }
        if !state.awakenings.borrow().is_empty() {
            return Some(Work::Restored);
        }
        if !state.page_news.borrow().is_empty() {
            choices.push(Work::Pages);
        }
        choices.extend((0..state.logins.borrow().len()).map(Work::Login));
        if state.is_timer_due(shared) {
            choices.push(Work::Timer);
        }
        let tasks = state.tasks.borrow();
        let ready =
            tasks.iter().enumerate().filter(|(_, task)| task.is_ready(&shared.network, shared.clock.get()));
        choices.extend(ready.map(|(index, _)| Work::Task(index)));
        if state.cell_scratch.touched_len() > 0 && (choices.is_empty() || shared.random.chance(1, 3)) {
            return Some(Work::Flush);
        }
        let index = shared.random.below(choices.len());
        (index < choices.len()).then(|| choices.swap_remove(index))
    }

    fn do_work(&self, work: &Work) {
        match work {
            Work::Accept => {
                let arrival = self.state().arrivals.borrow_mut().pop_front();
                if let Some(pipe) = arrival {
                    let task = Task::new(self, pipe);
                    self.state().tasks.borrow_mut().push(task);
                }
            }
            Work::Close => {
                self.begin_turn();
                let pipe = self.state().closures.borrow_mut().pop_front();
                let id = {
                    let tasks = self.state().tasks.borrow();
                    tasks.iter().find(|task| Some(task.pipe) == pipe).map(|task| task.task.id())
                };
                if let Some(id) = id {
                    let reason = CutReason::ClosedByOperator { reason: OPERATORS_REASON.into() };
                    self.with_outbound(id, |outbound| outbound.cut(reason));
                }
                self.end_turn();
            }
            Work::TellStopping => {
                self.state().has_told.set(true);
                let ids: Vec<_> = self.state().tasks.borrow().iter().map(|task| task.task.id()).collect();
                ids.into_iter().for_each(|id| give_signal(self, id, Signal::Stopping));
            }
            Work::Task(index) => {
                let mut task = self.state().tasks.borrow_mut().remove(*index);
                if task.turn(self).is_ready() {
                    task.end(self);
                } else {
                    self.state().tasks.borrow_mut().push(task);
                }
                self.end_turn();
            }
            Work::Journal => {
                self.state().is_woken.set(false);
                self.release_confirms();
                self.end_turn();
            }
            Work::Restored => {
                self.begin_turn();
                let awakening = self.state().awakenings.borrow_mut().pop_front();
                if let Some(mut awakening) = awakening {
                    if self.shared.has(Bug::PendingDeadLetterNotWoken) {
                        awakening.failed.clear();
                    }
                    queue_restored(self, &awakening);
                }
                self.end_turn();
            }
            Work::Pages => {
                self.begin_turn();
                let news = self.state().page_news.borrow_mut().pop_front();
                if let Some(news) = news {
                    news.tell(self);
                }
                self.end_turn();
            }
            Work::Timer => {
                self.begin_turn();
                let timer = self.state().timers.borrow_mut().pop();
                if let Some(timer) = timer {
                    self.hasten();
                    queue_woken(self, timer.0.1);
                }
                self.end_turn();
            }
            Work::Login(index) => self.check_login(*index),
            Work::Flush => self.flush_touched(),
        }
    }

    /// Checks a login and tells its connection, on whichever cell.
    fn check_login(&self, index: usize) {
        self.begin_turn();
        let login = self.state().logins.borrow_mut().remove(index);
        let mut told = login.connection;
        if self.shared.has(Bug::LoginMisdirected) {
            let mut others = self.shared.cells.iter().flat_map(|cell| cell.logins.borrow().clone());
            told = others.next().map_or(told, |other| other.connection);
        }
        let verdict = BuiltInUser.verify(&login);
        self.with_link(told, |link| link.tell_verdict(verdict));
        self.end_turn();
    }
}
