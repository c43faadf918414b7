//! Which broker a command talks to: `stomp://user:password@host:port/vhost`, `nats://user:password@host:port`.

use std::error::Error;
use std::fmt;
use std::str::FromStr;

/// The protocol that a URL begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scheme {
    Stomp,
    Nats,
}

impl Scheme {
    /// What stands at the beginning.
    fn prefix(self) -> &'static str {
        match self {
            Scheme::Stomp => "stomp://",
            Scheme::Nats => "nats://",
        }
    }

    /// The port of a broker that names none.
    fn default_port(self) -> u16 {
        match self {
            Scheme::Stomp => 61613,
            Scheme::Nats => 4222,
        }
    }
}

/// A broker, and who we are to it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Url {
    pub(crate) scheme: Scheme,
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
        write!(f, "{}{}:{}", self.scheme.prefix(), self.host, self.port)
    }
}

impl FromStr for Url {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Url, UrlError> {
        let known = |scheme: Scheme| text.strip_prefix(scheme.prefix()).map(|rest| (scheme, rest));
        let found = known(Scheme::Stomp).or_else(|| known(Scheme::Nats));
        let (scheme, rest) = found.ok_or(UrlError::Scheme)?;
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (login, address) = match authority.rsplit_once('@') {
            Some((login, address)) => (Some(parse_login(login)?), address),
            None => (None, authority),
        };
        let (host, port) = parse_address(address)?;
        let vhost = match (scheme, path) {
            (_, "") => String::from("/"),
            (Scheme::Stomp, _) => percent_decoded(path)?,
            (Scheme::Nats, _) => return Err(UrlError::Vhost),
        };
        Ok(Url { scheme, login, host, port: port.unwrap_or(scheme.default_port()), vhost })
    }
}

fn parse_login(text: &str) -> Result<(String, String), UrlError> {
    let (user, password) = text.split_once(':').unwrap_or((text, ""));
    Ok((percent_decoded(user)?, percent_decoded(password)?))
}

fn parse_address(text: &str) -> Result<(String, Option<u16>), UrlError> {
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
        Some(port) => Some(port.parse().map_err(|_| UrlError::Port)?),
        None => None,
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
    Vhost,
    Escape,
}

impl fmt::Display for UrlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            UrlError::Scheme => "it begins neither with `stomp://` nor with `nats://`",
            UrlError::Host => "it names no host",
            UrlError::Port => "its port is not a number up to 65535",
            UrlError::Vhost => "it names a vhost, which NATS cannot",
            UrlError::Escape => "it has a `%` without two hexadecimal digits, or they are not UTF-8",
        })?;
        f.write_str(match self {
            UrlError::Vhost => "; write it as `nats://user:password@host:4222`, with a user of that vhost",
            _ => "; write it as `stomp://user:password@host:61613/vhost` or `nats://user:password@host:4222`",
        })
    }
}

impl Error for UrlError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_taken_apart() {
        for (text, scheme, login, host, port, vhost) in [
            (
                "stomp://guest:guest@127.0.0.1:61613/",
                Scheme::Stomp,
                Some(("guest", "guest")),
                "127.0.0.1",
                61613,
                "/",
            ),
            ("stomp://mq.example", Scheme::Stomp, None, "mq.example", 61613, "/"),
            ("stomp://[::1]:1/a", Scheme::Stomp, None, "::1", 1, "a"),
            ("stomp://u@h/%2F", Scheme::Stomp, Some(("u", "")), "h", 61613, "/"),
            ("stomp://u:p%40%3a@h/a%20b/c", Scheme::Stomp, Some(("u", "p@:")), "h", 61613, "a b/c"),
            ("nats://h", Scheme::Nats, None, "h", 4222, "/"),
            ("nats://u:p@[::1]:1/", Scheme::Nats, Some(("u", "p")), "::1", 1, "/"),
        ] {
            let login = login.map(|(user, password)| (String::from(user), String::from(password)));
            let (host, vhost) = (String::from(host), String::from(vhost));
            assert_eq!(text.parse(), Ok(Url { scheme, login, host, port, vhost }), "{text}");
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
            ("nats://", UrlError::Host),
            ("nats://h/v", UrlError::Vhost),
        ] {
            assert_eq!(text.parse::<Url>(), Err(error), "{text}");
        }
    }

    // SECURITY OPS-02
    #[test]
    fn the_password_is_not_shown() {
        for (text, shown) in
            [("stomp://user:canary@h", "stomp://h:61613"), ("nats://user:canary@h", "nats://h:4222")]
        {
            let url: Url = text.parse().unwrap();
            assert_eq!(format!("{url:?}"), shown);
        }
    }
}
