//! The body of a counter's message: its value in JSON.

use serde::Deserialize;

/// The body of a counter's message.
#[derive(Debug, Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    val: &'a str,
}

/// Reads the value, an integer in decimal, from the body of a counter's message.
pub fn value(body: &[u8]) -> Option<&str> {
    let value = serde_json::from_slice::<Body<'_>>(body).ok()?.val;
    let digits = value.strip_prefix(['-', '+']).unwrap_or(value);
    let is_integer = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_integer.then_some(value)
}

/// Returns the body that tells a value, which is an integer in decimal.
pub fn body(value: &[u8]) -> Vec<u8> {
    [br#"{"val":""#, value, br#""}"#].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_tells_its_value() {
        assert_eq!(body(b"-5"), br#"{"val":"-5"}"#);
        assert_eq!(value(br#"{"val":"-5"}"#), Some("-5"));
        for other in [&br#"{"val":5}"#[..], br#"{"val":"5.0"}"#, br#"{"val":"-"}"#, b"x"] {
            assert_eq!(value(other), None);
        }
    }
}
