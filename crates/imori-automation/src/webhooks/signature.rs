//! The check of a request against the secrets of its sender.

use super::headers::Headers;
use super::scheme::{Refusal, Scheme, only};
use super::secret::Secret;
use crate::times::Timestamp;

/// A request whose sender is proved, or need not be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// What the scheme has to tell this delivery apart from others of the sender: the id of GitHub's delivery or of a
    /// message of Standard Webhooks, or Slack's timestamp and signature.
    pub key: Option<String>,
}

/// Verifies that one of `secrets` signed the request with this unchanged body, or that the request has one of them.
/// Several secrets are for rotation: all are tried, so that the time does not tell which fits. Without `secrets` only
/// an `Unsigned` request is accepted.
///
/// # Errors
/// The proof is absent, unreadable, too old, or wrong.
pub fn verify(
    scheme: &Scheme,
    secrets: &[Secret],
    headers: &Headers,
    body: &[u8],
    now: Timestamp,
) -> Result<Verified, Refusal> {
    if let Scheme::Token { header, prefix } = scheme {
        let token = only(headers, header)?.strip_prefix(prefix.as_str()).ok_or(Refusal::Malformed)?;
        let is_one = secrets.iter().fold(false, |is_one, secret| is_one | secret.is(token.as_bytes()));
        return is_one.then_some(Verified { key: None }).ok_or(Refusal::Mismatch);
    }
    let Some(claim) = scheme.claim(headers, body, now)? else { return Ok(Verified { key: None }) };
    let pairs =
        secrets.iter().flat_map(|secret| claim.signatures.iter().map(move |signature| (secret, signature)));
    let is_signed = pairs.fold(false, |is_signed, (secret, signature)| {
        is_signed | secret.has_signed(claim.algorithm, &claim.parts, signature)
    });
    is_signed.then_some(Verified { key: claim.key }).ok_or(Refusal::Mismatch)
}
