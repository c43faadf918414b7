//! The thread that answers queries.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Instant;

use imori_automation::value::Map;
use tracing::error;

use super::outage::{Outage, Side};
use super::parts::Parts;
use super::pause::Pause;
use super::query::{Query, Rows, document};
use crate::sql::{Collection, Field, StoreConnection, StoreError};

/// What takes an answer.
pub(super) type Answer<T> = Box<dyn FnOnce(Result<T, StoreError>) + Send>;

/// A question, and what takes its answer.
pub(super) enum Question {
    /// The document of this id.
    One(&'static Collection, String, Answer<Option<Map>>),
    /// A query.
    Many(Query, Answer<Rows>),
}

/// Answers until all senders are gone. Questions wait while the store cannot be reached.
pub(super) fn run_reader(store: &dyn StoreConnection, questions: &Receiver<Question>, outage: &Outage) {
    let mut waiting = VecDeque::new();
    if outage.reason().is_some() && reconnect(store, questions, &mut waiting, outage).is_break() {
        return;
    }
    loop {
        let question = match waiting.pop_front() {
            Some(question) => question,
            None => match questions.recv() {
                Ok(question) => question,
                Err(_) => return,
            },
        };
        let lost = match question {
            Question::One(collection, id, answer) => match whole(store, || one(store, collection, &id)) {
                Err(StoreError::Unreachable(reason)) => (Question::One(collection, id, answer), reason),
                found => {
                    answer(found);
                    continue;
                }
            },
            Question::Many(query, answer) => match whole(store, || query.run(store)) {
                Err(StoreError::Unreachable(reason)) => (Question::Many(query, answer), reason),
                found => {
                    answer(found);
                    continue;
                }
            },
        };
        let (question, reason) = lost;
        waiting.push_front(question);
        outage.begin(Side::Reader, &reason);
        if reconnect(store, questions, &mut waiting, outage).is_break() {
            return;
        }
    }
}

/// Reads, and reads again from one state if a change came in between.
fn whole<T>(store: &dyn StoreConnection, read: impl Fn() -> Result<T, StoreError>) -> Result<T, StoreError> {
    match read() {
        Err(StoreError::Damaged) => {
            store.begin_reading()?;
            let found = read();
            store.roll_back();
            if let Err(error @ StoreError::Damaged) = &found {
                error!(%error, "a document is not used");
            }
            found
        }
        found => found,
    }
}

/// Connects again, however long that takes; breaks if all senders are gone.
fn reconnect(
    store: &dyn StoreConnection,
    questions: &Receiver<Question>,
    waiting: &mut VecDeque<Question>,
    outage: &Outage,
) -> ControlFlow<()> {
    let mut pause = Pause::first();
    loop {
        match store.reconnect() {
            Ok(_) => {
                outage.finish(Side::Reader);
                return ControlFlow::Continue(());
            }
            Err(error) => outage.begin(Side::Reader, &error.to_string()),
        }
        let until = Instant::now() + pause.next();
        loop {
            match questions.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(question) => waiting.push_back(question),
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => return ControlFlow::Break(()),
            }
        }
    }
}

fn one(store: &dyn StoreConnection, collection: &Collection, id: &str) -> Result<Option<Map>, StoreError> {
    let sql = format!("SELECT body FROM {} WHERE id = $1", collection.name);
    let mut found = None;
    store.query(&sql, &[Field::Text(id)], &mut |row| {
        found = Some(document(store, row.bytes(0)?, &Parts::All)?);
        Ok(ControlFlow::Break(()))
    })?;
    Ok(found)
}
