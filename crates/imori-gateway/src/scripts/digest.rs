//! `Digest`, `Imori::HMAC`, `SecureRandom`, `Base64`, and the secrets by name.

use base64::{Engine, engine::general_purpose};
use imori_ruby::{Call, Error, Library, Value};
use md5::{Digest, Md5};
use ring::{digest, hmac};

use super::context::{argument_error, bytes_at, integer_at, run_of, text_at};

/// Bytes of randomness for one call.
const RANDOM_BYTES_MAX: i64 = 1 << 20;

pub(super) fn declare(library: &mut Library) {
    library
        .module("Digest")
        .singleton_method("Digest", "__digest", digest_of)
        .singleton_method("Digest", "__hmac", hmac_of)
        .singleton_method("Digest", "__equal", |call| {
            Ok(is_equal(&bytes_at(call, 0)?, &bytes_at(call, 1)?).into())
        })
        .module("SecureRandom")
        .singleton_method("SecureRandom", "random_bytes", random_bytes)
        .module("Base64")
        .singleton_method("Base64", "__encode", |call| {
            let engine = if text_at(call, 1)? == "url" {
                general_purpose::URL_SAFE_NO_PAD
            } else {
                general_purpose::STANDARD
            };
            Ok(engine.encode(bytes_at(call, 0)?).as_str().into())
        })
        .singleton_method("Base64", "__decode", decode)
        .singleton_method("Imori", "__secret", |call| {
            let name = text_at(call, 0)?;
            match run_of(call)?.tools().secrets.get(&name) {
                Some(secret) => Ok(secret.into()),
                None => Err(Error::new(
                    "KeyError",
                    format!("there is no secret `{}`; name it in `[scripts.secrets]`", name.escape_debug()),
                )),
            }
        })
        .prelude("<imori>/digest.rb", include_str!("../ruby/digest.rb"));
}

/// `__digest(algorithm, data)`
fn digest_of(call: &Call<'_>) -> Result<Value, Error> {
    let data = bytes_at(call, 1)?;
    let algorithm = match text_at(call, 0)?.as_str() {
        "MD5" => return Ok(Value::string(Md5::digest(&data))),
        "SHA1" => &digest::SHA1_FOR_LEGACY_USE_ONLY,
        "SHA256" => &digest::SHA256,
        "SHA384" => &digest::SHA384,
        "SHA512" => &digest::SHA512,
        other => return Err(unknown(other)),
    };
    Ok(Value::string(digest::digest(algorithm, &data)))
}

/// `__hmac(algorithm, key, data)`
fn hmac_of(call: &Call<'_>) -> Result<Value, Error> {
    let algorithm = match text_at(call, 0)?.as_str() {
        "SHA1" => hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
        "SHA256" => hmac::HMAC_SHA256,
        "SHA384" => hmac::HMAC_SHA384,
        "SHA512" => hmac::HMAC_SHA512,
        other => return Err(unknown(other)),
    };
    let key = hmac::Key::new(algorithm, &bytes_at(call, 1)?);
    Ok(Value::string(hmac::sign(&key, &bytes_at(call, 2)?)))
}

fn unknown(algorithm: &str) -> Error {
    Error::new(
        "NotImplementedError",
        format!("Digest::{} is not offered; use SHA256, SHA384 or SHA512", algorithm.escape_debug()),
    )
}

/// Compares in a time that depends on the lengths alone: the tags under a fresh key are equal only if the texts are.
fn is_equal(left: &[u8], right: &[u8]) -> bool {
    let mut secret = [0; 32];
    if getrandom::fill(&mut secret).is_err() {
        return false;
    }
    let key = hmac::Key::new(hmac::HMAC_SHA256, &secret);
    hmac::verify(&key, left, hmac::sign(&key, right).as_ref()).is_ok()
}

fn random_bytes(call: &Call<'_>) -> Result<Value, Error> {
    let count = if call.arguments.is_empty() { 16 } else { integer_at(call, 0)? };
    if !(0..=RANDOM_BYTES_MAX).contains(&count) {
        return Err(argument_error(format!(
            "{count} random bytes are not possible; use 0 to {RANDOM_BYTES_MAX}"
        )));
    }
    let mut bytes = vec![0; usize::try_from(count).unwrap_or(0)];
    getrandom::fill(&mut bytes)
        .map_err(|error| Error::new("RuntimeError", format!("no randomness: {error}")))?;
    Ok(Value::String(bytes))
}

/// `__decode(text)`: either alphabet, with or without padding; white space is left out.
fn decode(call: &Call<'_>) -> Result<Value, Error> {
    let text = bytes_at(call, 0)?;
    let text: Vec<u8> = text
        .into_iter()
        .filter(|byte| !byte.is_ascii_whitespace() && *byte != b'=')
        .map(|byte| match byte {
            b'-' => b'+',
            b'_' => b'/',
            other => other,
        })
        .collect();
    let decoded = general_purpose::STANDARD_NO_PAD.decode(text);
    decoded.map(Value::String).map_err(|error| argument_error(format!("the text is no Base64: {error}")))
}
