//! The store on a server: its one writer, and connections that are lost.

use std::io::{Read as _, Write as _, copy};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use imori_automation::value::{Map, Value};
use imori_engine::Retention;
use imori_engine::for_tests::{
    Committed, Database, Field, KEYS, LastCommit, Postgres, Query, Row, StoreConnection, StoreError,
    Transaction,
};

use crate::trial::Trial;

fn put(id: &str) -> Transaction {
    let mut transaction = Transaction::new();
    transaction.put(&KEYS, [("id", id)].into_iter().collect());
    transaction
}

fn write(store: &dyn StoreConnection, id: &str) -> Result<(), StoreError> {
    store.begin()?;
    assert_eq!(store.apply(&put(id))?, Committed::Done);
    store.commit()
}

fn has(store: &dyn StoreConnection, id: &str) -> bool {
    let mut is_there = false;
    let mut note = |_: &dyn Row| {
        is_there = true;
        Ok(ControlFlow::Break(()))
    };
    store.query("SELECT 1 FROM keys WHERE id = $1", &[Field::Text(id)], &mut note).unwrap();
    is_there
}

/// Connects again as soon as the server has ended the connection before, which held the lock.
fn reconnected(store: &Postgres) -> Result<LastCommit, StoreError> {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        match store.reconnect() {
            Err(StoreError::Unreachable(_)) if Instant::now() < deadline => thread::yield_now(),
            other => return other,
        }
    }
}

/// Passes connections on to a server.
struct Relay {
    /// The host and port where it listens.
    host: String,
    /// Whether the next connection on which the server confirms a commit ends before the client learns of it.
    loses_commit: Arc<AtomicBool>,
}

impl Relay {
    fn to(server: &str) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let relay = Relay { host: listener.local_addr().unwrap().to_string(), loses_commit: Arc::default() };
        let (server, loses_commit) = (server.to_owned(), Arc::clone(&relay.loses_commit));
        thread::spawn(move || {
            for client in listener.incoming() {
                let (client, server) = (client.unwrap(), TcpStream::connect(&server).unwrap());
                let loses_commit = Arc::clone(&loses_commit);
                let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                thread::spawn(move || {
                    // An end on either side ends both.
                    let _ = copy(&mut from, &mut to);
                    let _ = to.shutdown(Shutdown::Both);
                });
                thread::spawn(move || pass_answers(server, client, &loses_commit));
            }
        });
        relay
    }
}

fn pass_answers(mut server: TcpStream, mut client: TcpStream, loses_commit: &AtomicBool) {
    let mut buffer = vec![0; 65_536];
    while let Ok(count @ 1..) = server.read(&mut buffer) {
        let answers = &buffer[..count];
        let is_commit = answers.windows(7).any(|bytes| bytes == b"COMMIT\0");
        if is_commit && loses_commit.swap(false, Ordering::Relaxed) || client.write_all(answers).is_err() {
            break;
        }
    }
    // The client may be gone already.
    let _ = client.shutdown(Shutdown::Both);
}

#[test]
fn one_broker_uses_a_store_at_a_time() {
    let Some(trial) = Trial::server() else { return };
    let (first, second) = (trial.unconnected(), trial.unconnected());
    assert_eq!(first.reconnect().unwrap(), LastCommit::Gone);
    let refused = second.reconnect().unwrap_err();
    assert!(refused.to_string().contains("another broker uses this store"), "{refused}");
    write(&first, "a").unwrap();
    drop(first);
    reconnected(&second).unwrap();
    assert!(has(&second, "a"));
}

