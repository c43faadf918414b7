//! A document as it is stored: large parts lie beside the body, compressed, and once for all documents that have them.

use imori_automation::value::{Map, Value};
use ring::digest::{SHA256, digest};

use super::error::StoreError;
use crate::limits::PART_BYTES_MAX;

/// The key of a stored body that has the hash of each part that lies beside it.
pub(crate) const REFERENCES: &str = "$large";

/// What a stored body begins with: the checksum of the rest stands behind it.
const SEAL: &str = r#"{"$sum":""#;

/// The key of the checksum.
const SUM: &str = "$sum";

/// What stands between the checksum and the rest.
const SEAL_END: &str = r#"","#;

/// Letters of a checksum.
const SUM_LENGTH: usize = 16;

/// A document as it is stored: its body, and the parts that lie beside it.
#[derive(Debug)]
pub(crate) struct Split {
    /// The body as JSON, whose first key is the checksum of the others.
    pub(crate) body: String,
    /// The parts that lie beside it.
    pub(crate) parts: Vec<Part>,
}

/// A part of a document that lies beside its body.
#[derive(Debug)]
pub(crate) struct Part {
    /// Its key in the document.
    pub(crate) name: String,
    /// The hash of its text.
    pub(crate) hash: String,
    /// The value as JSON.
    pub(crate) text: String,
}

impl Split {
    /// Splits a document.
    pub(crate) fn of(document: &Map) -> Result<Split, StoreError> {
        let body = serde_json::to_string(document).map_err(|_| StoreError::Damaged)?;
        if body.len() <= PART_BYTES_MAX {
            return Ok(Split { body: sealed(&body), parts: Vec::new() });
        }
        let mut small = Map::new();
        let mut references = Map::new();
        let mut parts = Vec::new();
        for (name, value) in document.iter() {
            let text = value.to_json();
            if text.len() <= PART_BYTES_MAX {
                small.insert(name, value.clone());
                continue;
            }
            let hash = hash(text.as_bytes());
            // The key keeps its place in the document.
            small.insert(name, Value::Null);
            references.insert(name, hash.as_str());
            parts.push(Part { name: name.to_owned(), hash, text });
        }
        if !references.is_empty() {
            small.insert(REFERENCES, references);
        }
        let body = serde_json::to_string(&small).map_err(|_| StoreError::Damaged)?;
        Ok(Split { body: sealed(&body), parts })
    }
}

/// A body with its checksum.
fn sealed(body: &str) -> String {
    match body.strip_prefix('{').filter(|rest| rest.starts_with('"')) {
        Some(rest) => format!("{SEAL}{}{SEAL_END}{rest}", sum(rest.as_bytes())),
        // An object without keys has nothing that could be damaged.
        None => body.to_owned(),
    }
}

/// Reads a stored body, if its checksum is right. One that was stored by an earlier version has none.
///
/// # Errors
/// [`StoreError::Damaged`].
pub(crate) fn unsealed(body: &[u8]) -> Result<Map, StoreError> {
    if let Some(sealed) = body.strip_prefix(SEAL.as_bytes()) {
        let (expected, rest) = sealed.split_at_checked(SUM_LENGTH).ok_or(StoreError::Damaged)?;
        let rest = rest.strip_prefix(SEAL_END.as_bytes()).ok_or(StoreError::Damaged)?;
        if sum(rest).as_bytes() != expected {
            return Err(StoreError::Damaged);
        }
    }
    let Ok(Value::Map(mut document)) = Value::from_json(body) else { return Err(StoreError::Damaged) };
    document.remove(SUM);
    Ok(document)
}

fn sum(bytes: &[u8]) -> String {
    let mut sum = hash(bytes);
    sum.truncate(SUM_LENGTH);
    sum
}

impl Part {
    /// The bytes of the text.
    pub(crate) fn length(&self) -> i64 {
        i64::try_from(self.text.len()).unwrap_or(i64::MAX)
    }

    /// The text as it is stored.
    pub(crate) fn compressed(&self) -> Vec<u8> {
        lz4_flex::block::compress(self.text.as_bytes())
    }
}

/// The hash by which a large value is found.
pub(crate) fn hash(bytes: &[u8]) -> String {
    digest(&SHA256, bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}
