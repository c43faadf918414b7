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

#[cfg(test)]
mod tests {
    use data_encoding::HEXLOWER;

    use super::*;

    #[test]
    fn signature_is_the_hmac_of_the_joined_parts() {
        // RFC 4231, test case 2; SHA-1 from RFC 2202.
        let rows = [
            (Algorithm::Sha1, "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79"),
            (Algorithm::Sha256, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"),
            (
                Algorithm::Sha384,
                "af45d2e376484031617f78d2b58a6b1b9c7ef464f5a01b47e42ec3736322445e8e2240ca5e69e2c78b3239ecfab21649",
            ),
            (
                Algorithm::Sha512,
                "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea2505549758bf75c05a994a6d034f65f8f0e6fd\
                 caeab1a34d4a6b4b636e070a38bce737",
            ),
        ];
        let secret = Secret::new("Jefe");
        for (algorithm, signature) in rows {
            let signature = HEXLOWER.decode(signature.as_bytes()).unwrap();
            assert!(secret.has_signed(algorithm, &[b"what do ya want ", b"for nothing?"], &signature));
            assert!(!secret.has_signed(algorithm, &[b"what do ya want ", b"for nothing!"], &signature));
            assert!(!secret.has_signed(algorithm, &[b"what do ya want for nothing?"], &signature[1..]));
            assert!(!Secret::new("jefe").has_signed(
                algorithm,
                &[b"what do ya want for nothing?"],
                &signature
            ));
        }
    }

    #[test]
    fn secret_is_only_itself_and_is_not_shown() {
        let secret = Secret::new("token");
        assert!(secret.is(b"token"));
        for other in ["", "toke", "tokens", "Token"] {
            assert!(!secret.is(other.as_bytes()), "{other}");
        }
        assert_eq!(format!("{secret:?}"), "Secret(…)");
    }
}
