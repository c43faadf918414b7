//! How senders prove that a request is theirs: what they sign, and where the signature is.

use data_encoding::{BASE64, HEXLOWER, HEXLOWER_PERMISSIVE};

use super::headers::Headers;
use super::secret::Algorithm;
use crate::limits::WEBHOOK_SIGNATURES_MAX;
use crate::times::Timestamp;

/// A way to prove who sent a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scheme {
    /// There is no proof: every client that may call the API may send.
    Unsigned,
    /// GitHub: `X-Hub-Signature-256`, and where that is absent and SHA-1 is allowed, `X-Hub-Signature`.
    GitHub {
        /// Whether a request with a signature by SHA-1 only is taken.
        is_sha1_allowed: bool,
    },
    /// Slack: `X-Slack-Signature` over timestamp and body.
    Slack {
        /// Seconds by which the timestamp may differ from the clock.
        window: i64,
    },
    /// Stripe: `Stripe-Signature`, which has the timestamp and several signatures.
    Stripe {
        /// Seconds by which the timestamp may differ from the clock.
        window: i64,
    },
    /// Standard Webhooks: `Webhook-Id`, `Webhook-Timestamp` and `Webhook-Signature`.
    Standard {
        /// Seconds by which the timestamp may differ from the clock.
        window: i64,
    },
    /// Any other HMAC in a header.
    Hmac(HmacScheme),
    /// The secret itself in a header.
    Token {
        /// The name of the header.
        header: String,
        /// What stands before the secret, as `Bearer `.
        prefix: String,
    },
}

/// An HMAC in a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HmacScheme {
    /// The name of the header with the signature.
    pub header: String,
    /// The hash.
    pub algorithm: Algorithm,
    /// How the signature is written.
    pub encoding: Encoding,
    /// What stands before the signature, as `sha256=`.
    pub prefix: String,
    /// The name of the header with the timestamp in seconds, and the seconds by which it may differ from the clock.
    pub timestamp: Option<(String, i64)>,
    /// What is signed, in order; `Timestamp` only where there is one.
    pub signed: Vec<Signed>,
}

/// The encoding of a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// Hexadecimal digits in any case.
    Hex,
    /// Base64 with padding.
    Base64,
}

/// A part of what is signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Signed {
    /// A fixed text.
    Text(String),
    /// The timestamp as the header has it.
    Timestamp,
    /// The body.
    Body,
}

/// Why a request is refused. It is for the log of the receiver; the sender learns only that it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// A header of the scheme is absent.
    Absent,
    /// A header of the scheme is repeated, which makes it unclear what is signed.
    Repeated,
    /// A header of the scheme cannot be read, or has too many signatures.
    Malformed,
    /// The timestamp is too far from the clock.
    Stale,
    /// No secret fits.
    Mismatch,
}

/// The signed parts of a request, as its headers name them.
pub(super) struct Claim {
    pub(super) algorithm: Algorithm,
    pub(super) signatures: Vec<Vec<u8>>,
    /// The signed bytes before the body.
    pub(super) before: Vec<u8>,
    /// The signed bytes after it.
    pub(super) after: Vec<u8>,
    /// What tells this delivery apart from others of the sender.
    pub(super) key: Option<String>,
}

impl Scheme {
    /// The header that holds the secret itself.
    pub(super) fn secret_header(&self) -> Option<&str> {
        match self {
            Scheme::Token { header, .. } => Some(header),
            _ => None,
        }
    }

    /// Whether a form of the sender has its JSON in a field `payload`.
    pub(super) fn has_payload_forms(&self) -> bool {
        matches!(self, Scheme::GitHub { .. } | Scheme::Slack { .. })
    }

    /// What the headers claim; `None` for the schemes without a signature.
    pub(super) fn claim(&self, headers: &Headers, now: Timestamp) -> Result<Option<Claim>, Refusal> {
        let claim = match self {
            Scheme::Unsigned | Scheme::Token { .. } => return Ok(None),
            Scheme::GitHub { is_sha1_allowed } => github(*is_sha1_allowed, headers),
            Scheme::Slack { window } => slack(*window, headers, now),
            Scheme::Stripe { window } => stripe(*window, headers, now),
            Scheme::Standard { window } => standard(*window, headers, now),
            Scheme::Hmac(scheme) => scheme.claim(headers, now),
        };
        claim.map(Some)
    }
}

fn github(is_sha1_allowed: bool, headers: &Headers) -> Result<Claim, Refusal> {
    let has_sha1_only = headers.value("X-Hub-Signature-256").is_none();
    let (header, prefix, algorithm) = if is_sha1_allowed && has_sha1_only {
        ("X-Hub-Signature", "sha1=", Algorithm::Sha1)
    } else {
        ("X-Hub-Signature-256", "sha256=", Algorithm::Sha256)
    };
    let signature = Encoding::Hex.read(only(headers, header)?, prefix)?;
    let key = headers.value("X-GitHub-Delivery").map(str::to_owned);
    Ok(Claim { algorithm, signatures: vec![signature], before: Vec::new(), after: Vec::new(), key })
}

