//! The thread that commits: what waits when it begins shares one sync.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::{Duration, Instant};

use imori_automation::times::Timestamp;
use tokio::sync::oneshot;
use tracing::error;

use super::outage::{Outage, Side};
use super::pause::Pause;
use super::retention::Sweeper;
use crate::limits::COMMIT_TRANSACTIONS_MAX;
use crate::sql::{Committed, LastCommit, StoreConnection, StoreError, Transaction};

/// A transaction and who waits for it.
pub(super) struct Commit {
    pub(super) transaction: Transaction,
    pub(super) answer: oneshot::Sender<Result<Committed, StoreError>>,
}

/// Commits until all senders are gone, and deletes what is due between commits.
///
/// While the store cannot be reached, commits wait. One whose connection ended before its answer is answered once the
/// store tells what became of it: it counts as done only if the store has it, and is made again only if the store has
/// it not.
pub(super) fn run_writer(
    store: &dyn StoreConnection,
    commits: &Receiver<Commit>,
    sweeper: Sweeper,
    now: fn() -> Timestamp,
    outage: &Outage,
) {
    let mut writer = Writer { store, commits, waiting: VecDeque::new(), outage };
    // All senders are gone, or the store is refused to this broker.
    if let Err(reason) = writer.run(sweeper, now) {
        writer.refuse(&reason);
    }
}

struct Writer<'a> {
    store: &'a dyn StoreConnection,
    commits: &'a Receiver<Commit>,
    /// Commits that have come while the store could not be reached.
    waiting: VecDeque<Commit>,
    outage: &'a Outage,
}

/// Why a group is not committed.
enum Failure {
    /// Nothing of it is.
    Refused(StoreError),
    /// The connection is lost; if that was during the commit itself, with the outcome of each transaction in case that it
    /// took place.
    Lost(String, Option<Vec<Result<Committed, StoreError>>>),
}

impl Writer<'_> {
    fn run(&mut self, mut sweeper: Sweeper, now: fn() -> Timestamp) -> Result<(), StoreError> {
        if self.outage.reason().is_some() {
            self.reconnect()?;
        }
        sweeper.note(self.store, now(), false);
        loop {
            let first = match (self.waiting.pop_front(), sweeper.due()) {
                (Some(first), _) => Ok(first),
                (None, None) => self.commits.recv().map_err(|_| RecvTimeoutError::Disconnected),
                (None, Some(due)) => self.commits.recv_timeout(until(due, now())),
            };
            let first = match first {
                Ok(first) => first,
                Err(RecvTimeoutError::Timeout) => {
                    sweeper.sweep(self.store, now());
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            };
            let mut group = vec![first];
            while group.len() < COMMIT_TRANSACTIONS_MAX {
                match self.waiting.pop_front().ok_or(TryRecvError::Empty).or_else(|_| self.commits.try_recv())
                {
                    Ok(next) => group.push(next),
                    Err(TryRecvError::Empty | TryRecvError::Disconnected) => break,
                }
            }
            let expires = group.iter().any(|commit| commit.transaction.expires());
            self.commit(group)?;
            let now = now();
            sweeper.note(self.store, now, expires);
            // A store that always has commits waiting deletes nothing less.
            if sweeper.due().is_some_and(|due| due <= now) {
                sweeper.sweep(self.store, now);
            }
        }
    }

    /// Commits a group and answers; returns an error if nothing can be committed any more.
    fn commit(&mut self, group: Vec<Commit>) -> Result<(), StoreError> {
        loop {
            let (reason, outcomes) = match attempt(self.store, &group) {
                Ok(outcomes) => {
                    answer(group, outcomes);
                    return Ok(());
                }
                Err(Failure::Refused(reason)) => {
                    fail(group, &reason);
                    return Ok(());
                }
                Err(Failure::Lost(reason, outcomes)) => (reason, outcomes),
            };
            self.outage.begin(Side::Writer, &reason);
            match (self.reconnect(), outcomes) {
                (Ok(LastCommit::Kept), Some(outcomes)) => {
                    answer(group, outcomes);
                    return Ok(());
                }
                (Ok(_), _) => {}
                (Err(reason), _) => {
                    fail(group, &reason);
                    return Err(reason);
                }
            }
        }
    }

    /// Connects again, however long that takes.
    fn reconnect(&mut self) -> Result<LastCommit, StoreError> {
        let mut pause = Pause::first();
        loop {
            match self.store.reconnect() {
                Ok(last) => {
                    self.outage.finish(Side::Writer);
                    return Ok(last);
                }
                Err(StoreError::Unreachable(reason)) => self.outage.begin(Side::Writer, &reason),
                Err(reason) => {
                    self.outage.begin(Side::Writer, &reason.to_string());
                    return Err(reason);
                }
            }
            let until = Instant::now() + pause.next();
            loop {
                match self.commits.recv_timeout(until.saturating_duration_since(Instant::now())) {
                    Ok(commit) => self.waiting.push_back(commit),
                    Err(RecvTimeoutError::Timeout) => break,
                    Err(RecvTimeoutError::Disconnected) => return Err(StoreError::Closed),
                }
            }
            // A source that has given up sends its event again.
            self.waiting.retain(|commit| !commit.answer.is_closed());
        }
    }

    /// Answers all commits with this error until all senders are gone.
    fn refuse(&mut self, reason: &StoreError) {
        if !matches!(reason, StoreError::Closed) {
            error!(%reason, "the automation cannot use its store; restart the broker when that is mended");
        }
        for commit in self.waiting.drain(..).chain(self.commits) {
            // The caller may be gone.
            let _ = commit.answer.send(Err(reason.clone()));
        }
    }
}

fn until(due: Timestamp, now: Timestamp) -> Duration {
    Duration::from_micros(u64::try_from(due.micros().saturating_sub(now.micros())).unwrap_or_default())
}

/// Commits a group in one SQL transaction; returns the outcome of each.
fn attempt(
    store: &dyn StoreConnection,
    group: &[Commit],
) -> Result<Vec<Result<Committed, StoreError>>, Failure> {
    if let Err(error) = store.begin() {
        return Err(Failure::of(error, None));
    }
    let mut outcomes = Vec::with_capacity(group.len());
    for Commit { transaction, .. } in group {
        let outcome = store.apply(transaction);
        if let Err(StoreError::Unreachable(reason)) = outcome {
            return Err(Failure::Lost(reason, None));
        }
        outcomes.push(outcome);
    }
    match store.commit() {
        Ok(()) => Ok(outcomes),
        Err(error) => Err(Failure::of(error, Some(outcomes))),
    }
}

impl Failure {
    fn of(error: StoreError, outcomes: Option<Vec<Result<Committed, StoreError>>>) -> Failure {
        match error {
            StoreError::Unreachable(reason) => Failure::Lost(reason, outcomes),
            error => Failure::Refused(error),
        }
    }
}

fn answer(group: Vec<Commit>, outcomes: Vec<Result<Committed, StoreError>>) {
    for (commit, outcome) in group.into_iter().zip(outcomes) {
        // The caller may be gone.
        let _ = commit.answer.send(outcome);
    }
}

fn fail(group: Vec<Commit>, reason: &StoreError) {
    error!(error = %reason, "the store of the automation cannot commit");
    group.into_iter().for_each(|commit| drop(commit.answer.send(Err(reason.clone()))));
}
