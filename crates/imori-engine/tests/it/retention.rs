//! History that goes by its age or by the size of the store, and documents that expire.

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::time::Duration;

use imori_automation::times::Timestamp;
use imori_automation::value::{Map, Value};
use imori_engine::Retention;
use imori_engine::for_tests::{
    Collection, Committed, ENFORCEMENTS, EXECUTIONS, KEYS, Location, Row, Sqlite, StoreConnection, Sweeper,
    TOKENS, TRIGGER_INSTANCES, Transaction, WORKFLOWS,
};
use imori_engine::limits::FREE_PAGES_KEPT;

use crate::trial::Trial;

const DAY: i64 = 86_400_000_000;

fn is_final(status: &str) -> bool {
    status == "succeeded"
}

fn at(day: i64) -> Timestamp {
    Timestamp::from_micros(day * DAY)
}

/// Runs a test on a store of each kind.
fn on_each(test: fn(&dyn StoreConnection, &Trial)) {
    for trial in Trial::all() {
        test(&*trial.writing(), &trial);
    }
}

fn put(connection: &dyn StoreConnection, collection: &'static Collection, fields: &[(&str, Value)]) {
    let mut transaction = Transaction::new();
    transaction.put(collection, fields.iter().map(|(key, value)| (*key, value.clone())).collect());
    apply(connection, &transaction);
}

/// An execution that ended on this day; `None` has not ended.
fn execution(
    connection: &dyn StoreConnection,
    id: &str,
    ended: Option<i64>,
    parent: Option<&str>,
    result: usize,
) {
    let status = if ended.is_some() { "succeeded" } else { "running" };
    let mut fields = vec![("id", id.into()), ("status", status.into())];
    fields.extend(ended.map(|day| ("end_timestamp", at(day).to_string().into())));
    fields.extend(parent.map(|parent| ("parent", parent.into())));
    // Text that does not compress, of its own for each execution.
    let mut number = id.bytes().fold(1_u64, |sum, byte| sum.wrapping_mul(257).wrapping_add(u64::from(byte)));
    let mut next = || {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b'0' + (number >> 60) as u8)
    };
    fields.push(("result", (0..result).map(|_| next()).collect::<String>().into()));
    put(connection, &EXECUTIONS, &fields);
}

fn apply(connection: &dyn StoreConnection, transaction: &Transaction) {
    connection.begin().unwrap();
    assert_eq!(connection.apply(transaction).unwrap(), Committed::Done);
    connection.commit().unwrap();
}

fn ids(connection: &dyn StoreConnection, collection: &Collection) -> Vec<String> {
    let mut ids = Vec::new();
    let sql = format!("SELECT id FROM {} ORDER BY id", collection.name);
    let mut note = |row: &dyn Row| {
        ids.extend(row.text(0)?.map(Cow::into_owned));
        Ok(ControlFlow::Continue(()))
    };
    connection.query(&sql, &[], &mut note).unwrap();
    ids
}

fn count(connection: &dyn StoreConnection, table: &str) -> i64 {
    let mut count = 0;
    let mut note = |row: &dyn Row| {
        count = row.number(0)?;
        Ok(ControlFlow::Break(()))
    };
    connection.query(&format!("SELECT COUNT(*) FROM {table}"), &[], &mut note).unwrap();
    count
}

fn sweeper(days: u64, bytes: u64) -> Sweeper {
    Sweeper::new(Retention { age: Duration::from_secs(days * 86_400), bytes }, is_final)
}

/// Sweeps until nothing more is due now.
fn sweep(sweeper: &mut Sweeper, connection: &dyn StoreConnection, now: Timestamp) {
    for _ in 0..1_000 {
        sweeper.sweep(connection, now);
        if sweeper.due().is_none_or(|due| due > now) {
            return;
        }
    }
    panic!("the sweep does not end");
}

#[test]
fn an_empty_store_is_never_due() {
    on_each(an_empty_store_is_never_due_on);
}

fn an_empty_store_is_never_due_on(connection: &dyn StoreConnection, _: &Trial) {
    let mut sweeper = sweeper(30, 1 << 30);
    sweeper.note(connection, at(100), false);
    assert_eq!(sweeper.due(), None);
}

#[test]
fn history_goes_by_its_age_and_what_is_open_stays() {
    on_each(history_goes_by_its_age_and_what_is_open_stays_on);
}

fn history_goes_by_its_age_and_what_is_open_stays_on(connection: &dyn StoreConnection, _: &Trial) {
    execution(connection, "old", Some(1), None, 10);
    execution(connection, "child of old", Some(1), Some("old"), 10);
    execution(connection, "grandchild of old", Some(1), Some("child of old"), 10);
    execution(connection, "new", Some(60), None, 10);
    for id in ["old", "child of old", "new", "running"] {
        let state: Value = id.repeat(20_000).into();
        put(connection, &WORKFLOWS, &[("id", id.into()), ("state", state)]);
    }
    execution(connection, "child of new", Some(1), Some("new"), 10);
    execution(connection, "running", None, None, 10);
    execution(connection, "child of running", Some(1), Some("running"), 10);
    execution(connection, "with a running child", Some(1), None, 10);
    execution(connection, "running child", None, Some("with a running child"), 10);
    execution(connection, "orphan", Some(1), Some("gone"), 10);
    for (id, day) in [("i1", 1), ("i2", 1), ("i60", 60)] {
        put(
            connection,
            &TRIGGER_INSTANCES,
            &[("id", id.into()), ("occurrence_time", at(day).to_string().into())],
        );
        put(connection, &ENFORCEMENTS, &[("id", id.into()), ("enforced_at", at(day).to_string().into())]);
    }
    put(
        connection,
        &EXECUTIONS,
        &[("id", "waits".into()), ("status", "requested".into()), ("trigger_instance", "i2".into())],
    );
    let mut sweeper = sweeper(30, 1 << 30);
    sweeper.note(connection, at(20), false);
    assert_eq!(sweeper.due(), Some(at(31)));
    sweep(&mut sweeper, connection, at(62));
    assert_eq!(
        ids(connection, &EXECUTIONS),
        [
            "child of new",
            "child of running",
            "new",
            "running",
            "running child",
            "waits",
            "with a running child"
        ]
    );
    assert_eq!(ids(connection, &WORKFLOWS), ["new", "running"]);
    assert_eq!(count(connection, "large_values"), 2);
    assert_eq!(ids(connection, &TRIGGER_INSTANCES), ["i2", "i60"]);
    assert_eq!(ids(connection, &ENFORCEMENTS), ["i60"]);
    // What is due but cannot go is looked at again after a pause.
    assert_eq!(sweeper.due(), at(62).plus_micros(60_000_000));
}

