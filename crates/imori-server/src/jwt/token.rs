//! A signed token in compact form: header, claims and signature in base64url with dots between (RFC 7515, 7.1).

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::jwt_error::JwtError;
use super::key_set::KeySet;

/// RFC 7515, 4.1.
#[derive(Debug, Deserialize)]
struct Header {
    alg: String,
    #[serde(default)]
    kid: Option<String>,
    #[serde(default)]
    crit: Option<Value>,
}

/// Verifies a token by the keys of its issuer, and gives its claims. Neither `alg:none` nor a secret verifies anything,
/// as there is no key of that kind (SECURITY AUTH-10).
pub(super) fn verified(token: &[u8], keys: &KeySet) -> Result<Map<String, Value>, JwtError> {
    let text = str::from_utf8(token).map_err(|_| JwtError::Form("it is not text"))?;
    let (signed, signature) = text.rsplit_once('.').ok_or(JwtError::Form("it has no parts"))?;
    let (header, claims) = signed.split_once('.').ok_or(JwtError::Form("it has two parts of three"))?;
    let decode = |part: &str| {
        BASE64_URL_SAFE_NO_PAD.decode(part).map_err(|_| JwtError::Form("a part is no base64url"))
    };
    let header: Header =
        serde_json::from_slice(&decode(header)?).map_err(|_| JwtError::Form("its header is unreadable"))?;
    if header.crit.is_some() {
        return Err(JwtError::Form("its header demands an extension"));
    }
    let signature = decode(signature)?;
    let fitting = keys.for_token(&header.alg, header.kid.as_deref())?;
    if !fitting.iter().any(|key| key.is_signed(&header.alg, signed.as_bytes(), &signature)) {
        return Err(JwtError::Signature);
    }
    serde_json::from_slice(&decode(claims)?).map_err(|_| JwtError::Form("its claims are no object"))
}
