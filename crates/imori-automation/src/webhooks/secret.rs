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

    /// Begins the HMAC of bytes that come piece by piece.
    pub(super) fn begin(&self, algorithm: Algorithm) -> Signing {
        let key = hmac::Key::new(algorithm.of_ring(), &self.0);
        Signing { context: hmac::Context::with_key(&key), key }
    }

    /// Whether `text` is the secret.
    pub(super) fn is(&self, text: &[u8]) -> bool {
        is_equal(&hmac::Key::new(hmac::HMAC_SHA256, &self.0), &self.0, text)
    }
}

/// An HMAC in progress.
#[derive(Clone)]
pub(super) struct Signing {
    key: hmac::Key,
    context: hmac::Context,
}

impl Signing {
    /// Adds bytes.
    pub(super) fn update(&mut self, bytes: &[u8]) {
        self.context.update(bytes);
    }

    /// Whether one of these signatures is the HMAC of the bytes so far. Compares with all of them.
    pub(super) fn matches(self, signatures: &[Vec<u8>]) -> bool {
        let own = self.context.sign();
        signatures
            .iter()
            .fold(false, |is_one, signature| is_one | is_equal(&self.key, own.as_ref(), signature))
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
