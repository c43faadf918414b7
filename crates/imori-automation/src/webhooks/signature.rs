//! The check of a request against the secrets of its sender.

use std::fmt;

use super::headers::Headers;
use super::scheme::{Claim, Refusal, Scheme, only};
use super::secret::{Secret, Signing};
use crate::times::Timestamp;

/// A request whose sender is proved, or need not be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// What the scheme has to tell this delivery apart from others of the sender: the id of GitHub's delivery or of a
    /// message of Standard Webhooks, or Slack's timestamp and signature.
    pub key: Option<String>,
}

/// The check of one request against the secrets of its sender, while its body comes.
///
/// Several secrets are for rotation: all are tried, so that the time does not tell which fits. Without secrets only an
/// `Unsigned` request is accepted.
pub struct Proof {
    signings: Vec<Signing>,
    signatures: Vec<Vec<u8>>,
    after: Vec<u8>,
    key: Option<String>,
    /// The headers alone prove the sender.
    is_proved: bool,
}

impl Proof {
    /// Begins with what the headers claim.
    ///
    /// # Errors
    /// The proof is absent, unreadable or too old, or a secret that the request should have is wrong.
    pub fn begin(
        scheme: &Scheme,
        secrets: &[Secret],
        headers: &Headers,
        now: Timestamp,
    ) -> Result<Proof, Refusal> {
        let proved = || Proof {
            signings: Vec::new(),
            signatures: Vec::new(),
            after: Vec::new(),
            key: None,
            is_proved: true,
        };
        if let Scheme::Token { header, prefix } = scheme {
            let token = only(headers, header)?.strip_prefix(prefix.as_str()).ok_or(Refusal::Malformed)?;
            let is_one = secrets.iter().fold(false, |is_one, secret| is_one | secret.is(token.as_bytes()));
            return is_one.then(proved).ok_or(Refusal::Mismatch);
        }
        let Some(Claim { algorithm, signatures, before, after, key }) = scheme.claim(headers, now)? else {
            return Ok(proved());
        };
        let mut signings: Vec<Signing> = secrets.iter().map(|secret| secret.begin(algorithm)).collect();
        signings.iter_mut().for_each(|signing| signing.update(&before));
        Ok(Proof { signings, signatures, after, key, is_proved: false })
    }

    /// Takes the next bytes of the body, unchanged.
    pub fn update(&mut self, bytes: &[u8]) {
        self.signings.iter_mut().for_each(|signing| signing.update(bytes));
    }

    /// The verdict, once the whole body has come.
    ///
    /// # Errors
    /// No secret fits.
    pub fn finish(mut self) -> Result<Verified, Refusal> {
        let after = std::mem::take(&mut self.after);
        self.update(&after);
        let signatures = &self.signatures;
        let is_signed = self
            .signings
            .into_iter()
            .fold(false, |is_signed, signing| is_signed | signing.matches(signatures));
        (self.is_proved || is_signed).then_some(Verified { key: self.key }).ok_or(Refusal::Mismatch)
    }
}

impl fmt::Debug for Proof {
    /// Keeps what is computed by secrets out of logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proof").finish_non_exhaustive()
    }
}
