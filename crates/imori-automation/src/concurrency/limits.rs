//! The places that concurrency policies give to executions. An execution holds a place under each policy of its action
//! from its admission to its end; a further one waits in the order of requests, or is canceled. Nothing polls: the end of
//! an execution admits the next one.
//!
//! While an action has a waiting execution for some values of its attributes, all places for these values are taken.

use std::collections::{BTreeMap, BTreeSet};

use super::policy::{ConcurrencyPolicy, Excess};
use crate::value::Map;

/// The executions of all actions that have concurrency policies: those with a place, and those that wait for one.
/// `T` is an execution as the caller keeps it. Executions of other actions are admitted and not remembered.
#[derive(Debug)]
pub struct ConcurrencyLimits<T> {
    actions: BTreeMap<String, ActionLimits<T>>,
    /// The number of the next execution that waits.
    next: u64,
}

/// A policy and its reference.
pub type NamedPolicy = (String, ConcurrencyPolicy);

/// The decision about an execution.
#[derive(Debug, PartialEq, Eq)]
pub enum Admission<T> {
    /// It has its places, and runs.
    Run(T),
    /// It is canceled.
    Cancel(T, Refusal),
}

/// The policy that refuses an execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The policy's reference.
    pub policy: String,
    /// Its threshold.
    pub threshold: u32,
}

#[derive(Debug)]
struct ActionLimits<T> {
    limits: Vec<Limit>,
    /// For each execution with a place, its key under each limit.
    holders: BTreeMap<String, Vec<String>>,
    waiting: BTreeMap<String, Waiting<T>>,
    /// Changes since the caller began to read the executions that run; `None` if it does not read them.
    loading: Option<Loading>,
}

#[derive(Debug)]
struct Limit {
    reference: String,
    policy: ConcurrencyPolicy,
    /// Executions with a place, by key. Keys without any are removed.
    counts: BTreeMap<String, u32>,
    /// The number and id of each execution that waits for a place, by key. Keys without any are removed.
    queues: BTreeMap<String, BTreeSet<(u64, String)>>,
}

#[derive(Debug)]
struct Waiting<T> {
    execution: T,
    number: u64,
    /// Its key under each limit.
    keys: Vec<String>,
    /// The limit in whose queue it is; `None` while the executions that run are being read.
    queue: Option<usize>,
}

#[derive(Debug, Default)]
struct Loading {
    begun: BTreeMap<String, Map>,
    ended: BTreeSet<String>,
}

impl<T> Default for ConcurrencyLimits<T> {
    fn default() -> ConcurrencyLimits<T> {
        ConcurrencyLimits { actions: BTreeMap::new(), next: 0 }
    }
}

impl<T> ConcurrencyLimits<T> {
    /// Decides about an execution of this action and id; `parameters` are read if the action has policies. An execution
    /// that has to wait is kept, and `None` returned; `delay` changes it before, unless it waits only until
    /// [`ConcurrencyLimits::set`] is called.
    pub fn request(
        &mut self,
        (action, id): (&str, &str),
        mut execution: T,
        parameters: impl FnOnce(&T) -> Map,
        delay: impl FnOnce(&mut T),
    ) -> Option<Admission<T>> {
        let Some(limits) = self.actions.get_mut(action) else { return Some(Admission::Run(execution)) };
        let keys = limits.keys(&parameters(&execution));
        let full = match limits.loading {
            Some(_) => None,
            None => match limits.full(&keys) {
                None => {
                    limits.take(id, keys);
                    return Some(Admission::Run(execution));
                }
                Some(at) => match limits.refusal(at) {
                    Some(refusal) => return Some(Admission::Cancel(execution, refusal)),
                    None => Some(at),
                },
            },
        };
        if full.is_some() {
            delay(&mut execution);
        }
        let number = self.next;
        self.next += 1;
        limits.wait(id, Waiting { execution, number, keys, queue: full });
        None
    }

