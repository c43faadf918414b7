//! The claims of a verified token: user, scopes and expiry.

use std::time::Duration;

use serde_json::{Map, Value};

use super::jwt_error::JwtError;
use crate::config::Jwt;
use crate::limits::JWT_USER_BYTES_MAX;

/// Claims that passed the checks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Claims {
    /// The user.
    pub(super) user: String,
    /// Scopes as written in the token.
    pub(super) scopes: Vec<String>,
    /// Expiry with leeway, since the epoch.
    pub(super) ends: Duration,
}

impl Claims {
    /// Checks claims at a time since the epoch (RFC 7519, 4.1; RFC 9068, 4).
    pub(super) fn of(claims: &Map<String, Value>, terms: &Jwt, now: Duration) -> Result<Claims, JwtError> {
        if claims.get("iss").and_then(Value::as_str) != terms.issuer.as_deref() {
            return Err(JwtError::Issuer);
        }
        let is_ours = |audience: &str| Some(audience) == terms.audience.as_deref();
        if !texts(claims.get("aud")).iter().any(|audience| is_ours(audience)) {
            return Err(JwtError::Audience);
        }
        let leeway = terms.leeway_s.duration();
        let ends = seconds(claims, "exp")?.ok_or(JwtError::Claim("exp"))?;
        if ends.saturating_add(leeway) <= now {
            return Err(JwtError::Expired);
        }
        if seconds(claims, "nbf")?.is_some_and(|begins| begins > now.saturating_add(leeway)) {
            return Err(JwtError::NotYet);
        }
        let named = claims.get(&terms.user_claim).and_then(Value::as_str).unwrap_or_default();
        let is_name =
            !named.is_empty() && named.len() <= JWT_USER_BYTES_MAX && !named.contains(char::is_control);
        if !is_name {
            return Err(JwtError::Claim("that `jwt.user_claim` names"));
        }
        let scopes = texts(claims.get(&terms.scope_claim));
        let scopes = scopes.into_iter().flat_map(|text| text.split(' '));
        let scopes = scopes.filter(|scope| !scope.is_empty()).map(String::from).collect();
        Ok(Claims { user: named.to_owned(), scopes, ends: ends.saturating_add(leeway) })
    }
}

/// A string, or all strings of an array.
fn texts(value: Option<&Value>) -> Vec<&str> {
    match value {
        Some(Value::String(text)) => vec![text],
        Some(Value::Array(values)) => values.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// RFC 7519, 2: seconds since the epoch, perhaps with a fraction. A value of another type is an error, unlike a
/// missing claim.
fn seconds(claims: &Map<String, Value>, name: &'static str) -> Result<Option<Duration>, JwtError> {
    let Some(value) = claims.get(name) else { return Ok(None) };
    let seconds = value.as_f64().ok_or(JwtError::Claim(name))?;
    Duration::try_from_secs_f64(seconds).map(Some).map_err(|_| JwtError::Claim(name))
}
