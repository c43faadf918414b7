//! The options of a CONNECT, read from and written as JSON.

use serde::Serialize;
use serde_json::{Map, Value};

/// The options of a CONNECT.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConnectOptions {
    /// The client expects +OK for each operation.
    pub verbose: bool,
    /// The broker checks the subjects of publishes.
    pub pedantic: bool,
    /// The client receives its own messages.
    pub echo: bool,
    /// The client reads and writes header blocks.
    pub headers: bool,
    /// The client wants a 503 for a request without subscribers.
    pub no_responders: bool,
    /// 1: the client accepts INFO at any time.
    pub protocol: i64,
    /// The name of the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The programming language of the client library.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lang: Option<String>,
    /// The version of the client library.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The user's password.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pass: Option<String>,
    /// A token instead of user and password.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth_token: Option<String>,
    /// The public key of the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nkey: Option<String>,
    /// The signature of INFO's nonce by that key, in base64 for URLs without padding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sig: Option<String>,
    /// The client sent a JWT or an account, which are not supported.
    #[serde(skip)]
    pub has_other_credentials: bool,
}

/// Options without a CONNECT, and defaults for those that a CONNECT omits. Like nats-server, this
/// assumes a person at a terminal.
impl Default for ConnectOptions {
    fn default() -> Self {
        Self {
            verbose: true,
            pedantic: true,
            echo: true,
            headers: false,
            no_responders: false,
            protocol: 0,
            name: None,
            lang: None,
            version: None,
            user: None,
            pass: None,
            auth_token: None,
            nkey: None,
            sig: None,
            has_other_credentials: false,
        }
    }
}

impl ConnectOptions {
    /// The options of a program that supports every feature of the protocol.
    pub fn of_client(name: &str) -> Self {
        Self {
            verbose: false,
            pedantic: false,
            headers: true,
            no_responders: true,
            protocol: 1,
            name: Some(name.to_string()),
            lang: Some("rust".to_string()),
            version: Some(env!("CARGO_PKG_VERSION").to_string()),
            ..Self::default()
        }
    }

    /// Merges the JSON of a CONNECT into these options. Returns `None` if it is not a JSON object
    /// or a value has the wrong type. Names are case-insensitive; unknown ones are ignored.
    pub fn with(&self, json: &[u8]) -> Option<Self> {
        let written: Map<String, Value> = serde_json::from_slice(json).ok()?;
        // Credentials hold for one CONNECT only.
        let mut options = Self {
            user: None,
            pass: None,
            auth_token: None,
            nkey: None,
            sig: None,
            has_other_credentials: false,
            ..self.clone()
        };
        for (name, value) in written {
            options.set(&name.to_ascii_lowercase(), value)?;
        }
        Some(options)
    }

    fn set(&mut self, name: &str, value: Value) -> Option<()> {
        let is_flag = |place: &mut bool| {
            if !value.is_null() {
                *place = value.as_bool()?;
            }
            Some(())
        };
        match name {
            "verbose" => return is_flag(&mut self.verbose),
            "pedantic" => return is_flag(&mut self.pedantic),
            "echo" => return is_flag(&mut self.echo),
            "headers" => return is_flag(&mut self.headers),
            "no_responders" => return is_flag(&mut self.no_responders),
            "protocol" if !value.is_null() => self.protocol = value.as_i64()?,
            "name" => self.name = text(value)?,
            "lang" => self.lang = text(value)?,
            "version" => self.version = text(value)?,
            "user" => self.user = text(value)?,
            "pass" => self.pass = text(value)?,
            "auth_token" => self.auth_token = text(value)?,
            "nkey" => self.nkey = text(value)?,
            "sig" => self.sig = text(value)?,
            "jwt" | "account" => self.has_other_credentials |= text(value)?.is_some(),
            _ => {}
        }
        Some(())
    }
}

/// Reads a text; the inner `None` is an empty or null one, the outer `None` a wrong type.
#[allow(clippy::option_option, reason = "absent and wrong are two things")]
fn text(value: Value) -> Option<Option<String>> {
    match value {
        Value::Null => Some(None),
        Value::String(text) if text.is_empty() => Some(None),
        Value::String(text) => Some(Some(text)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_stays_as_it_was() {
        let options = ConnectOptions::default().with(b"{}").unwrap();
        assert_eq!(options, ConnectOptions::default());
        let text = br#"{"verbose":false,"pedantic":null,"headers":true,"protocol":1,"x":[{}],"user":"u"}"#;
        let options = options.with(text).unwrap();
        let expected = ConnectOptions {
            verbose: false,
            headers: true,
            protocol: 1,
            user: Some("u".to_string()),
            ..ConnectOptions::default()
        };
        assert_eq!(options, expected);
        assert!(!options.with(br#"{"HEADERS":true,"headers":false}"#).unwrap().headers);
        assert_eq!(options.with(b"{}").unwrap().user, None);
    }

    #[test]
    fn what_is_no_connect_is_none() {
        for text in ["", "{", "[]", "1", r#"{"verbose":1}"#, r#"{"user":{}}"#, "{} {}", "\u{feff}{}"] {
            assert_eq!(ConnectOptions::default().with(text.as_bytes()), None, "{text:?}");
        }
        // SECURITY LIM-16: nesting does not use up the stack.
        assert_eq!(ConnectOptions::default().with(&b"[".repeat(4096)), None);
    }

    #[test]
    fn what_is_written_is_read() {
        let options = ConnectOptions { user: Some("a\"\r\n".to_string()), ..ConnectOptions::of_client("c") };
        let text = serde_json::to_vec(&options).unwrap();
        assert!(!text.contains(&b'\n'));
        assert_eq!(ConnectOptions::default().with(&text), Some(options));
        let jwt = ConnectOptions::default().with(br#"{"jwt":"x","sig":""}"#).unwrap();
        assert!(jwt.has_other_credentials);
    }
}