#[test]
fn a_commit_without_an_answer_is_found_again() {
    let Some(trial) = Trial::server() else { return };
    let relay = Relay::to(trial.host());
    let store = trial.unconnected_by(&relay.host);
    store.reconnect().unwrap();
    write(&store, "first").unwrap();
    store.begin().unwrap();
    store.apply(&put("cut")).unwrap();
    trial.cut();
    assert!(matches!(store.commit(), Err(StoreError::Unreachable(_))));
    assert_eq!(reconnected(&store).unwrap(), LastCommit::Gone);
    assert!(has(&store, "first") && !has(&store, "cut"));
    store.begin().unwrap();
    store.apply(&put("kept")).unwrap();
    relay.loses_commit.store(true, Ordering::Relaxed);
    assert!(matches!(store.commit(), Err(StoreError::Unreachable(_))));
    assert_eq!(reconnected(&store).unwrap(), LastCommit::Kept);
    assert!(has(&store, "kept"));
    write(&store, "last").unwrap();
    assert!(has(&store, "last"));
}

#[test]
fn a_store_that_another_broker_has_changed_is_given_up() {
    let Some(trial) = Trial::server() else { return };
    let (first, second) = (trial.unconnected(), trial.unconnected());
    first.reconnect().unwrap();
    write(&first, "a").unwrap();
    trial.cut();
    reconnected(&second).unwrap();
    write(&second, "b").unwrap();
    drop(second);
    let found = reconnected(&first);
    assert!(matches!(found, Err(StoreError::TakenOver)), "{found:?}");
}

#[tokio::test]
async fn a_lost_connection_delays_commits_and_queries_and_loses_none() {
    let Some(trial) = Trial::server() else { return };
    let database = Database::at(trial.location.clone(), Retention::default(), |_| true);
    database.reachable().await.unwrap();
    for round in 0..3 {
        assert_eq!(database.commit(put(&format!("before {round}"))).await.unwrap(), Committed::Done);
        trial.cut();
        let found: Option<Map> = database.get(&KEYS, &format!("before {round}")).await.unwrap();
        assert_eq!(
            found.and_then(|map| map.get("id").cloned()),
            Some(Value::from(format!("before {round}")))
        );
        assert_eq!(database.commit(put(&format!("after {round}"))).await.unwrap(), Committed::Done);
    }
    assert_eq!(database.find(Query::all(&KEYS, 99)).await.unwrap().total, 6);
    assert_eq!(database.outage(), None);
}

#[test]
fn the_bytes_of_documents_are_counted() {
    let Some(trial) = Trial::server() else { return };
    let store = trial.unconnected();
    store.reconnect().unwrap();
    let apply = |change: &dyn Fn(&mut Transaction)| {
        let mut transaction = Transaction::new();
        change(&mut transaction);
        store.begin().unwrap();
        store.apply(&transaction).unwrap();
        store.commit().unwrap();
        store.used_bytes().unwrap()
    };
    let document = |id: &str, text: &str| -> Map { [("id", id), ("text", text)].into_iter().collect() };
    let small = apply(&|transaction| transaction.put(&KEYS, document("a", "x")));
    let stored = br#"{"$sum":"0123456789abcdef","id":"a","text":"x"}"#;
    assert_eq!(small, 1_024 + stored.len() as u64);
    assert_eq!(apply(&|transaction| transaction.put(&KEYS, document("a", "xyz"))), small + 2);
    assert_eq!(apply(&|transaction| transaction.keep(&KEYS, document("a", "longer"))), small + 2);
    assert_eq!(apply(&|transaction| transaction.insert(&KEYS, document("a", "longer"))), small + 2);
    let large = apply(&|transaction| transaction.put(&KEYS, document("b", &"x".repeat(100_000))));
    assert!(large > small + 1_024 + 400, "{large}");
    // The value is shared.
    let twice = apply(&|transaction| transaction.put(&KEYS, document("c", &"x".repeat(100_000))));
    assert!(twice < large + 1_200, "{twice}");
    let refused = apply(&|transaction| {
        transaction.put(&KEYS, document("d", "x"));
        transaction.insert(&KEYS, document("a", "x"));
    });
    assert_eq!(refused, twice);
    store.reconnect().unwrap();
    assert_eq!(store.used_bytes().unwrap(), twice);
    let none =
        apply(&|transaction| ["a", "b", "c", "gone"].iter().for_each(|id| transaction.delete(&KEYS, id)));
    assert_eq!(none, 0);
}
