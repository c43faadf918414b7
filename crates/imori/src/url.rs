//! Which broker a command talks to: `stomp://user:password@host:port/vhost`.

use std::error::Error;
use std::fmt;
use std::str::FromStr;

/// The port of a STOMP broker that names none.
const DEFAULT_PORT: u16 = 61613;

/// A broker, and who we are to it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Url {
    /// The login and its password, if there is one.
    pub(crate) login: Option<(String, String)>,
    /// A name or an IP address, IPv6 without its brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// `/` unless the path names one.
    pub(crate) vhost: String,
}

/// Never shows the password.
impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "stomp://{}:{}", self.host, self.port)
    }
}

impl FromStr for Url {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Url, UrlError> {
        let rest = text.strip_prefix("stomp://").ok_or(UrlError::Scheme)?;
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (login, address) = match authority.rsplit_once('@') {
            Some((login, address)) => (Some(parse_login(login)?), address),
            None => (None, authority),
        };
        let (host, port) = parse_address(address)?;
        let vhost = match path {
            "" => String::from("/"),
            _ => percent_decoded(path)?,
        };
        Ok(Url { login, host, port, vhost })
    }
}

fn parse_login(text: &str) -> Result<(String, String), UrlError> {
    let (user, password) = text.split_once(':').unwrap_or((text, ""));
    Ok((percent_decoded(user)?, percent_decoded(password)?))
}

fn parse_address(text: &str) -> Result<(String, u16), UrlError> {
    let (host, port) = match text.strip_prefix('[') {
        Some(bracketed) => {
            let (host, rest) = bracketed.split_once(']').ok_or(UrlError::Host)?;
            (host, rest.strip_prefix(':'))
        }
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    if host.is_empty() {
        return Err(UrlError::Host);
    }
    let port = match port {
        Some(port) => port.parse().map_err(|_| UrlError::Port)?,
        None => DEFAULT_PORT,
    };
    Ok((String::from(host), port))
}

fn percent_decoded(text: &str) -> Result<String, UrlError> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let (digits, after) = rest.split_first_chunk::<2>().ok_or(UrlError::Escape)?;
        let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        let [high, low] = digits.map(digit);
        decoded.push(high.ok_or(UrlError::Escape)? * 16 + low.ok_or(UrlError::Escape)?);
        rest = after;
    }
    String::from_utf8(decoded).map_err(|_| UrlError::Escape)
}

/// Why a text is not the URL of a broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UrlError {
    Scheme,
    Host,
    Port,
    Escape,
}

impl fmt::Display for UrlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            UrlError::Scheme => "it does not begin with `stomp://`",
            UrlError::Host => "it names no host",
            UrlError::Port => "its port is not a number up to 65535",
            UrlError::Escape => "it has a `%` without two hexadecimal digits, or they are not UTF-8",
        })?;
        f.write_str("; write it as `stomp://user:password@host:61613/vhost`")
    }
}

impl Error for UrlError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_taken_apart() {
        for (text, login, host, port, vhost) in [
            ("stomp://guest:guest@127.0.0.1:61613/", Some(("guest", "guest")), "127.0.0.1", 61613, "/"),
            ("stomp://mq.example", None, "mq.example", 61613, "/"),
            ("stomp://[::1]:1/a", None, "::1", 1, "a"),
            ("stomp://u@h/%2F", Some(("u", "")), "h", 61613, "/"),
            ("stomp://u:p%40%3a@h/a%20b/c", Some(("u", "p@:")), "h", 61613, "a b/c"),
        ] {
            let login = login.map(|(user, password)| (String::from(user), String::from(password)));
            let expected = Url { login, host: String::from(host), port, vhost: String::from(vhost) };
            assert_eq!(text.parse(), Ok(expected), "{text}");
        }
        for (text, error) in [
            ("http://h", UrlError::Scheme),
            ("stomp://", UrlError::Host),
            ("stomp://:1", UrlError::Host),
            ("stomp://[::1", UrlError::Host),
            ("stomp://h:", UrlError::Port),
            ("stomp://h:65536", UrlError::Port),
            ("stomp://h/%2", UrlError::Escape),
            ("stomp://h/%zz", UrlError::Escape),
            ("stomp://h/%ff", UrlError::Escape),
        ] {
            assert_eq!(text.parse::<Url>(), Err(error), "{text}");
        }
    }

    // SECURITY OPS-02
    #[test]
    fn the_password_is_not_shown() {
        let url: Url = "stomp://user:canary@h".parse().unwrap();
        assert_eq!(format!("{url:?}"), "stomp://h:61613");
    }
}
