//! SASL SCRAM-SHA-256 (RFC 5802, RFC 7677): stored keys of passwords, and answers for unknown users.

use std::fmt;
use std::num::NonZeroU32;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use imori_core::login::{BUILT_IN_USER, SCRAM_BYTES, ScramParameters};
use ring::hmac;
use ring::pbkdf2;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::limits::{SCRAM_ITERATIONS, SCRAM_ITERATIONS_MAX, SCRAM_ITERATIONS_MIN, SCRAM_SALT_BYTES_MAX};
use crate::login::is_equal;

/// Prefix of keys as text (RFC 5803), as in PostgreSQL and LDAP servers.
const PREFIX: &str = "SCRAM-SHA-256$";

/// Length of generated salts.
const SALT_BYTES: usize = 16;

/// A key or a signature.
type Key = [u8; SCRAM_BYTES];

/// Keys derived from a password: enough to verify a login, not enough to log in.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ScramKeys {
    salt: Box<[u8]>,
    iterations: NonZeroU32,
    /// `StoredKey`, the digest of the client's key.
    stored: Key,
    server: Key,
}

impl fmt::Debug for ScramKeys {
    /// Keeps keys out of logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ScramKeys")
    }
}

impl ScramKeys {
    /// Derives keys from a password with a new salt, in about 5 ms. `None` if the system has no random bytes.
    pub(crate) fn of(password: &[u8]) -> Option<ScramKeys> {
        let mut salt = [0; SALT_BYTES];
        getrandom::fill(&mut salt).ok()?;
        Some(ScramKeys::salted(password, &salt, SCRAM_ITERATIONS))
    }

    fn salted(password: &[u8], salt: &[u8], iterations: NonZeroU32) -> ScramKeys {
        // RFC 5802, 2.2: passwords that SASLprep rejects are used unprepared, as clients do.
        let prepared = str::from_utf8(password).ok().and_then(|text| stringprep::saslprep(text).ok());
        let password = prepared.as_deref().map_or(password, str::as_bytes);
        let mut salted: Key = [0; SCRAM_BYTES];
        pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, iterations, salt, password, &mut salted);
        let client = sign(&salted, b"Client Key");
        let server = sign(&salted, b"Server Key");
        ScramKeys { salt: salt.into(), iterations, stored: Sha256::digest(client).into(), server }
    }

    /// The parameters that a client needs to derive the keys.
    pub(crate) fn parameters(&self) -> ScramParameters {
        ScramParameters { salt: self.salt.clone(), iterations: self.iterations.get() }
    }

    /// Whether a `ClientProof` shows knowledge of the password.
    pub(crate) fn is_proved(&self, messages: &[u8], proof: &Key) -> bool {
        let mut client = sign(&self.stored, messages);
        client.iter_mut().zip(proof).for_each(|(byte, proved)| *byte ^= proved);
        is_equal(&Sha256::digest(client), &self.stored)
    }

    /// The `ServerSignature`.
    pub(crate) fn signature(&self, messages: &[u8]) -> Key {
        sign(&self.server, messages)
    }

    /// Parses `SCRAM-SHA-256$ITERATIONS:SALT$STORED:SERVER`, with salt and keys in base64.
    fn read(text: &str) -> Option<ScramKeys> {
        let (parameters, keys) = text.strip_prefix(PREFIX)?.split_once('$')?;
        let ((iterations, salt), (stored, server)) = (parameters.split_once(':')?, keys.split_once(':')?);
        let iterations: NonZeroU32 = iterations.parse().ok()?;
        let salt = BASE64_STANDARD.decode(salt).ok()?;
        let key = |text| BASE64_STANDARD.decode(text).ok()?.try_into().ok();
        let keys = ScramKeys { salt: salt.into(), iterations, stored: key(stored)?, server: key(server)? };
        let is_usable = (SCRAM_ITERATIONS_MIN..=SCRAM_ITERATIONS_MAX).contains(&iterations.get())
            && (1..=SCRAM_SALT_BYTES_MAX).contains(&keys.salt.len());
        is_usable.then_some(keys)
    }
}

impl TryFrom<String> for ScramKeys {
    type Error = &'static str;

    fn try_from(text: String) -> Result<ScramKeys, &'static str> {
        ScramKeys::read(&text)
            .ok_or("keys of SCRAM are no text such as `SCRAM-SHA-256$15000:SALT$STORED:SERVER`")
    }
}

impl From<ScramKeys> for String {
    fn from(ScramKeys { salt, iterations, stored, server }: ScramKeys) -> String {
        let [salt, stored, server] = [&*salt, &stored, &server].map(|bytes| BASE64_STANDARD.encode(bytes));
        format!("{PREFIX}{iterations}:{salt}${stored}:{server}")
    }
}

/// The broker's secret from which unknown users get a stable salt, so that they cannot be told from known ones
/// (SECURITY AUTH-09).
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct ScramSecret([u8; SCRAM_BYTES]);

impl fmt::Debug for ScramSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ScramSecret")
    }
}

impl ScramSecret {
    /// Generates a secret; `None` if the system has no random bytes.
    pub(crate) fn make() -> Option<ScramSecret> {
        let mut secret = [0; SCRAM_BYTES];
        getrandom::fill(&mut secret).ok()?;
        Some(ScramSecret(secret))
    }

