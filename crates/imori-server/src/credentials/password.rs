//! Password hashes: argon2id, and the kinds that definitions of other brokers contain.

use std::fmt;

use argon2::password_hash::phc;
use argon2::{Argon2, Block, Params, Version};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256, Sha512};

use super::scram::ScramKeys;

/// Length of the salt in front of RabbitMQ's hashes.
const RABBITMQ_SALT_BYTES: usize = 4;

/// Length of the digest in RabbitMQ's oldest hashes, which are of MD5.
const MD5_BYTES: usize = 16;

/// Characters of generated passwords: 32 that are easy to read aloud.
const ALPHABET: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";

/// Length of a generated password.
const PASSWORD_CHARACTERS: usize = 25;

/// The memory for argon2id, about 19 MiB. Threads that check often keep it, because mapping fresh pages for each
/// check would make the kernel delay all other threads.
#[derive(Default)]
pub(crate) struct HashMemory(Vec<Block>);

/// The algorithm of a hash; serialized under RabbitMQ's name if RabbitMQ has one.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Algorithm {
    /// RFC 9106, in the PHC string format.
    #[default]
    #[serde(rename = "argon2id")]
    Argon2id,
    /// From configurations of nats-server: `$2a$…`.
    #[serde(rename = "bcrypt")]
    Bcrypt,
    /// RabbitMQ's default: base64 of a four-byte salt and the SHA-256 of salt and password.
    #[serde(rename = "rabbit_password_hashing_sha256")]
    RabbitMqSha256,
    /// RabbitMQ's variant with SHA-512.
    #[serde(rename = "rabbit_password_hashing_sha512")]
    RabbitMqSha512,
}

/// A password hash, with SCRAM keys if there are any.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PasswordHash {
    #[serde(rename = "password_hash")]
    text: String,
    #[serde(rename = "hashing_algorithm")]
    algorithm: Algorithm,
    #[serde(rename = "scram_sha256", default, skip_serializing_if = "Option::is_none")]
    scram: Option<ScramKeys>,
    /// The mark of the first hash of this password, if this is not the first.
    #[serde(rename = "password_mark", default, skip_serializing_if = "Option::is_none")]
    first: Option<String>,
}

impl fmt::Debug for PasswordHash {
    /// Keeps hashes out of logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PasswordHash").field("algorithm", &self.algorithm).finish_non_exhaustive()
    }
}

impl PasswordHash {
    /// A text that tells this password from the others of its user, and says nothing about it. Hashing the password
    /// again does not change it.
    pub fn mark(&self) -> String {
        self.first.clone().unwrap_or_else(|| HEXLOWER.encode(&Sha256::digest(&self.text)))
    }

    /// This hash, of the same password as an older one.
    #[must_use]
    pub(crate) fn rehashing(self, older: &PasswordHash) -> PasswordHash {
        PasswordHash { first: Some(older.mark()), ..self }
    }

    /// The stored hash, if that was made from this one, with SCRAM keys if either has them; else this one.
    #[must_use]
    pub(crate) fn or_rehashed(self, stored: Option<&PasswordHash>) -> PasswordHash {
        match stored {
            Some(stored) if stored.first.is_some() && stored.mark() == self.mark() => {
                let scram = stored.scram.clone().or(self.scram);
                stored.clone().with_scram(scram)
            }
            _ => self,
        }
    }

    /// Hashes a password by argon2id with a new salt, in about 20 ms. `None` if the system has no random bytes.
    pub(crate) fn of(password: &[u8], memory: &mut HashMemory) -> Option<PasswordHash> {
        let (mut salt, mut digest) = ([0; 16], [0; Params::DEFAULT_OUTPUT_LEN]);
        getrandom::fill(&mut salt).ok()?;
        let argon2 = Argon2::default();
        memory.0.resize(argon2.params().block_count(), Block::new());
        argon2.hash_password_into_with_memory(password, &salt, &mut digest, &mut memory.0).ok()?;
        let hash = phc::PasswordHash {
            algorithm: argon2::Algorithm::default().ident(),
            version: Some(Version::default().into()),
            params: phc::ParamsString::try_from(argon2.params()).ok()?,
            salt: Some(phc::Salt::new(&salt).ok()?),
            hash: Some(phc::Output::new(&digest).ok()?),
        };
        Some(PasswordHash {
            text: hash.to_string(),
            algorithm: Algorithm::Argon2id,
            scram: None,
            first: None,
        })
    }

    /// Accepts a hash made elsewhere; `None` if it is not valid for the algorithm.
    pub fn imported(text: &str, algorithm: Algorithm) -> Option<PasswordHash> {
        let digest_bytes = |len: usize| {
            let bytes = BASE64_STANDARD.decode(text).ok();
            bytes.is_some_and(|bytes| bytes.len() == RABBITMQ_SALT_BYTES + len)
        };
        let is_one = match algorithm {
            Algorithm::Argon2id => {
                phc::PasswordHash::new(text).is_ok_and(|hash| hash.algorithm.as_str() == "argon2id")
            }
            Algorithm::Bcrypt => text.parse::<bcrypt::HashParts>().is_ok(),
            Algorithm::RabbitMqSha256 => digest_bytes(Sha256::output_size()),
            Algorithm::RabbitMqSha512 => digest_bytes(Sha512::output_size()),
        };
        is_one.then(|| PasswordHash { text: text.to_owned(), algorithm, scram: None, first: None })
    }

