//! A signed token in compact form: header, claims and signature in base64url, separated by dots (RFC 7515, 7.1).

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
    typ: Option<String>,
    #[serde(default)]
    crit: Option<Value>,
}

/// Media types of access tokens, without the implied `application/` (RFC 7515, 4.1.9; RFC 7519, 5.1; RFC 9068, 2.1).
const ACCESS_TOKEN_TYPES: [&str; 2] = ["at+jwt", "jwt"];

/// Values of the claim `typ` in Keycloak's other tokens, whose headers also say `JWT`.
const OTHER_TOKEN_CLAIMS: [&str; 4] = ["id", "refresh", "offline", "logout"];

/// Verifies a token by the issuer's keys and returns its claims. `alg:none` and symmetric algorithms always fail,
/// because no key is for them (SECURITY AUTH-10).
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
    if let Some(name) = header.typ.filter(|name| !is_access_token_type(name)) {
        return Err(JwtError::Type(name));
    }
    let signature = decode(signature)?;
    let fitting = keys.for_token(&header.alg, header.kid.as_deref())?;
    if !fitting.iter().any(|key| key.is_signed(&header.alg, signed.as_bytes(), &signature)) {
        return Err(JwtError::Signature);
    }
    let claims: Map<String, Value> =
        serde_json::from_slice(&decode(claims)?).map_err(|_| JwtError::Form("its claims are no object"))?;
    match claims.get("typ").and_then(Value::as_str) {
        Some(name) if OTHER_TOKEN_CLAIMS.iter().any(|other| name.eq_ignore_ascii_case(other)) => {
            Err(JwtError::Type(name.to_owned()))
        }
        _ => Ok(claims),
    }
}

/// Whether a header's `typ` marks an access token. RFC 7515, 4.1.9: media types are case-insensitive.
fn is_access_token_type(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ACCESS_TOKEN_TYPES.contains(&name.strip_prefix("application/").unwrap_or(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SECURITY AUTH-10.
    #[test]
    fn only_types_of_access_tokens_are_taken() {
        for (name, expected) in [
            ("at+jwt", true),
            ("AT+JWT", true),
            ("application/at+jwt", true),
            ("Application/AT+jwt", true),
            ("JWT", true),
            ("jwt", true),
            ("", false),
            ("application/", false),
            ("id_token", false),
            ("id_token+jwt", false),
            ("logout+jwt", false),
            ("dpop+jwt", false),
            ("secevent+jwt", false),
            ("Refresh", false),
            ("ID", false),
            ("text/at+jwt", false),
            ("application/application/at+jwt", false),
        ] {
            assert_eq!(is_access_token_type(name), expected, "{name:?}");
        }
    }
}
