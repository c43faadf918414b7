//! What is deleted: history by its age and by the size of the store, and keys and tokens that have expired.
//!
//! The writer's thread deletes between commits, a few documents at a time, and sleeps until the next document is due.

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::time::Duration;

use imori_automation::times::Timestamp;
use tracing::{info, warn};

use crate::limits::{HISTORY_AGE, HISTORY_BYTES, SWEEP_DOCUMENTS, SWEEP_PAUSE_MAX, SWEEP_ROWS_MAX};
use crate::sql::{
    Collection, ENFORCEMENTS, EXECUTIONS, Field, KEYS, StoreConnection, StoreError, TOKENS,
    TRIGGER_INSTANCES, WORKFLOWS,
};

/// How much history the store keeps.
#[derive(Debug, Clone, Copy)]
pub struct Retention {
    /// Time for which executions are kept from their end on, and events from their occurrence on.
    pub age: Duration,
    /// Bytes of the store above which the oldest history is deleted.
    pub bytes: u64,
}

impl Default for Retention {
    fn default() -> Retention {
        Retention { age: HISTORY_AGE, bytes: HISTORY_BYTES }
    }
}

/// The history beside executions: each with the column that has its time.
const EVENTS: [(&Collection, &str); 2] =
    [(&TRIGGER_INSTANCES, "occurrence_time"), (&ENFORCEMENTS, "enforced_at")];

/// What expires at a time of its own.
const EXPIRING: [(&Collection, &str); 2] = [(&KEYS, "expire_timestamp"), (&TOKENS, "expiry")];

/// Deletes what is due.
#[derive(Debug)]
pub struct Sweeper {
    retention: Retention,
    is_final: fn(&str) -> bool,
    due: Option<Timestamp>,
    /// No earlier than this is the size looked at again, because nothing more could be deleted.
    full_until: Timestamp,
    deleted: usize,
}

impl Sweeper {
    /// A sweeper that deletes executions only in a status that `is_final`.
    pub fn new(retention: Retention, is_final: fn(&str) -> bool) -> Sweeper {
        Sweeper { retention, is_final, due: None, full_until: Timestamp::MIN, deleted: 0 }
    }

    /// When the next [`Sweeper::sweep`] is due; `None` while there is nothing that ages.
    pub fn due(&self) -> Option<Timestamp> {
        self.due
    }

    /// Takes note of a commit; `expires` tells that it may have stored something with a time of its own.
    pub fn note(&mut self, connection: &dyn StoreConnection, now: Timestamp, expires: bool) {
        let noted =
            if self.due.is_none() || expires { self.plan(connection, Timestamp::MIN) } else { Ok(()) };
        let is_full =
            now >= self.full_until && connection.used_bytes().is_ok_and(|used| used > self.retention.bytes);
        if is_full {
            self.due = Some(now);
        }
        if let Err(error) = noted {
            warn!(%error, "the automation's history is not looked at");
        }
    }

    /// Deletes some of what is due, within one SQL transaction, and plans the next time.
    pub fn sweep(&mut self, connection: &dyn StoreConnection, now: Timestamp) {
        if let Err(error) = self.try_sweep(connection, now) {
            connection.roll_back();
            warn!(%error, "old history of the automation cannot be deleted");
            self.due = Some(self.later(now));
        }
    }

    fn try_sweep(&mut self, connection: &dyn StoreConnection, now: Timestamp) -> Result<(), StoreError> {
        connection.begin()?;
        let mut deleted = 0;
        for (collection, column) in EXPIRING {
            deleted += delete_before(connection, collection, column, now, SWEEP_DOCUMENTS)?;
        }
        let age = i64::try_from(self.retention.age.as_micros()).unwrap_or(i64::MAX);
        let cutoff = now.plus_micros(age.saturating_neg()).unwrap_or(Timestamp::MIN);
        deleted += delete_executions(connection, cutoff, SWEEP_DOCUMENTS, self.is_final)?;
        for (collection, column) in EVENTS {
            deleted += delete_before(connection, collection, column, cutoff, SWEEP_DOCUMENTS)?;
        }
        let mut is_full = connection.used_bytes()? > self.retention.bytes;
        if is_full && deleted == 0 {
            deleted = self.delete_oldest(connection, now)?;
            if deleted == 0 {
                warn!(
                    bytes = self.retention.bytes,
                    "the automation's store is larger than `automation.history_bytes`, and no history is left to delete"
                );
                self.full_until = self.later(now);
                is_full = false;
            }
        }
        connection.commit()?;
        self.deleted += deleted;
        if deleted > 0 || is_full || connection.give_back()? {
            // More may be due; commits that wait go first.
            self.due = Some(now);
            return Ok(());
        }
        if self.deleted > 0 {
            info!(documents = self.deleted, "old history of the automation is deleted");
            self.deleted = 0;
        }
        self.plan(connection, self.later(now))
    }

    /// Deletes the oldest history, whatever its age, and no more of it than has to go.
    fn delete_oldest(&self, connection: &dyn StoreConnection, now: Timestamp) -> Result<usize, StoreError> {
        let mut kinds = vec![(&EXECUTIONS, "end_timestamp")];
        kinds.extend(EVENTS);
        let mut deleted = 0;
        while deleted < SWEEP_DOCUMENTS && connection.used_bytes()? > self.retention.bytes {
            let mut oldest: Option<(String, usize)> = None;
            for (index, (collection, column)) in kinds.iter().enumerate() {
                let time = first(connection, collection, column)?;
                if let Some(time) = time.filter(|time| oldest.as_ref().is_none_or(|(other, _)| time < other))
                {
                    oldest = Some((time, index));
                }
            }
            let Some((_, index)) = oldest else { break };
            let (collection, column) = kinds[index];
            let gone = match collection.name == EXECUTIONS.name {
                true => delete_executions(connection, now, 1, self.is_final)?,
                false => delete_before(connection, collection, column, now, 1)?,
            };
            if gone == 0 {
                kinds.swap_remove(index);
            }
            deleted += gone;
        }
        Ok(deleted)
    }

