//! The executions that wait and that run, in memory.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use imori_automation::value::Map;
use tokio::sync::{oneshot, watch};

use super::execution::Execution;
use crate::limits::EXECUTIONS_AT_ONCE;

/// The executions that wait and that run.
#[derive(Default)]
pub(crate) struct RunQueue(Mutex<State>);

#[derive(Default)]
struct State {
    /// Whether executions may run: what the last engine left has been read.
    is_open: bool,
    waiting: VecDeque<Execution>,
    running: BTreeMap<String, watch::Sender<bool>>,
    observers: BTreeMap<String, Vec<oneshot::Sender<Map>>>,
}

/// What becomes of an execution that is to be canceled.
pub(crate) enum Canceling {
    /// It runs, and was told.
    Told,
    /// It waited, and waits no more.
    Taken(Execution),
    /// It is not here.
    Unknown,
}

impl RunQueue {
    fn with<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Receives the document of an execution once it has ended.
    pub(crate) fn observe(&self, id: &str) -> oneshot::Receiver<Map> {
        let (sender, receiver) = oneshot::channel();
        self.with(|state| state.observers.entry(id.to_owned()).or_default().push(sender));
        receiver
    }

    /// Hands the document of an execution that has ended to its observers.
    pub(crate) fn tell(&self, id: &str, document: &Map) {
        let observers = self.with(|state| state.observers.remove(id)).unwrap_or_default();
        // An observer that has gone asks no more.
        observers.into_iter().for_each(|observer| drop(observer.send(document.clone())));
    }

    /// Lets executions run. Until then, those that clients request wait: one that ran would look as if the last engine had
    /// left it.
    pub(crate) fn open(&self) {
        self.with(|state| state.is_open = true);
    }

    /// Adds an execution that waits.
    pub(crate) fn push(&self, execution: Execution) {
        self.with(|state| state.waiting.push_back(execution));
    }

    /// Takes the next execution, which counts as running from now on, and what turns true when it is canceled. `None`
    /// if none waits, or as many run as may.
    pub(crate) fn next(&self) -> Option<(Execution, watch::Receiver<bool>)> {
        self.with(|state| {
            while state.is_open && state.running.len() < EXECUTIONS_AT_ONCE {
                let execution = state.waiting.pop_front()?;
                let (sender, canceled) = watch::channel(false);
                // One that was requested during the start may be here twice.
                if let Entry::Vacant(free) = state.running.entry(execution.text("id").to_owned()) {
                    free.insert(sender);
                    return Some((execution, canceled));
                }
            }
            None
        })
    }

    /// Counts an execution as running that an earlier engine started.
    pub(crate) fn adopt(&self, id: &str) -> watch::Receiver<bool> {
        let (sender, canceled) = watch::channel(false);
        self.with(|state| state.running.insert(id.to_owned(), sender));
        canceled
    }

    /// Counts an execution as running no more.
    pub(crate) fn remove(&self, id: &str) {
        self.with(|state| state.running.remove(id));
    }

    /// Cancels an execution.
    pub(crate) fn cancel(&self, id: &str) -> Canceling {
        self.with(|state| {
            if let Some(sender) = state.running.get(id) {
                // Its runner may have ended by now.
                let _ = sender.send(true);
                return Canceling::Told;
            }
            let at = state.waiting.iter().position(|execution| execution.text("id") == id);
            match at.and_then(|at| state.waiting.remove(at)) {
                Some(execution) => Canceling::Taken(execution),
                None => Canceling::Unknown,
            }
        })
    }
}
