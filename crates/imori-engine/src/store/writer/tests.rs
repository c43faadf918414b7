use imori_automation::value::{Map, Value};

use super::super::database::Database;
use super::super::retention::Retention;
use super::super::trials::Trial;
use super::*;
use crate::sql::{Field, KEYS};

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
    let mut note = |_: &dyn crate::sql::Row| {
        is_there = true;
        Ok(std::ops::ControlFlow::Break(()))
    };
    store.query("SELECT 1 FROM keys WHERE id = $1", &[Field::Text(id)], &mut note).unwrap();
    is_there
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
    let mut pause = Pause::first();
    while second.reconnect().is_err() {
        std::thread::sleep(pause.next());
    }
    assert!(has(&second, "a"));
}

#[test]
fn a_commit_without_an_answer_is_found_again() {
    let Some(trial) = Trial::server() else { return };
    let store = trial.unconnected();
    store.reconnect().unwrap();
    write(&store, "first").unwrap();
    store.begin().unwrap();
    store.apply(&put("cut")).unwrap();
    trial.cut();
    assert!(matches!(store.commit(), Err(StoreError::Unreachable(_))));
    assert_eq!(store.reconnect().unwrap(), LastCommit::Gone);
    assert!(has(&store, "first") && !has(&store, "cut"));
    store.begin().unwrap();
    store.apply(&put("kept")).unwrap();
    store.commit_without_an_answer();
    assert_eq!(store.reconnect().unwrap(), LastCommit::Kept);
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
    let mut pause = Pause::first();
    while second.reconnect().is_err() {
        std::thread::sleep(pause.next());
    }
    write(&second, "b").unwrap();
    drop(second);
    loop {
        match first.reconnect() {
            Err(StoreError::Unreachable(_)) => std::thread::sleep(pause.next()),
            other => {
                assert!(matches!(other, Err(StoreError::TakenOver)), "{other:?}");
                break;
            }
        }
    }
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
    assert_eq!(database.find(super::super::query::Query::all(&KEYS, 99)).await.unwrap().total, 6);
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
    assert_eq!(small, 1_024 + br#"{"id":"a","text":"x"}"#.len() as u64);
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