    /// Finds out when something is due next, but not before `earliest`.
    fn plan(&mut self, connection: &dyn StoreConnection, earliest: Timestamp) -> Result<(), StoreError> {
        let age = i64::try_from(self.retention.age.as_micros()).unwrap_or(i64::MAX);
        let mut times = Vec::new();
        for (collection, column) in EVENTS.into_iter().chain([(&EXECUTIONS, "end_timestamp")]) {
            let time: Option<Timestamp> =
                first(connection, collection, column)?.and_then(|time| time.parse().ok());
            times.extend(time.and_then(|time| time.plus_micros(age)));
        }
        for (collection, column) in EXPIRING {
            times.extend(
                first(connection, collection, column)?.and_then(|time| time.parse::<Timestamp>().ok()),
            );
        }
        self.due = times.into_iter().min().map(|due| due.max(earliest));
        Ok(())
    }

    /// The earliest time of the next sweep after one that has nothing more to delete.
    fn later(&self, now: Timestamp) -> Timestamp {
        let pause = SWEEP_PAUSE_MAX.min(self.retention.age / 10);
        now.plus_micros(i64::try_from(pause.as_micros()).unwrap_or(i64::MAX)).unwrap_or(now)
    }
}

/// The smallest value of a column.
fn first(
    connection: &dyn StoreConnection,
    collection: &Collection,
    column: &str,
) -> Result<Option<String>, StoreError> {
    let sql = format!(
        "SELECT \"{column}\" FROM {} WHERE \"{column}\" IS NOT NULL ORDER BY \"{column}\" NULLS FIRST LIMIT 1",
        collection.name
    );
    let mut found = None;
    connection.query(&sql, &[], &mut |row| {
        found = row.text(0)?.map(Cow::into_owned);
        Ok(ControlFlow::Break(()))
    })?;
    Ok(found)
}

/// Deletes documents whose column is smaller, the smallest first. An event stays while an execution that it led to has
/// not ended.
fn delete_before(
    connection: &dyn StoreConnection,
    collection: &Collection,
    column: &str,
    before: Timestamp,
    limit: usize,
) -> Result<usize, StoreError> {
    let name = collection.name;
    let needed = match name == TRIGGER_INSTANCES.name {
        true => {
            "AND NOT EXISTS (SELECT 1 FROM executions WHERE trigger_instance = trigger_instances.id \
                 AND end_timestamp IS NULL)"
        }
        false => "",
    };
    let sql = format!(
        "SELECT id FROM {name} WHERE \"{column}\" < $1 {needed} ORDER BY \"{column}\" NULLS FIRST LIMIT {limit}"
    );
    let mut ids = Vec::new();
    connection.query(&sql, &[Field::Text(&before.to_string())], &mut |row| {
        ids.extend(row.text(0)?.map(Cow::into_owned));
        Ok(ControlFlow::Continue(()))
    })?;
    ids.iter().try_for_each(|id| connection.delete(collection, id))?;
    Ok(ids.len())
}

/// Deletes executions that ended earlier, with the executions below them and the states of their workflows, the oldest
/// first. Those below another go with
/// it, and one with an open execution below it stays.
fn delete_executions(
    connection: &dyn StoreConnection,
    before: Timestamp,
    limit: usize,
    is_final: fn(&str) -> bool,
) -> Result<usize, StoreError> {
    let sql = format!(
        "SELECT id, status FROM executions AS e WHERE end_timestamp < $1 AND (parent IS NULL \
         OR NOT EXISTS (SELECT 1 FROM executions AS above WHERE above.id = e.parent)) \
         ORDER BY end_timestamp NULLS FIRST LIMIT {SWEEP_ROWS_MAX}"
    );
    let mut due = Vec::new();
    connection.query(&sql, &[Field::Text(&before.to_string())], &mut |row| {
        if is_final(&row.text(1)?.unwrap_or_default()) {
            let id = row.text(0)?.unwrap_or_default().into_owned();
            due.extend(with_descendants(connection, id, is_final)?.unwrap_or_default());
        }
        Ok(if due.len() >= limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    for id in &due {
        connection.delete(&EXECUTIONS, id)?;
        connection.delete(&WORKFLOWS, id)?;
    }
    Ok(due.len())
}

/// An execution and all below it; `None` if one of them has not ended.
fn with_descendants(
    connection: &dyn StoreConnection,
    id: String,
    is_final: fn(&str) -> bool,
) -> Result<Option<Vec<String>>, StoreError> {
    let mut found = vec![id];
    let mut next = 0;
    while let Some(parent) = found.get(next).cloned() {
        let mut is_open = false;
        let sql = "SELECT id, status FROM executions WHERE parent = $1";
        connection.query(sql, &[Field::Text(&parent)], &mut |row| {
            if !is_final(&row.text(1)?.unwrap_or_default()) {
                is_open = true;
                return Ok(ControlFlow::Break(()));
            }
            let child = row.text(0)?.unwrap_or_default().into_owned();
            // A damaged store may have a circle.
            if !found.contains(&child) {
                found.push(child);
            }
            Ok(ControlFlow::Continue(()))
        })?;
        if is_open {
            return Ok(None);
        }
        next += 1;
    }
    Ok(Some(found))
}
