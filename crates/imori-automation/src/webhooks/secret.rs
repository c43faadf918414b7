//! A secret that a webhook shares with its sender, compared in constant time.

use std::fmt;

use ring::hmac;

/// A secret. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

/// The hash of an HMAC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// SHA-1, for senders that have nothing else.
    Sha1,
    /// SHA-256.
    Sha256,
    /// SHA-384.
    Sha384,
    /// SHA-512.
    Sha512,
}

impl Secret {
    /// A secret of these bytes.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Secret {
        Secret(bytes.into())
    }

    /// Whether `signature` is the HMAC of `parts`, joined.
    pub(super) fn has_signed(&self, algorithm: Algorithm, parts: &[&[u8]], signature: &[u8]) -> bool {
        let key = hmac::Key::new(algorithm.of_ring(), &self.0);
        let mut context = hmac::Context::with_key(&key);
        parts.iter().for_each(|part| context.update(part));
        is_equal(&key, context.sign().as_ref(), signature)
    }

    /// Whether `text` is the secret.
    pub(super) fn is(&self, text: &[u8]) -> bool {
        is_equal(&hmac::Key::new(hmac::HMAC_SHA256, &self.0), &self.0, text)
    }
}

/// Compares by the HMACs of both, so that the time depends neither on the first byte that differs nor on the length of
/// the secret, and the signed parts need not be joined.
fn is_equal(key: &hmac::Key, known: &[u8], given: &[u8]) -> bool {
    hmac::verify(key, given, hmac::sign(key, known).as_ref()).is_ok()
}

impl Algorithm {
    fn of_ring(self) -> hmac::Algorithm {
        match self {
            Algorithm::Sha1 => hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
            Algorithm::Sha256 => hmac::HMAC_SHA256,
            Algorithm::Sha384 => hmac::HMAC_SHA384,
            Algorithm::Sha512 => hmac::HMAC_SHA512,
        }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}