    /// Counts an execution that runs in any case, unless it has its places.
    pub fn begin(&mut self, action: &str, id: &str, parameters: &Map) {
        let Some(limits) = self.actions.get_mut(action) else { return };
        if let Some(loading) = &mut limits.loading {
            loading.begun.insert(id.to_owned(), parameters.clone());
        }
        let keys = limits.keys(parameters);
        limits.take(id, keys);
    }

    /// Whether an action has policies.
    pub fn is_limited(&self, action: &str) -> bool {
        self.actions.contains_key(action)
    }

    /// Whether an execution has a place.
    pub fn holds(&self, action: &str, id: &str) -> bool {
        self.actions.get(action).is_some_and(|limits| limits.holders.contains_key(id))
    }

    /// Frees the places of an execution, or ends its waiting. Returns the decisions about those that waited for these
    /// places. An execution that has none is ignored, so that an end may be told twice.
    pub fn end(&mut self, action: &str, id: &str) -> Vec<Admission<T>> {
        let Some(limits) = self.actions.get_mut(action) else { return Vec::new() };
        if let Some(loading) = &mut limits.loading {
            loading.ended.insert(id.to_owned());
        }
        drop(limits.leave(id));
        let Some(keys) = limits.holders.remove(id) else { return Vec::new() };
        let mut decided = Vec::new();
        for (at, key) in keys.iter().enumerate() {
            limits.free(at, key);
        }
        if limits.loading.is_none() {
            for (at, key) in keys.iter().enumerate() {
                limits.admit(at, key, &mut decided);
            }
        }
        decided
    }

    /// The actions whose policies differ from these, with what they should be: none for an action that has lost its
    /// policies.
    pub fn changes(&self, wanted: &BTreeMap<String, Vec<NamedPolicy>>) -> BTreeMap<String, Vec<NamedPolicy>> {
        let differs = |action: &str, policies: &[NamedPolicy]| {
            let limits = self.actions.get(action).map(|limits| limits.limits.as_slice()).unwrap_or_default();
            limits.len() != policies.len()
                || limits.iter().zip(policies).any(|(limit, (reference, policy))| {
                    limit.reference != *reference || limit.policy != *policy
                })
        };
        let lost = self.actions.keys().filter(|action| !wanted.contains_key(*action));
        let lost = lost.map(|action| (action.clone(), Vec::new()));
        let changed = wanted.iter().filter(|(action, policies)| differs(action, policies));
        lost.chain(changed.map(|(action, policies)| (action.clone(), policies.clone()))).collect()
    }

    /// Lets requests of this action wait until [`ConcurrencyLimits::set`]. The caller reads meanwhile the executions that
    /// run.
    pub fn load(&mut self, action: &str) {
        let new = || ActionLimits {
            limits: Vec::new(),
            holders: BTreeMap::new(),
            waiting: BTreeMap::new(),
            loading: None,
        };
        self.actions.entry(action.to_owned()).or_insert_with(new).loading.get_or_insert_default();
    }

    /// Replaces the policies of an action, after [`ConcurrencyLimits::load`]. `running` are the ids and parameters of the
    /// executions that were found to run, which keep their places above a threshold too. Returns the executions that
    /// waited, in their order, to be requested again.
    pub fn set(
        &mut self,
        action: &str,
        policies: Vec<NamedPolicy>,
        running: impl IntoIterator<Item = (String, Map)>,
    ) -> Vec<T> {
        let Some(old) = self.actions.remove(action) else { return Vec::new() };
        let mut waiting: Vec<_> = old.waiting.into_values().collect();
        waiting.sort_by_key(|waiting| waiting.number);
        if !policies.is_empty() {
            let limit = |(reference, policy)| Limit {
                reference,
                policy,
                counts: BTreeMap::new(),
                queues: BTreeMap::new(),
            };
            let mut limits = ActionLimits {
                limits: policies.into_iter().map(limit).collect(),
                holders: BTreeMap::new(),
                waiting: BTreeMap::new(),
                loading: None,
            };
            let Loading { begun, ended } = old.loading.unwrap_or_default();
            for (id, parameters) in running.into_iter().chain(begun).filter(|(id, _)| !ended.contains(id)) {
                let keys = limits.keys(&parameters);
                limits.take(&id, keys);
            }
            self.actions.insert(action.to_owned(), limits);
        }
        waiting.into_iter().map(|waiting| waiting.execution).collect()
    }
}

