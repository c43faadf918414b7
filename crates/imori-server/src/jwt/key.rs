//! A public key of an issuer, and verification by it (RFC 7517, RFC 7518).

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, RsaParameters, RsaPublicKeyComponents,
    UnparsedPublicKey, VerificationAlgorithm,
};
use serde::Deserialize;

/// A JSON Web Key; unknown members are ignored (RFC 7517, 4).
#[derive(Debug, Deserialize)]
pub(super) struct JsonKey {
    kty: String,
    #[serde(default)]
    kid: Option<String>,
    #[serde(default)]
    alg: Option<String>,
    #[serde(default, rename = "use")]
    purpose: Option<String>,
    #[serde(default)]
    crv: Option<String>,
    #[serde(default)]
    n: Option<String>,
    #[serde(default)]
    e: Option<String>,
    #[serde(default)]
    x: Option<String>,
    #[serde(default)]
    y: Option<String>,
}

/// A public key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Key {
    /// The key id that tokens refer to.
    pub(super) id: Option<String>,
    /// The only algorithm allowed for the key, if it names one.
    algorithm: Option<String>,
    material: Material,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Material {
    Rsa { n: Vec<u8>, e: Vec<u8> },
    P256(Vec<u8>),
    P384(Vec<u8>),
    Ed25519(Vec<u8>),
}

/// Smallest modulus of an RSA key (RFC 7518, 3.3).
const RSA_BYTES_MIN: usize = 256;

/// RFC 7518, 3.3 and 3.5.
const RSA_ALGORITHMS: [(&str, &RsaParameters); 6] = [
    ("RS256", &RSA_PKCS1_2048_8192_SHA256),
    ("RS384", &RSA_PKCS1_2048_8192_SHA384),
    ("RS512", &RSA_PKCS1_2048_8192_SHA512),
    ("PS256", &RSA_PSS_2048_8192_SHA256),
    ("PS384", &RSA_PSS_2048_8192_SHA384),
    ("PS512", &RSA_PSS_2048_8192_SHA512),
];

impl Key {
    /// Converts a JSON Web Key. `None` if it is not for signatures, of an unknown kind, or symmetric: a shared secret
    /// can sign as well as verify.
    ///
    /// # Errors
    /// The key is too short or malformed (SECURITY AUTH-10).
    pub(super) fn of(key: &JsonKey) -> Result<Option<Key>, String> {
        if key.purpose.as_deref().is_some_and(|purpose| purpose != "sig") {
            return Ok(None);
        }
        let part = |text: &Option<String>| BASE64_URL_SAFE_NO_PAD.decode(text.as_deref()?).ok();
        let coordinate = |text, bytes| part(text).filter(|part| part.len() == bytes);
        // SEC 1, 2.3.3: an uncompressed point.
        let point = |bytes| Some([&[4], &*coordinate(&key.x, bytes)?, &*coordinate(&key.y, bytes)?].concat());
        let material = match (key.kty.as_str(), key.crv.as_deref()) {
            ("RSA", _) => part(&key.n)
                .filter(|n| n.len() >= RSA_BYTES_MIN)
                .zip(part(&key.e))
                .map(|(n, e)| Material::Rsa { n, e }),
            ("EC", Some("P-256")) => point(32).map(Material::P256),
            ("EC", Some("P-384")) => point(48).map(Material::P384),
            ("OKP", Some("Ed25519")) => coordinate(&key.x, 32).map(Material::Ed25519),
            _ => return Ok(None),
        };
        let Some(material) = material else {
            let id = key.kid.as_deref().unwrap_or_default().escape_debug();
            return Err(format!(
                "key `{id}` is no whole key of its kind, or of RSA with less than 2048 bits"
            ));
        };
        Ok(Some(Key { id: key.kid.clone(), algorithm: key.alg.clone(), material }))
    }

    /// Whether the key can verify this algorithm.
    pub(super) fn is_for(&self, algorithm: &str) -> bool {
        let is_of_kind = match self.material {
            Material::Rsa { .. } => RSA_ALGORITHMS.iter().any(|(name, _)| *name == algorithm),
            Material::P256(_) => algorithm == "ES256",
            Material::P384(_) => algorithm == "ES384",
            Material::Ed25519(_) => algorithm == "EdDSA",
        };
        is_of_kind && self.algorithm.as_deref().is_none_or(|only| only == algorithm)
    }

    /// Whether `signature` is the key owner's signature of `text`, by an algorithm that the key is for.
    pub(super) fn is_signed(&self, algorithm: &str, text: &[u8], signature: &[u8]) -> bool {
        let by = |with: &'static dyn VerificationAlgorithm, point: &[u8]| {
            UnparsedPublicKey::new(with, point).verify(text, signature).is_ok()
        };
        self.is_for(algorithm)
            && match &self.material {
                Material::Rsa { n, e } => {
                    let found = RSA_ALGORITHMS.iter().find(|(name, _)| *name == algorithm);
                    let verify = |(_, with): &(_, &'static RsaParameters)| {
                        RsaPublicKeyComponents { n, e }.verify(with, text, signature).is_ok()
                    };
                    found.is_some_and(verify)
                }
                Material::P256(point) => by(&ECDSA_P256_SHA256_FIXED, point),
                Material::P384(point) => by(&ECDSA_P384_SHA384_FIXED, point),
                Material::Ed25519(point) => by(&ED25519, point),
            }
    }
}
