//! The store of the automation: its documents, in a file and on a server, and its check.

use imori_automation::value::{Map, Value};
use imori_engine::for_tests::{
    Committed, Condition, Database, EXECUTIONS, KEYS, Location, Parts, Query, SNAPSHOTS, StoreError,
    StoreFault, StoreMarks, StoreState, Transaction, found_store, judge_store,
};
use imori_engine::limits::PART_BYTES_MAX;
use imori_engine::{Finding, Retention};
use rusqlite::Connection;

use crate::trial::{Trial, execute};

fn open(location: &Location) -> Database {
    Database::at(location.clone(), Retention::default(), |_| true)
}

fn execution(id: &str, status: &str, start: i64) -> Map {
    [("id", Value::from(id)), ("status", status.into()), ("start_timestamp", start.into())]
        .into_iter()
        .collect()
}

async fn ids(database: &Database, query: Query) -> (Vec<String>, usize) {
    let rows = database.find(query).await.unwrap();
    let id = |document: &Map| document.get("id").and_then(Value::as_str).unwrap().to_owned();
    (rows.documents.iter().map(id).collect(), rows.total)
}

#[tokio::test]
async fn documents_survive_and_are_found_by_their_columns() {
    for trial in Trial::all() {
        documents_survive_and_are_found_by_their_columns_in(&trial).await;
    }
}

async fn documents_survive_and_are_found_by_their_columns_in(trial: &Trial) {
    let database = open(&trial.location);
    assert!(database.get(&EXECUTIONS, "a").await.unwrap().is_none());
    if let Location::File(path) = &trial.location {
        assert!(!path.exists(), "reading makes no file");
    }
    let mut transaction = Transaction::new();
    for (id, status, start) in [("a", "running", 3), ("b", "succeeded", 2), ("c", "running", 1)] {
        transaction.put(&EXECUTIONS, execution(id, status, start));
    }
    assert_eq!(database.commit(transaction).await.unwrap(), Committed::Done);
    drop(database);
    let database = open(&trial.location);
    let running = Condition::Equal("status", "running".into());
    let query = Query::all(&EXECUTIONS, 10).with(running.clone()).by("start_timestamp", true);
    assert_eq!(ids(&database, query).await, (vec![String::from("a"), String::from("c")], 2));
    let query = Query::all(&EXECUTIONS, 1).with(running).by("start_timestamp", false);
    assert_eq!(ids(&database, query).await, (vec![String::from("c")], 2));
    let query = Query::all(&EXECUTIONS, 9).with(Condition::StartsWith("status", String::from("succ")));
    assert_eq!(ids(&database, query).await.0, ["b"]);
}

#[tokio::test]
async fn a_void_transaction_changes_nothing() {
    for trial in Trial::all() {
        a_void_transaction_changes_nothing_in(&trial).await;
    }
}

async fn a_void_transaction_changes_nothing_in(trial: &Trial) {
    let database = open(&trial.location);
    let mut first = Transaction::new();
    first.insert(&EXECUTIONS, execution("a", "requested", 1));
    assert_eq!(database.commit(first).await.unwrap(), Committed::Done);
    let mut again = Transaction::new();
    again.put(&EXECUTIONS, execution("b", "requested", 1));
    again.insert(&EXECUTIONS, execution("a", "other", 1));
    assert_eq!(database.commit(again).await.unwrap(), Committed::Void);
    assert!(database.get(&EXECUTIONS, "b").await.unwrap().is_none());
    let mut late = Transaction::new();
    late.require(&EXECUTIONS, "a", "status", vec!["running".into()]);
    late.put(&EXECUTIONS, execution("a", "succeeded", 1));
    assert_eq!(database.commit(late).await.unwrap(), Committed::Void);
    let kept = database.get(&EXECUTIONS, "a").await.unwrap().unwrap();
    assert_eq!(kept.get("status"), Some(&Value::from("requested")));
}

#[tokio::test]
async fn large_parts_are_read_back_where_they_are_asked_for() {
    for trial in Trial::all() {
        large_parts_are_read_back_where_they_are_asked_for_in(&trial).await;
    }
}