    fn salt(&self, user: &[u8]) -> Box<[u8]> {
        sign(&self.0, user).into_iter().take(SALT_BYTES).collect()
    }
}

/// Answers for unknown users and for the built-in user.
#[derive(Debug, Clone)]
pub(crate) struct Scram {
    secret: ScramSecret,
    nobodys: ScramKeys,
    built_in: ScramKeys,
}

impl Scram {
    /// Derives the keys of the built-in user, in about 5 ms.
    pub(crate) fn of(secret: ScramSecret) -> Scram {
        let built_in = ScramKeys::salted(BUILT_IN_USER, &secret.salt(BUILT_IN_USER), SCRAM_ITERATIONS);
        // No password has these keys, because the secret is not the digest of a client's key.
        let nobodys = ScramKeys { stored: secret.0, server: secret.0, ..built_in.clone() };
        Scram { secret, nobodys, built_in }
    }

    /// The keys of the built-in user.
    pub(crate) fn built_in(&self) -> &ScramKeys {
        &self.built_in
    }

    /// Keys that no password matches.
    pub(crate) fn nobodys(&self) -> &ScramKeys {
        &self.nobodys
    }

    /// The parameters for an unknown user.
    pub(crate) fn parameters(&self, user: &[u8]) -> ScramParameters {
        ScramParameters { salt: self.secret.salt(user), iterations: SCRAM_ITERATIONS.get() }
    }
}

fn sign(key: &Key, text: &[u8]) -> Key {
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text);
    let mut signature = [0; SCRAM_BYTES];
    signature.iter_mut().zip(tag.as_ref()).for_each(|(to, from)| *to = *from);
    signature
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7677, 3: the user `user` with the password `pencil`.
    #[test]
    fn the_example_of_the_standard_is_proved() {
        let salt = BASE64_STANDARD.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap();
        let keys = ScramKeys::salted(b"pencil", &salt, NonZeroU32::new(4096).unwrap());
        let nonce = "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
        let first = "n=user,r=rOprNGfwEbeRWgbNEkqO";
        let messages = format!("{first},{nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,c=biws,{nonce}");
        let proof: Key = BASE64_STANDARD
            .decode("dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
            .unwrap()
            .try_into()
            .unwrap();
        assert!(keys.is_proved(messages.as_bytes(), &proof));
        let signature = BASE64_STANDARD.encode(keys.signature(messages.as_bytes()));
        assert_eq!(signature, "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
        assert!(!keys.is_proved(&messages.as_bytes()[1..], &proof), "other messages");
        let mut wrong = proof;
        wrong[31] ^= 1;
        assert!(!keys.is_proved(messages.as_bytes(), &wrong), "another proof");
        let others = ScramKeys::salted(b"Pencil", &salt, NonZeroU32::new(4096).unwrap());
        assert!(!others.is_proved(messages.as_bytes(), &proof), "another password");
    }

    /// The examples of RFC 4013, 3: a soft hyphen is removed, and one letter maps to two.
    #[test]
    fn passwords_are_prepared() {
        let keys = |password: &str| ScramKeys::salted(password.as_bytes(), b"salt", SCRAM_ITERATIONS);
        assert!(keys("I\u{ad}X") == keys("IX") && keys("\u{2168}") == keys("IX") && keys("ix") != keys("IX"));
    }

    #[test]
    fn keys_are_a_text_and_come_back() {
        let keys = ScramKeys::of(b"secret").unwrap();
        assert!(keys != ScramKeys::of(b"secret").unwrap(), "each has a salt of its own");
        let text = String::from(keys.clone());
        assert!(text.starts_with("SCRAM-SHA-256$15000:"), "{text}");
        assert_eq!(ScramKeys::try_from(text.clone()), Ok(keys.clone()));
        // SECURITY OPS-02
        assert_eq!(format!("{keys:?}"), "ScramKeys");
        for wrong in [
            String::new(),
            text.replacen("256", "1", 1),
            text.replacen("15000", "4095", 1),
            text.replacen("15000", "-1", 1),
            text.replacen("15000", "99999999999", 1),
            text.replacen(':', "::", 1),
            text.replacen('$', "", 1),
            format!("{text}A"),
        ] {
            assert!(ScramKeys::try_from(wrong.clone()).is_err(), "{wrong}");
        }
    }

    /// SECURITY AUTH-09: each unknown user has a stable salt of its own and no password.
    #[test]
    fn a_name_that_is_nobodys_has_parameters_and_no_password() {
        let secret = ScramSecret::make().unwrap();
        let scram = Scram::of(secret.clone());
        assert_eq!(scram.parameters(b"eve"), Scram::of(secret).parameters(b"eve"));
        assert_ne!(scram.parameters(b"eve"), scram.parameters(b"adam"));
        let made = ScramKeys::of(b"secret").unwrap().parameters();
        let told = scram.parameters(b"eve");
        assert_eq!((told.salt.len(), told.iterations), (made.salt.len(), made.iterations));
        assert_eq!(scram.parameters(BUILT_IN_USER), scram.built_in().parameters());
    }
}
