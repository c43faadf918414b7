//! The options of a CONNECT, read from its JSON and written as JSON.

use serde::{Deserialize, Serialize};

/// What a client says of itself in CONNECT.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConnectOptions {
    /// Each operation is answered by +OK.
    pub verbose: bool,
    /// Subjects of publishes are checked.
    pub pedantic: bool,
    /// It wants to hear its own messages.
    pub echo: bool,
    /// It reads and writes header blocks.
    pub headers: bool,
    /// It wants to be told when nobody hears a request.
    pub no_responders: bool,
    /// 1: an INFO may come at any time.
    pub protocol: i64,
    /// What the client is called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The language it is written in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lang: Option<String>,
    /// The version of its library.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The user's password.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pass: Option<String>,
    /// A secret instead of user and password.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth_token: Option<String>,
    /// A claim, or a signature of the nonce: credentials of a kind that is not known here.
    #[serde(skip)]
    pub has_other_credentials: bool,
}

/// What holds for a client that sends no CONNECT, and for what its CONNECT leaves out, as in
/// nats-server: it is taken for a person at a terminal.
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
            has_other_credentials: false,
        }
    }
}

impl ConnectOptions {
    /// What a program says that can do all that the protocol has.
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

    /// These options with what the JSON of a CONNECT says of them; `None` where it is not JSON, or
    /// says things of another type.
    pub fn with(&self, json: &[u8]) -> Option<Self> {
        let written: Written = serde_json::from_slice(json).ok()?;
        let mut options = self.clone();
        for (place, value) in [
            (&mut options.verbose, written.verbose),
            (&mut options.pedantic, written.pedantic),
            (&mut options.echo, written.echo),
            (&mut options.headers, written.headers),
            (&mut options.no_responders, written.no_responders),
        ] {
            *place = value.unwrap_or(*place);
        }
        options.protocol = written.protocol.unwrap_or(options.protocol);
        let other = [written.jwt, written.nkey, written.sig, written.account];
        Some(Self {
            name: written.name.or(options.name),
            lang: written.lang.or(options.lang),
            version: written.version.or(options.version),
            user: written.user,
            pass: written.pass,
            auth_token: written.auth_token,
            has_other_credentials: other.into_iter().flatten().any(|text| !text.is_empty()),
            ..options
        })
    }
}

/// What stands in a CONNECT. All of it may be absent or null; what is not known is passed over.
#[derive(Debug, Deserialize)]
struct Written {
    verbose: Option<bool>,
    pedantic: Option<bool>,
    echo: Option<bool>,
    headers: Option<bool>,
    no_responders: Option<bool>,
    protocol: Option<i64>,
    name: Option<String>,
    lang: Option<String>,
    version: Option<String>,
    user: Option<String>,
    pass: Option<String>,
    auth_token: Option<String>,
    jwt: Option<String>,
    nkey: Option<String>,
    sig: Option<String>,
    account: Option<String>,
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
        assert!(!options.with(br#"{"headers":false}"#).unwrap().headers);
    }

    #[test]
    fn what_is_no_connect_is_none() {
        for text in ["", "{", "[]", "1", r#"{"verbose":1}"#, r#"{"user":{}}"#, "{} {}", "\u{feff}{}"] {
            assert_eq!(ConnectOptions::default().with(text.as_bytes()), None, "{text:?}");
        }
        // SECURITY LIM-16: depth costs no stack.
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