async fn large_parts_are_read_back_where_they_are_asked_for_in(trial: &Trial) {
    let database = open(&trial.location);
    let mut document = execution("a", "succeeded", 1);
    let lines: Vec<Value> = (0..20_000).map(|number| Value::from(format!("line {number}"))).collect();
    document.insert("result", lines);
    document.insert("parameters", Map::from_iter([("cmd", "x".repeat(PART_BYTES_MAX))]));
    document.insert("log", Vec::new());
    let mut transaction = Transaction::new();
    transaction.put(&EXECUTIONS, document.clone());
    database.commit(transaction).await.unwrap();
    let found = database.get(&EXECUTIONS, "a").await.unwrap().unwrap();
    assert_eq!(found, document);
    assert!(found.iter().eq(document.iter()), "the keys keep their order");
    for (parts, expected) in [
        (Parts::All, &["id", "status", "start_timestamp", "result", "parameters", "log"][..]),
        (
            Parts::Without(vec![String::from("result")]),
            &["id", "status", "start_timestamp", "parameters", "log"],
        ),
        (Parts::Only(vec![String::from("result")]), &["id", "status", "start_timestamp", "result", "log"]),
    ] {
        let rows = database.find(Query::all(&EXECUTIONS, 9).reading(parts)).await.unwrap();
        let keys: Vec<&str> = rows.documents[0].iter().map(|(key, _)| key).collect();
        assert_eq!(keys, expected);
    }
}

#[tokio::test]
async fn a_store_of_the_first_format_is_taken_over() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let old = Connection::open(&path).unwrap();
    old.execute_batch(
        "CREATE TABLE keys (id TEXT PRIMARY KEY, scope, user, name, expire_timestamp, body TEXT NOT NULL) WITHOUT ROWID;
         INSERT INTO keys VALUES ('k', 'system', '', 'k', NULL, '{\"id\":\"k\"}');
         PRAGMA user_version = 1;",
    )
    .unwrap();
    drop(old);
    let database = open(&Location::File(path.clone()));
    assert!(database.get(&KEYS, "k").await.unwrap().is_some());
    let mut transaction = Transaction::new();
    transaction.put(&EXECUTIONS, execution("a", "succeeded", 1));
    assert_eq!(database.commit(transaction).await.unwrap(), Committed::Done);
    drop(database);
    let mode: i64 =
        Connection::open(&path).unwrap().query_row("PRAGMA auto_vacuum", [], |row| row.get(0)).unwrap();
    assert_eq!(mode, 2, "the file can shrink");
}

#[tokio::test]
async fn a_damaged_document_is_not_used_and_one_without_a_checksum_is() {
    for trial in Trial::all() {
        let database = open(&trial.location);
        let mut transaction = Transaction::new();
        for id in ["flipped", "old", "sound"] {
            transaction.put(&EXECUTIONS, execution(id, "requested", 1));
        }
        assert_eq!(database.commit(transaction).await.unwrap(), Committed::Done);
        drop(database);
        let flip =
            "UPDATE executions SET body = replace(body, 'requested', 'requestee') WHERE id = 'flipped'";
        let old = r#"{"id":"old","status":"requested"}"#;
        let set_old = format!("UPDATE executions SET body = '{old}' WHERE id = 'old'");
        let change = || {
            let writing = trial.writing();
            execute(&*writing, flip);
            execute(&*writing, &set_old);
        };
        std::thread::scope(|scope| scope.spawn(change).join()).unwrap();
        let database = open(&trial.location);
        assert!(matches!(database.get(&EXECUTIONS, "flipped").await, Err(StoreError::Damaged)));
        for id in ["old", "sound"] {
            let found = database.get(&EXECUTIONS, id).await.unwrap().unwrap();
            assert_eq!(found.get("status"), Some(&Value::from("requested")), "{id}");
            assert_eq!(found.get("$sum"), None);
        }
        drop(database);
        let found = trial.findings();
        let objects: Vec<&str> = found.iter().map(|finding| finding.object.as_str()).collect();
        assert_eq!(objects, ["document `flipped` of `executions`"]);
        assert!(found[0].problem.contains("checksum"), "{found:?}");
    }
}

#[test]
fn a_store_is_used_only_if_the_definitions_know_it() {
    let marks = |current: Option<&str>, next: Option<&str>| StoreMarks {
        current: current.map(str::to_owned),
        next: next.map(str::to_owned),
    };
    let marked = |mark: &str| StoreState::Marked(String::from(mark));
    for (known, found, expected) in [
        (marks(None, None), StoreState::Absent, Ok(())),
        (marks(None, None), StoreState::Unmarked, Ok(())),
        (marks(None, Some("a")), StoreState::Unmarked, Ok(())),
        (marks(None, Some("a")), StoreState::Absent, Err(StoreFault::Missing)),
        (marks(None, Some("a")), marked("a"), Ok(())),
        (marks(None, None), marked("a"), Err(StoreFault::Unknown)),
        (marks(Some("a"), None), marked("a"), Ok(())),
        (marks(Some("a"), Some("b")), marked("b"), Ok(())),
        (marks(Some("a"), Some("b")), marked("a"), Ok(())),
        (marks(Some("b"), None), marked("a"), Err(StoreFault::Other)),
        (marks(Some("a"), Some("b")), marked("c"), Err(StoreFault::Other)),
        (marks(Some("a"), None), StoreState::Absent, Err(StoreFault::Missing)),
        (marks(Some("a"), None), StoreState::Unmarked, Err(StoreFault::Unmarked)),
    ] {
        assert_eq!(judge_store(&known, &found), expected, "{known:?} {found:?}");
    }
}

