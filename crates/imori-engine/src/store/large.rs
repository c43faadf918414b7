//! Large values of documents that are read: put back into their documents, and checked.

use std::ops::ControlFlow;

use imori_automation::value::{Map, Value};

use super::parts::Parts;
use crate::limits::{LARGE_VALUE_BYTES_MAX, LARGE_VALUES_CHECKED};
use crate::sql::{Field, REFERENCES, StoreConnection, StoreError, hash};

/// Puts the parts that `wanted` has back into a stored body; the others are left out.
pub(super) fn join(
    connection: &dyn StoreConnection,
    body: &mut Map,
    wanted: &Parts,
) -> Result<(), StoreError> {
    let Some(Value::Map(references)) = body.remove(REFERENCES) else { return Ok(()) };
    for (name, hash) in references.iter() {
        if !wanted.has(name) {
            body.remove(name);
            continue;
        }
        let value = read(connection, hash.as_str().unwrap_or_default())?;
        body.insert(name, value);
    }
    Ok(())
}

fn read(connection: &dyn StoreConnection, hash: &str) -> Result<Value, StoreError> {
    let mut found = Err(StoreError::Damaged);
    let sql = "SELECT length, bytes FROM large_values WHERE hash = $1";
    connection.query(sql, &[Field::Text(hash)], &mut |row| {
        let length = usize::try_from(row.number(0)?).unwrap_or(usize::MAX);
        if length <= LARGE_VALUE_BYTES_MAX {
            let text = lz4_flex::block::decompress(row.bytes(1)?, length).ok();
            found = text.and_then(|text| Value::from_json(&text).ok()).ok_or(StoreError::Damaged);
        }
        Ok(ControlFlow::Break(()))
    })?;
    found
}

/// The parts of a stored body that lie beside it, each with its hash.
pub(super) fn references(body: &Map) -> impl Iterator<Item = (&str, &str)> {
    let references = body.get(REFERENCES).and_then(Value::as_map);
    references.into_iter().flat_map(Map::iter).map(|(part, hash)| (part, hash.as_str().unwrap_or_default()))
}

/// The large values that are damaged or that no document uses, each with what is wrong.
pub(super) fn check_large_values(
    connection: &dyn StoreConnection,
) -> Result<Vec<(String, String)>, StoreError> {
    let sql = format!(
        "SELECT hash, length, bytes, (SELECT COUNT(*) FROM large_uses WHERE large_uses.hash = large_values.hash) \
         FROM large_values WHERE hash > $1 ORDER BY hash LIMIT {LARGE_VALUES_CHECKED}"
    );
    let mut found = Vec::new();
    let mut last = String::new();
    loop {
        let mut next = None;
        connection.query(&sql, &[Field::Text(&last)], &mut |row| {
            let stored = row.text(0)?.unwrap_or_default().into_owned();
            let length = usize::try_from(row.number(1)?).unwrap_or(usize::MAX).min(LARGE_VALUE_BYTES_MAX);
            if row.number(3)? == 0 {
                found.push((stored.clone(), String::from("no document uses it")));
            } else {
                let text = lz4_flex::block::decompress(row.bytes(2)?, length).ok();
                if text.is_none_or(|text| hash(&text) != stored) {
                    found.push((stored.clone(), String::from("it is damaged")));
                }
            }
            next = Some(stored);
            Ok(ControlFlow::Continue(()))
        })?;
        match next {
            Some(hash) => last = hash,
            None => return Ok(found),
        }
    }
}
