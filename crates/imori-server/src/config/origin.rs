//! Web origins, which decide what pages may connect.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use super::setting::{Setting, Value, quoted};

/// A web origin as browsers send it: scheme, host and port.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin(String);

impl Origin {
    /// The origin of a scheme and a host with its port; `None` if it is invalid.
    pub fn new(scheme: &str, host: &str) -> Option<Origin> {
        let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
        let is_host = !host.is_empty()
            && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte));
        if !is_scheme || !is_host {
            return None;
        }
        let (scheme, mut host) = (scheme.to_ascii_lowercase(), host.to_ascii_lowercase());
        let default_port = match scheme.as_str() {
            "http" => ":80",
            "https" => ":443",
            _ => "",
        };
        host.truncate(host.strip_suffix(default_port).unwrap_or(&host).len());
        Some(Origin(format!("{scheme}://{host}")))
    }

    /// Whether this is the origin of the host in a request. Either scheme matches, because a proxy may have
    /// terminated TLS.
    pub(crate) fn is_of_host(&self, host: &str) -> bool {
        ["http", "https"].iter().any(|scheme| Origin::new(scheme, host).as_ref() == Some(self))
    }
}

impl FromStr for Origin {
    type Err = NotAnOrigin;

    fn from_str(text: &str) -> Result<Origin, NotAnOrigin> {
        text.split_once("://").and_then(|(scheme, host)| Origin::new(scheme, host)).ok_or(NotAnOrigin)
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Setting for Origin {
    fn read(value: &Value) -> Option<Origin> {
        match value {
            Value::Text(text) => text.parse().ok(),
            _ => None,
        }
    }

    fn expected(_: Option<&RangeInclusive<Origin>>) -> String {
        NotAnOrigin.to_string()
    }

    fn show(&self) -> String {
        quoted(&self.0)
    }
}

/// A text is not an origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotAnOrigin;

impl fmt::Display for NotAnOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an origin such as `https://app.example` or `http://localhost:3000`, without a path")
    }
}

impl std::error::Error for NotAnOrigin {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_a_scheme_a_host_and_perhaps_a_port() {
        for (text, shown) in [
            ("https://app.example", Some("https://app.example")),
            ("HTTPS://App.Example:443", Some("https://app.example")),
            ("http://localhost:3000", Some("http://localhost:3000")),
            ("http://[::1]:80", Some("http://[::1]")),
            ("https://app.example:80", Some("https://app.example:80")),
            ("capacitor://localhost", Some("capacitor://localhost")),
            ("https://app.example/", None),
            ("https://app.example/path", None),
            ("https://user@app.example", None),
            ("https://*.example", None),
            ("https://", None),
            ("://app.example", None),
            ("app.example", None),
            ("null", None),
            ("*", None),
            ("", None),
        ] {
            let origin: Option<Origin> = text.parse().ok();
            assert_eq!(origin.map(|origin| origin.to_string()).as_deref(), shown, "{text}");
        }
    }
}