#[tokio::test]
async fn looking_for_a_store_makes_none() {
    for trial in Trial::all() {
        let location = trial.location.clone();
        let look = || {
            tokio::task::spawn_blocking({
                let location = location.clone();
                move || found_store(&location)
            })
        };
        let none = if trial.is_file() { StoreState::Absent } else { StoreState::Unmarked };
        assert_eq!(look().await.unwrap().unwrap(), none);
        let database = open(&location);
        let mut transaction = Transaction::new();
        transaction.put(&KEYS, [("id", "k")].into_iter().collect());
        database.commit(transaction).await.unwrap();
        assert_eq!(look().await.unwrap().unwrap(), StoreState::Unmarked);
    }
}

#[tokio::test]
async fn a_store_of_another_format_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    Connection::open(&path).unwrap().execute_batch("PRAGMA user_version = 7; CREATE TABLE t (a)").unwrap();
    let error = open(&Location::File(path)).get(&EXECUTIONS, "a").await.unwrap_err();
    assert!(error.to_string().starts_with("the automation's store has format 7"), "{error}");
}

#[tokio::test]
async fn values_of_all_kinds_are_compared_alike() {
    for trial in Trial::all() {
        let database = open(&trial.location);
        let mut transaction = Transaction::new();
        let values: [Value; 12] = [
            Value::Null,
            true.into(),
            (-3).into(),
            2.5.into(),
            10.into(),
            "".into(),
            "10".into(),
            "Z".into(),
            "a".into(),
            "a\0b".into(),
            "\u{1}".into(),
            "é".into(),
        ];
        for (index, value) in values.iter().enumerate() {
            let id = Value::from(format!("{index:02}"));
            transaction.put(
                &EXECUTIONS,
                [("id", id), ("user", "x".into()), ("rule", value.clone())].into_iter().collect(),
            );
        }
        assert_eq!(database.commit(transaction).await.unwrap(), Committed::Done);
        let all = || Query::all(&EXECUTIONS, 99);
        let ascending = ids(&database, all().by("rule", false)).await.0;
        assert_eq!(ascending, ["00", "02", "01", "03", "04", "05", "10", "06", "07", "08", "09", "11"]);
        let descending: Vec<String> = ascending.iter().rev().cloned().collect();
        assert_eq!(ids(&database, all().by("rule", true)).await.0, descending);
        for (condition, expected) in [
            (Condition::Equal("rule", "a\0b".into()), &["09"][..]),
            (Condition::Equal("rule", "".into()), &["05"]),
            (Condition::Equal("rule", 1.into()), &["01"]),
            (Condition::Equal("rule", true.into()), &["01"]),
            (Condition::Equal("rule", "1".into()), &[]),
            (Condition::After("rule", "Z".into()), &["08", "09", "11"]),
            (Condition::Before("rule", "".into()), &["01", "02", "03", "04"]),
            (Condition::StartsWith("rule", String::from("a")), &["08", "09"]),
            (Condition::Absent("rule"), &["00"]),
            (Condition::OneOf("rule", vec!["Z".into(), 10.into(), "no".into()]), &["04", "07"]),
            (Condition::OneOf("rule", Vec::new()), &[]),
        ] {
            assert_eq!(ids(&database, all().with(condition.clone())).await.0, expected, "{condition:?}");
        }
    }
}

