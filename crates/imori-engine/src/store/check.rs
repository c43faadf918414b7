//! A check of the store: damage, and executions that can never end.

use std::borrow::Cow;
use std::ops::ControlFlow;

use imori_automation::value::{Map, Value};

use super::large::{check_large_values, references};
use super::location::Location;
use crate::limits::{DOCUMENTS_CHECKED, PROBLEMS_MAX};
use crate::postgres::{Postgres, Role};
use crate::sql::{COLLECTIONS, Field, StoreConnection, StoreError, unsealed};
use crate::sqlite::Sqlite;

/// Something that is wrong in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What it is about, such as ``execution `ID` ``.
    pub object: String,
    /// What is wrong.
    pub problem: String,
}

/// Statuses in which an execution has not ended.
const OPEN: [&str; 9] =
    ["requested", "scheduled", "delayed", "running", "pausing", "paused", "resuming", "pending", "canceling"];

/// Looks for what is wrong in the store at this location; changes nothing. `is_final` tells the statuses after which nothing follows.
pub(crate) fn check(location: &Location, is_final: fn(&str) -> bool) -> Result<Vec<Finding>, StoreError> {
    let store: Box<dyn StoreConnection> = match location {
        Location::File(path) if !path.exists() => return Ok(Vec::new()),
        Location::File(path) => Box::new(Sqlite::reading(path)?),
        Location::Server(address) => {
            let store = Postgres::new(address, Role::Reader)?;
            if !store.has_store()? {
                return Ok(Vec::new());
            }
            Box::new(store)
        }
    };
    // One state, so that a broker that runs changes nothing meanwhile.
    store.begin_reading()?;
    let found = findings(&*store, is_final);
    store.roll_back();
    found
}

fn findings(store: &dyn StoreConnection, is_final: fn(&str) -> bool) -> Result<Vec<Finding>, StoreError> {
    let mut found = Vec::new();
    let mut find = |object: String, problem: String| {
        if found.len() < PROBLEMS_MAX {
            found.push(Finding { object, problem });
        }
    };
    if let Some(damage) = store.damage()? {
        find(String::from("store"), damage);
    }
    for (hash, problem) in check_large_values(store)? {
        find(format!("large value `{hash}`"), problem);
    }
    for collection in COLLECTIONS {
        let name = collection.name;
        let sql = format!("SELECT id, body FROM {name} WHERE id > $1 ORDER BY id LIMIT {DOCUMENTS_CHECKED}");
        let mut last = String::new();
        loop {
            let mut next = None;
            store.query(&sql, &[Field::Text(&last)], &mut |row| {
                let id = row.text(0)?.unwrap_or_default().into_owned();
                for (object, problem) in problems_of_document(store, (name, &id, row.bytes(1)?), is_final)? {
                    find(object, problem);
                }
                next = Some(id);
                Ok(ControlFlow::Continue(()))
            })?;
            match next {
                Some(id) => last = id,
                None => break,
            }
        }
    }
    Ok(found)
}

/// What is wrong with a document, which stands in this collection with this id and body.
fn problems_of_document(
    store: &dyn StoreConnection,
    (name, id, body): (&str, &str, &[u8]),
    is_final: fn(&str) -> bool,
) -> Result<Vec<(String, String)>, StoreError> {
    let object = format!("document `{id}` of `{name}`");
    let Ok(body) = unsealed(body) else {
        return Ok(vec![(
            object,
            String::from("it is damaged: its checksum is wrong, or it is no JSON object"),
        )]);
    };
    let mut problems = Vec::new();
    for (part, hash) in references(&body) {
        let mut is_there = false;
        store.query("SELECT 1 FROM large_values WHERE hash = $1", &[Field::Text(hash)], &mut |_| {
            is_there = true;
            Ok(ControlFlow::Break(()))
        })?;
        if !is_there {
            let problem = format!("its `{part}` is the large value `{hash}`, which is missing");
            problems.push((object.clone(), problem));
        }
    }
    if name == "workflows" && !exists(store, "executions", id)? {
        problems.push((format!("workflow `{id}`"), String::from("its execution is missing")));
    }
    if name == "executions" {
        let of_execution = problems_of(store, id, &body, is_final)?;
        problems.extend(of_execution.into_iter().map(|problem| (format!("execution `{id}`"), problem)));
    }
    Ok(problems)
}

/// What is wrong with an execution.
fn problems_of(
    store: &dyn StoreConnection,
    id: &str,
    body: &Map,
    is_final: fn(&str) -> bool,
) -> Result<Vec<String>, StoreError> {
    let text = |key: &str| body.get(key).and_then(Value::as_str).unwrap_or_default();
    let status = text("status");
    let (has_ended, has_end) = (is_final(status), body.contains_key("end_timestamp"));
    let mut problems = Vec::new();
    match (has_ended, has_end) {
        (false, _) if !OPEN.contains(&status) => problems.push(format!("its status `{status}` is unknown")),
        (true, false) => problems.push(format!("its status is `{status}`, and it has no `end_timestamp`")),
        (false, true) => problems.push(format!("its status is `{status}`, and it has an `end_timestamp`")),
        _ => {}
    }
    let is_led = matches!(status, "running" | "pausing" | "paused" | "canceling");
    if is_led && matches!(text("runner"), "orquesta" | "action-chain") && !exists(store, "workflows", id)? {
        problems.push(format!(
            "it is `{status}`, and the state of its workflow is missing, so that it cannot go on"
        ));
    }
    let parent = text("parent");
    if !parent.is_empty() {
        let mut above = None;
        let sql = "SELECT status FROM executions WHERE id = $1";
        store.query(sql, &[Field::Text(parent)], &mut |row| {
            above = Some(row.text(0)?.map_or_else(String::new, Cow::into_owned));
            Ok(ControlFlow::Break(()))
        })?;
        match above {
            None => problems.push(format!("its parent `{parent}` is missing")),
            Some(of_parent) if is_final(&of_parent) && !has_ended => {
                problems.push(format!("it has not ended, and its parent `{parent}` has"));
            }
            Some(_) => {}
        }
    }
    Ok(problems)
}

/// Whether a collection has a document of this id.
fn exists(store: &dyn StoreConnection, collection: &str, id: &str) -> Result<bool, StoreError> {
    let mut is_there = false;
    store.query(&format!("SELECT 1 FROM {collection} WHERE id = $1"), &[Field::Text(id)], &mut |_| {
        is_there = true;
        Ok(ControlFlow::Break(()))
    })?;
    Ok(is_there)
}