#[test]
fn keys_and_tokens_go_when_they_expire() {
    on_each(keys_and_tokens_go_when_they_expire_on);
}

fn keys_and_tokens_go_when_they_expire_on(connection: &dyn StoreConnection, _: &Trial) {
    put(connection, &KEYS, &[("id", "k".into()), ("expire_timestamp", at(5).to_string().into())]);
    put(connection, &KEYS, &[("id", "stays".into())]);
    put(connection, &TOKENS, &[("id", "t".into()), ("expiry", at(6).to_string().into())]);
    let mut sweeper = sweeper(30, 1 << 30);
    sweeper.note(connection, at(1), true);
    assert_eq!(sweeper.due(), Some(at(5)));
    sweep(&mut sweeper, connection, at(7));
    assert_eq!((ids(connection, &KEYS), ids(connection, &TOKENS)), (vec![String::from("stays")], vec![]));
    assert_eq!(sweeper.due(), None);
}

#[test]
fn the_oldest_history_goes_when_the_store_is_too_large() {
    on_each(the_oldest_history_goes_when_the_store_is_too_large_on);
}

fn the_oldest_history_goes_when_the_store_is_too_large_on(connection: &dyn StoreConnection, trial: &Trial) {
    // A file is so large that it has to shrink.
    let number = if trial.is_file() { 200 } else { 40 };
    for number in 0..number {
        execution(connection, &format!("{number:03}"), Some(number), None, 100_000);
    }
    execution(connection, "running", None, None, 100_000);
    let before = connection.used_bytes().unwrap();
    let limit = before / 2;
    let mut sweeper = sweeper(100_000, limit);
    sweeper.note(connection, at(1_000), false);
    assert_eq!(sweeper.due(), Some(at(1_000)));
    sweep(&mut sweeper, connection, at(1_000));
    assert!(connection.used_bytes().unwrap() <= limit);
    let left = ids(connection, &EXECUTIONS);
    assert!((number * 3 / 10..number * 11 / 20).contains(&(left.len() as i64)), "{}", left.len());
    let last = format!("{:03}", number - 1);
    assert_eq!(
        (left.last().map(String::as_str), left.get(left.len() - 2).map(String::as_str)),
        (Some("running"), Some(last.as_str()))
    );
    assert_eq!(count(connection, "large_values"), left.len() as i64);
    // What was freed is given back to the file system but for some pages.
    let Location::File(path) = &trial.location else { return };
    let store = Sqlite::reading(path).unwrap();
    let file = store.pragma("page_count").unwrap() * store.pragma("page_size").unwrap();
    assert!(file < limit + (FREE_PAGES_KEPT + 1) * 4_096, "{file} of {before}");
}

#[test]
fn a_store_that_only_open_executions_fill_is_left_alone() {
    on_each(a_store_that_only_open_executions_fill_is_left_alone_on);
}

fn a_store_that_only_open_executions_fill_is_left_alone_on(connection: &dyn StoreConnection, _: &Trial) {
    for number in 0..10 {
        execution(connection, &format!("{number}"), None, None, 100_000);
    }
    let mut sweeper = sweeper(30, 1_000);
    sweeper.note(connection, at(1), false);
    sweep(&mut sweeper, connection, at(1));
    assert_eq!((ids(connection, &EXECUTIONS).len(), sweeper.due()), (10, None));
    sweeper.note(connection, at(1), false);
    assert_eq!(sweeper.due(), None, "it is not looked at again at once");
}

#[test]
fn a_large_value_lies_once_for_all_its_documents() {
    on_each(a_large_value_lies_once_for_all_its_documents_on);
}

fn a_large_value_lies_once_for_all_its_documents_on(connection: &dyn StoreConnection, _: &Trial) {
    let value: Value = "x".repeat(100_000).into();
    for id in ["a", "b"] {
        put(
            connection,
            &EXECUTIONS,
            &[("id", id.into()), ("result", value.clone()), ("parameters", Map::new().into())],
        );
    }
    assert_eq!((count(connection, "large_values"), count(connection, "large_uses")), (1, 2));
    put(connection, &EXECUTIONS, &[("id", "a".into()), ("result", "small".into())]);
    assert_eq!((count(connection, "large_values"), count(connection, "large_uses")), (1, 1));
    let mut transaction = Transaction::new();
    transaction.delete(&EXECUTIONS, "b");
    apply(connection, &transaction);
    assert_eq!((count(connection, "large_values"), count(connection, "large_uses")), (0, 0));
}