#[tokio::test]
async fn a_void_transaction_leaves_the_others_of_its_group() {
    for trial in Trial::all() {
        let database = open(&trial.location);
        // The first opens the store, so that the others wait and share a commit.
        let mut pending = Vec::new();
        for number in 0..200 {
            let mut transaction = Transaction::new();
            let id = format!("{:03}", number / 2);
            transaction.keep(
                &SNAPSHOTS,
                [("id", id.as_str()), ("text", &"x".repeat(PART_BYTES_MAX + number))].into_iter().collect(),
            );
            transaction.insert(&EXECUTIONS, execution(&id, "requested", 1));
            transaction.put(&KEYS, [("id", format!("{number}"))].into_iter().collect());
            pending.push(database.submit(transaction).unwrap());
        }
        for (number, pending) in pending.into_iter().enumerate() {
            let expected = if number % 2 == 0 { Committed::Done } else { Committed::Void };
            assert_eq!(pending.committed().await.unwrap(), expected, "{number}");
        }
        assert_eq!(database.find(Query::all(&KEYS, 1_000)).await.unwrap().total, 100);
        let kept = database.get(&SNAPSHOTS, "007").await.unwrap().unwrap();
        assert_eq!(kept.get("text").and_then(Value::as_str).map(str::len), Some(PART_BYTES_MAX + 14));
        let mut again = Transaction::new();
        again.keep(&SNAPSHOTS, [("id", "007"), ("text", &"y".repeat(PART_BYTES_MAX))].into_iter().collect());
        again.keep(&SNAPSHOTS, [("id", "new"), ("text", &"z".repeat(PART_BYTES_MAX))].into_iter().collect());
        assert_eq!(database.commit(again).await.unwrap(), Committed::Done);
        assert_eq!(database.get(&SNAPSHOTS, "007").await.unwrap().unwrap(), kept);
        drop(database);
        assert_eq!(trial.findings(), []);
    }
}

#[tokio::test]
async fn a_transaction_that_the_store_refuses_leaves_the_others_of_its_group() {
    for trial in Trial::all() {
        let database = open(&trial.location);
        let mut sound = Transaction::new();
        sound.put(&KEYS, [("id", "sound")].into_iter().collect());
        let mut wrong = Transaction::new();
        wrong.put(&KEYS, [("id", "half")].into_iter().collect());
        // A document without an id.
        wrong.put(&KEYS, Map::new());
        let pending = [sound, wrong].map(|transaction| database.submit(transaction).unwrap());
        let [sound, wrong] = pending;
        assert_eq!(sound.committed().await.unwrap(), Committed::Done);
        assert!(matches!(wrong.committed().await, Err(StoreError::Sql(_))));
        assert_eq!(ids(&database, Query::all(&KEYS, 9)).await.0, ["sound"]);
    }
}

#[test]
fn each_problem_is_named() {
    Trial::all().iter().for_each(each_problem_is_named_in);
}

fn each_problem_is_named_in(trial: &Trial) {
    assert_eq!(trial.findings(), []);
    let writing = &*trial.writing();
    for (id, status, body) in [
        ("sound", "succeeded", r#""status":"succeeded","end_timestamp":"x""#),
        ("odd", "wrong", r#""status":"wrong""#),
        ("endless", "succeeded", r#""status":"succeeded""#),
        ("orphan", "requested", r#""status":"requested","parent":"gone""#),
        ("left", "requested", r#""status":"requested","parent":"sound""#),
        ("led", "paused", r#""status":"paused","runner":"orquesta""#),
        ("lost", "paused", r#""status":"paused","runner":"orquesta""#),
        ("hollow", "succeeded", r#""status":"succeeded","end_timestamp":"x","$large":{"result":"h"}"#),
    ] {
        execute(
            writing,
            &format!("INSERT INTO executions (id, status, body) VALUES ('{id}', '{status}', '{{{body}}}')"),
        );
    }
    execute(writing, "INSERT INTO workflows (id, body) VALUES ('led', '{}'), ('gone', '{}')");
    execute(writing, "INSERT INTO keys (id, body) VALUES ('k', 'no json')");
    let bytes = if trial.is_file() { "x'10'" } else { "'\\x10'" };
    execute(writing, &format!("INSERT INTO large_values VALUES ('unused', 1, {bytes})"));
    execute(writing, &format!("INSERT INTO large_values VALUES ('torn', 1, {bytes})"));
    execute(writing, "INSERT INTO large_uses VALUES ('keys', 'k', 'value', 'torn')");
    let found = trial.findings();
    for (object, problem) in [
        ("execution `odd`", "`wrong` is unknown"),
        ("execution `endless`", "no `end_timestamp`"),
        ("execution `orphan`", "`gone` is missing"),
        ("execution `left`", "its parent `sound` has"),
        ("execution `lost`", "the state of its workflow is missing"),
        ("workflow `gone`", "its execution is missing"),
        ("document `hollow` of `executions`", "`h`, which is missing"),
        ("document `k` of `keys`", "no JSON object"),
        ("large value `unused`", "no document uses it"),
        ("large value `torn`", "it is damaged"),
    ] {
        let is_it = |finding: &&Finding| finding.object == object && finding.problem.contains(problem);
        assert!(found.iter().any(|finding| is_it(&finding)), "{object} {problem}: {found:?}");
    }
    let is_sound = |finding: &Finding| ["`sound`", "`led`"].iter().any(|id| finding.object.contains(id));
    assert!(!found.iter().any(is_sound), "{found:?}");
}