    /// RabbitMQ's name for the algorithm of a hash in a document that names none: MD5, RabbitMQ's first, if the hash has
    /// its length, else SHA-256. MD5 is no [`Algorithm`] of this broker.
    pub fn unnamed_algorithm(text: &str) -> &'static str {
        let bytes = BASE64_STANDARD.decode(text).unwrap_or_default();
        match bytes.len() == RABBITMQ_SALT_BYTES + MD5_BYTES {
            true => "rabbit_password_hashing_md5",
            false => "rabbit_password_hashing_sha256",
        }
    }

    /// Replaces the SCRAM keys.
    pub fn with_scram(self, scram: Option<ScramKeys>) -> PasswordHash {
        PasswordHash { scram, ..self }
    }

    /// The SCRAM keys.
    pub fn scram(&self) -> Option<&ScramKeys> {
        self.scram.as_ref()
    }

    /// Whether a successful login should replace the hash by one of argon2id.
    pub(crate) fn is_foreign(&self) -> bool {
        self.algorithm != Algorithm::Argon2id
    }

    /// Whether this is the hashed password. Takes the same time for wrong passwords.
    pub(crate) fn verify(&self, password: &[u8], memory: &mut HashMemory) -> bool {
        match self.algorithm {
            Algorithm::Argon2id => self.verify_argon2id(password, memory).unwrap_or(false),
            Algorithm::Bcrypt => bcrypt::verify(password, &self.text).unwrap_or(false),
            Algorithm::RabbitMqSha256 => self.verify_rabbitmq::<Sha256>(password),
            Algorithm::RabbitMqSha512 => self.verify_rabbitmq::<Sha512>(password),
        }
    }

    /// `None` if the hash is unusable.
    fn verify_argon2id(&self, password: &[u8], memory: &mut HashMemory) -> Option<bool> {
        let hash = phc::PasswordHash::new(&self.text).ok()?;
        let (salt, expected) = (hash.salt?, hash.hash?);
        let params = Params::try_from(&hash).ok()?;
        let version = hash.version.map_or(Ok(Version::default()), Version::try_from).ok()?;
        let blocks = params.block_count();
        let mut digest = [0; phc::Output::MAX_LENGTH];
        let digest = digest.get_mut(..expected.len())?;
        memory.0.resize(blocks, Block::new());
        let argon2 = Argon2::new(argon2::Algorithm::Argon2id, version, params);
        argon2.hash_password_into_with_memory(password, &salt, digest, &mut memory.0).ok()?;
        // `phc::Output` compares in constant time.
        phc::Output::new(digest).ok().map(|output| output == expected)
    }

    fn verify_rabbitmq<D: sha2::Digest>(&self, password: &[u8]) -> bool {
        let Ok(bytes) = BASE64_STANDARD.decode(&self.text) else { return false };
        let Some((salt, expected)) = bytes.split_at_checked(RABBITMQ_SALT_BYTES) else { return false };
        let digest = D::new().chain_update(salt).chain_update(password).finalize();
        let difference = digest.iter().zip(expected).fold(0, |difference, (a, b)| difference | (a ^ b));
        difference == 0 && digest.len() == expected.len()
    }
}

/// Generates a password of 125 random bits; `None` if the system has no random bytes.
pub(crate) fn random_password() -> Option<String> {
    let mut random = [0; PASSWORD_CHARACTERS];
    getrandom::fill(&mut random).ok()?;
    let character = |byte: u8| ALPHABET.get(usize::from(byte % 32)).copied().map_or('a', char::from);
    Some(random.into_iter().map(character).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_right(hash: &PasswordHash, password: &[u8]) -> bool {
        hash.verify(password, &mut HashMemory::default())
    }

    #[test]
    fn a_password_is_known_by_its_hash_alone() {
        let hash = PasswordHash::of(b"secret", &mut HashMemory::default()).unwrap();
        assert!(is_right(&hash, b"secret") && !is_right(&hash, b"Secret") && !is_right(&hash, b""));
        assert_ne!(
            hash,
            PasswordHash::of(b"secret", &mut HashMemory::default()).unwrap(),
            "each has a salt of its own"
        );
        assert!(hash.text.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{}", hash.text);
        assert!(!hash.is_foreign());
        // SECURITY OPS-02
        assert!(!format!("{hash:?}").contains("$argon2id"));
    }

    /// Made by `rabbitmqctl hash_password` of RabbitMQ 3.10, as its documentation explains: `908D C60A` and `test12`.
    #[test]
    fn hashes_of_other_brokers_are_known() {
        let sha256 = "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR";
        let hash = PasswordHash::imported(sha256, Algorithm::RabbitMqSha256).unwrap();
        assert!(is_right(&hash, b"test12") && !is_right(&hash, b"test13") && hash.is_foreign());
        let bcrypt = "$2a$04$.rBHyXVTmTTbVyuWcR1teOE3Ua.o0MTz6IWLgGOSoNPiLkfCTHzyu";
        let known = PasswordHash::imported(bcrypt, Algorithm::Bcrypt);
        assert!(known.is_some_and(|hash| !is_right(&hash, b"wrong")));
    }

    #[test]
    fn what_is_no_hash_is_refused() {
        for (text, algorithm) in [
            ("", Algorithm::RabbitMqSha256),
            ("AAAA", Algorithm::RabbitMqSha256),
            ("kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR", Algorithm::RabbitMqSha512),
            ("secret", Algorithm::Argon2id),
            ("$argon2i$v=19$m=8,t=1,p=1$c29tZXNhbHQ$AAAA", Algorithm::Argon2id),
            ("$2a$", Algorithm::Bcrypt),
        ] {
            assert!(PasswordHash::imported(text, algorithm).is_none(), "{text}");
        }
    }
}
