//! An issuer's keys: a JSON Web Key Set (RFC 7517, 5).

use serde::Deserialize;
use serde_json::Value;

use super::jwt_error::JwtError;
use super::key::{JsonKey, Key};
use crate::limits::JWT_KEYS_MAX;

/// Public keys.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct KeySet(Vec<Key>);

#[derive(Debug, Deserialize)]
struct JsonKeySet {
    keys: Vec<Value>,
}

impl KeySet {
    /// Parses a set. Skips keys that cannot verify tokens, as RFC 7517 requires.
    pub(super) fn read(json: &[u8]) -> Result<KeySet, String> {
        let set: JsonKeySet =
            serde_json::from_slice(json).map_err(|error| format!("they are no JSON Web Key Set: {error}"))?;
        let known = |key: Value| Key::of(&serde_json::from_value::<JsonKey>(key).ok()?).transpose();
        let keys = set.keys.into_iter().filter_map(known).take(JWT_KEYS_MAX + 1);
        let keys: Vec<Key> = keys.collect::<Result<_, _>>()?;
        match keys.len() {
            0 => Err(String::from("there is no public key among them that tokens can be verified by")),
            len if len > JWT_KEYS_MAX => Err(format!("there are more than {JWT_KEYS_MAX} of them")),
            _ => Ok(KeySet(keys)),
        }
    }

    /// The keys that may verify a token with this algorithm and key id; without a key id, all keys that fit.
    pub(super) fn for_token(&self, algorithm: &str, id: Option<&str>) -> Result<Vec<&Key>, JwtError> {
        let named: Vec<&Key> = self.0.iter().filter(|key| id.is_none() || key.id.as_deref() == id).collect();
        if named.is_empty() {
            return Err(JwtError::UnknownKey(id.unwrap_or_default().to_owned()));
        }
        let fitting: Vec<&Key> = named.into_iter().filter(|key| key.is_for(algorithm)).collect();
        if fitting.is_empty() {
            return Err(JwtError::Algorithm(algorithm.to_owned()));
        }
        Ok(fitting)
    }
}