fn slack(window: i64, headers: &Headers, now: Timestamp) -> Result<Claim, Refusal> {
    let timestamp = only(headers, "X-Slack-Request-Timestamp")?;
    is_within(timestamp, window, now)?;
    let signature = Encoding::Hex.read(only(headers, "X-Slack-Signature")?, "v0=")?;
    let key = Some(format!("{timestamp}:{}", HEXLOWER.encode(&signature)));
    let before = format!("v0:{timestamp}:").into_bytes();
    Ok(Claim { algorithm: Algorithm::Sha256, signatures: vec![signature], before, after: Vec::new(), key })
}

/// `t=1492774577,v1=…,v1=…,v0=…`; other elements than `t` and `v1` are of other versions.
fn stripe(window: i64, headers: &Headers, now: Timestamp) -> Result<Claim, Refusal> {
    let elements =
        only(headers, "Stripe-Signature")?.split(',').filter_map(|element| element.trim().split_once('='));
    let mut timestamps = elements.clone().filter(|(name, _)| *name == "t").map(|(_, value)| value);
    let timestamp = timestamps.next().filter(|_| timestamps.next().is_none()).ok_or(Refusal::Malformed)?;
    is_within(timestamp, window, now)?;
    let signatures =
        elements.filter(|(name, _)| *name == "v1").map(|(_, value)| Encoding::Hex.read(value, ""));
    let signatures = limited(signatures)?;
    Ok(Claim {
        algorithm: Algorithm::Sha256,
        signatures,
        before: format!("{timestamp}.").into_bytes(),
        after: Vec::new(),
        key: None,
    })
}

/// `v1,… v1,… v1a,…`; versions other than `v1` are asymmetric.
fn standard(window: i64, headers: &Headers, now: Timestamp) -> Result<Claim, Refusal> {
    let id = only(headers, "Webhook-Id")?;
    let timestamp = only(headers, "Webhook-Timestamp")?;
    is_within(timestamp, window, now)?;
    let signatures =
        only(headers, "Webhook-Signature")?.split(' ').filter_map(|element| element.strip_prefix("v1,"));
    let signatures = limited(signatures.map(|signature| Encoding::Base64.read(signature, "")))?;
    let before = format!("{id}.{timestamp}.").into_bytes();
    Ok(Claim {
        algorithm: Algorithm::Sha256,
        signatures,
        before,
        after: Vec::new(),
        key: Some(id.to_owned()),
    })
}

impl HmacScheme {
    fn claim(&self, headers: &Headers, now: Timestamp) -> Result<Claim, Refusal> {
        let mut timestamp = "";
        if let Some((header, window)) = &self.timestamp {
            timestamp = only(headers, header)?;
            is_within(timestamp, *window, now)?;
        }
        let signature = self.encoding.read(only(headers, &self.header)?, &self.prefix)?;
        let (mut before, mut after, mut is_after) = (Vec::new(), Vec::new(), false);
        for part in &self.signed {
            let text = match part {
                Signed::Text(text) => text.as_str(),
                Signed::Timestamp => timestamp,
                Signed::Body => {
                    is_after = true;
                    continue;
                }
            };
            if is_after { &mut after } else { &mut before }.extend_from_slice(text.as_bytes());
        }
        Ok(Claim { algorithm: self.algorithm, signatures: vec![signature], before, after, key: None })
    }
}

impl Encoding {
    fn read(self, text: &str, prefix: &str) -> Result<Vec<u8>, Refusal> {
        let text = text.strip_prefix(prefix).ok_or(Refusal::Malformed)?;
        let decoded = match self {
            Encoding::Hex => HEXLOWER_PERMISSIVE.decode(text.as_bytes()),
            Encoding::Base64 => BASE64.decode(text.as_bytes()),
        };
        decoded.map_err(|_| Refusal::Malformed)
    }
}

/// The value of a header that a request has to have once.
pub(super) fn only<'a>(headers: &'a Headers, name: &str) -> Result<&'a str, Refusal> {
    if headers.is_repeated(name) {
        return Err(Refusal::Repeated);
    }
    headers.value(name).map(str::trim).ok_or(Refusal::Absent)
}

/// The signatures, of which there has to be one at least.
fn limited(signatures: impl Iterator<Item = Result<Vec<u8>, Refusal>>) -> Result<Vec<Vec<u8>>, Refusal> {
    let signatures: Vec<Vec<u8>> = signatures.take(WEBHOOK_SIGNATURES_MAX + 1).collect::<Result<_, _>>()?;
    let is_limited = (1..=WEBHOOK_SIGNATURES_MAX).contains(&signatures.len());
    is_limited.then_some(signatures).ok_or(Refusal::Malformed)
}

/// Checks a timestamp in seconds against the clock.
fn is_within(timestamp: &str, window: i64, now: Timestamp) -> Result<(), Refusal> {
    let is_number = timestamp.bytes().all(|byte| byte.is_ascii_digit());
    let seconds = is_number.then(|| timestamp.parse::<i64>().ok()).flatten().ok_or(Refusal::Malformed)?;
    let is_near = now.seconds().abs_diff(seconds) <= window.unsigned_abs();
    is_near.then_some(()).ok_or(Refusal::Stale)
}