impl<T> ActionLimits<T> {
    fn keys(&self, parameters: &Map) -> Vec<String> {
        self.limits.iter().map(|limit| limit.policy.key(parameters)).collect()
    }

    /// The first limit without a place for these keys.
    fn full(&self, keys: &[String]) -> Option<usize> {
        self.limits.iter().zip(keys).position(|(limit, key)| limit.is_full(key))
    }

    /// The refusal of a full limit that cancels.
    fn refusal(&self, at: usize) -> Option<Refusal> {
        let limit = self.limits.get(at).filter(|limit| limit.policy.action == Excess::Cancel)?;
        Some(Refusal { policy: limit.reference.clone(), threshold: limit.policy.threshold })
    }

    fn take(&mut self, id: &str, keys: Vec<String>) {
        if self.holders.contains_key(id) {
            return;
        }
        for (limit, key) in self.limits.iter_mut().zip(&keys) {
            *limit.counts.entry(key.clone()).or_default() += 1;
        }
        self.holders.insert(id.to_owned(), keys);
    }

    fn free(&mut self, at: usize, key: &str) {
        let Some(limit) = self.limits.get_mut(at) else { return };
        if let Some(count) = limit.counts.get_mut(key) {
            *count -= 1;
            if *count == 0 {
                limit.counts.remove(key);
            }
        }
    }

    fn wait(&mut self, id: &str, waiting: Waiting<T>) {
        if let Some((limit, key)) =
            waiting.queue.and_then(|at| Some((self.limits.get_mut(at)?, waiting.keys.get(at)?)))
        {
            limit.queues.entry(key.clone()).or_default().insert((waiting.number, id.to_owned()));
        }
        self.waiting.insert(id.to_owned(), waiting);
    }

    /// Ends the waiting of an execution.
    fn leave(&mut self, id: &str) -> Option<Waiting<T>> {
        let waiting = self.waiting.remove(id)?;
        let at = waiting.queue;
        if let Some((limit, key)) = at.and_then(|at| Some((self.limits.get_mut(at)?, waiting.keys.get(at)?)))
            && let Some(queue) = limit.queues.get_mut(key)
        {
            queue.remove(&(waiting.number, id.to_owned()));
            if queue.is_empty() {
                limit.queues.remove(key);
            }
        }
        Some(waiting)
    }

    /// Decides about the executions that wait for a place of a limit, while it has any. One for which another limit has
    /// none waits there.
    fn admit(&mut self, at: usize, key: &str, decided: &mut Vec<Admission<T>>) {
        loop {
            let Some(limit) = self.limits.get(at).filter(|limit| !limit.is_full(key)) else { return };
            let first = limit.queues.get(key).and_then(|queue| queue.first());
            let Some((_, id)) = first.cloned() else { return };
            let Some(mut waiting) = self.leave(&id) else { return };
            let Some(full) = self.full(&waiting.keys) else {
                self.take(&id, waiting.keys);
                decided.push(Admission::Run(waiting.execution));
                continue;
            };
            match self.refusal(full) {
                Some(refusal) => decided.push(Admission::Cancel(waiting.execution, refusal)),
                None => {
                    waiting.queue = Some(full);
                    self.wait(&id, waiting);
                }
            }
        }
    }
}

impl Limit {
    fn is_full(&self, key: &str) -> bool {
        self.counts.get(key).copied().unwrap_or_default() >= self.policy.threshold
    }
}
