//! The address of the automation's store on a server.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use super::setting::{Setting, Value, quoted};

/// An address such as `postgres://user:password@host/database`. It is shown without the password.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct StoreAddress(String);

impl StoreAddress {
    /// The address as given, with the password.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl FromStr for StoreAddress {
    type Err = NotAStoreAddress;

    fn from_str(text: &str) -> Result<StoreAddress, NotAStoreAddress> {
        let rest = text.strip_prefix("postgres://").or_else(|| text.strip_prefix("postgresql://"));
        let is_taken = rest.is_some_and(|rest| !rest.is_empty() && !rest.contains(char::is_whitespace));
        is_taken.then(|| StoreAddress(text.to_owned())).ok_or(NotAStoreAddress)
    }
}

impl Setting for StoreAddress {
    fn read(value: &Value) -> Option<StoreAddress> {
        match value {
            Value::Text(text) => text.parse().ok(),
            _ => None,
        }
    }

    fn expected(_: Option<&RangeInclusive<StoreAddress>>) -> String {
        NotAStoreAddress.to_string()
    }

    fn show(&self) -> String {
        quoted(&without_password(&self.0))
    }
}

impl fmt::Debug for StoreAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.show())
    }
}

/// The text with `***` in the place of the password of a URL, whether it stands before the host or in the query.
pub fn without_password(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    let (authority, tail) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    // A password may have a slash that nobody has escaped.
    let (authority, tail) = match (authority.contains('@'), rest.rfind('@')) {
        (false, Some(at)) => rest.split_at(at),
        _ => (authority, tail),
    };
    let authority = match authority.rfind('@').unwrap_or(authority.len()) {
        end if end == authority.len() && !tail.starts_with('@') => authority.to_owned(),
        end => {
            let (login, host) = authority.split_at(end);
            match login.split_once(':') {
                Some((user, _)) => format!("{user}:***{host}"),
                None => authority.to_owned(),
            }
        }
    };
    let tail = match tail.split_once('?') {
        Some((path, query)) => {
            let pairs: Vec<String> = query
                .split('&')
                .map(|pair| match pair.split_once('=') {
                    Some((name, _)) if name.eq_ignore_ascii_case("password") => format!("{name}=***"),
                    _ => pair.to_owned(),
                })
                .collect();
            format!("{path}?{}", pairs.join("&"))
        }
        None => tail.to_owned(),
    };
    format!("{scheme}://{authority}{tail}")
}

/// A text is not the address of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotAStoreAddress;

impl fmt::Display for NotAStoreAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an address such as `postgres://user:password@host/database`")
    }
}

impl std::error::Error for NotAStoreAddress {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_shown() {
        for (text, shown) in [
            ("postgres://imori:secret@db.example/imori", "postgres://imori:***@db.example/imori"),
            ("postgres://imori:sec@ret:@db.example:5433/imori", "postgres://imori:***@db.example:5433/imori"),
            ("postgres://imori:sec/ret@db.example/imori", "postgres://imori:***@db.example/imori"),
            ("postgresql://imori@%2Frun%2Fpg/imori", "postgresql://imori@%2Frun%2Fpg/imori"),
            ("postgres://h/imori?user=imori&password=secret", "postgres://h/imori?user=imori&password=***"),
            ("postgres://imori:secret@h?sslmode=require", "postgres://imori:***@h?sslmode=require"),
            ("postgres://h:5432/imori", "postgres://h:5432/imori"),
            ("no address", "no address"),
        ] {
            assert_eq!(without_password(text), shown, "{text}");
        }
        let address: StoreAddress = "postgres://imori:secret@h/imori".parse().unwrap();
        assert!(!format!("{address:?} {}", address.show()).contains("secret"));
    }

    #[test]
    fn other_addresses_are_refused() {
        for text in ["", "state.db", "mysql://h/imori", "postgres://", "postgres://h/a b"] {
            assert_eq!(text.parse::<StoreAddress>(), Err(NotAStoreAddress), "{text}");
        }
    }
}
