//! Where a broker is and who we are to it.

use std::fmt;
use std::str::FromStr;

use anyhow::{Result, anyhow, bail};

/// The port that STOMP brokers listen on.
const STOMP_PORT: u16 = 61613;

/// `stomp://user:password@host:port/vhost`; all but the host may be left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    /// Name or address of the machine.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Login; `guest` if the URL names none.
    pub user: String,
    /// Password; `guest` if the URL names no user.
    pub password: String,
    /// The `host` header, which names the vhost; `/` if the URL has no path.
    pub vhost: String,
}

impl FromStr for Url {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Url> {
        let Some((scheme, rest)) = text.split_once("://") else {
            bail!("`{text}` is not a URL; write it as `stomp://user:password@host:port`");
        };
        if scheme != "stomp" {
            bail!("`{scheme}://` is not spoken here; use `stomp://`");
        }
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (login, place) = match authority.rsplit_once('@') {
            Some((login, place)) => (Some(login), place),
            None => (None, authority),
        };
        let (user, password) = match login {
            Some(login) => login.split_once(':').unwrap_or((login, "")),
            None => ("guest", "guest"),
        };
        let (host, port) = host_and_port(place)?;
        if host.is_empty() {
            bail!("`{text}` names no host; write it as `stomp://127.0.0.1:{STOMP_PORT}`");
        }
        Ok(Url {
            host: host.to_owned(),
            port,
            user: unescaped(user)?,
            password: unescaped(password)?,
            vhost: if path.is_empty() { "/".to_owned() } else { unescaped(path)? },
        })
    }
}

/// Shows the place without the password, which does not belong into reports.
impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "stomp://[{}]:{}", self.host, self.port),
            false => write!(f, "stomp://{}:{}", self.host, self.port),
        }
    }
}

fn host_and_port(place: &str) -> Result<(&str, u16)> {
    if let Some((host, rest)) = place.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return match rest.strip_prefix(':') {
            Some(port) => Ok((host, port_number(port)?)),
            None => Ok((host, STOMP_PORT)),
        };
    }
    match place.rsplit_once(':') {
        Some((host, port)) => Ok((host, port_number(port)?)),
        None => Ok((place, STOMP_PORT)),
    }
}

fn port_number(text: &str) -> Result<u16> {
    text.parse().map_err(|_| anyhow!("`{text}` is not a port; use a number from 1 to 65535"))
}

fn unescaped(text: &str) -> Result<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        bytes.extend_from_slice(before.as_bytes());
        let digits = after
            .get(..2)
            .ok_or_else(|| anyhow!("`{text}` ends within a `%` escape; write `%25` for `%`"))?;
        let byte = u8::from_str_radix(digits, 16)
            .map_err(|_| anyhow!("`%{digits}` is not an escape; write `%25` for `%`"))?;
        bytes.push(byte);
        rest = after.get(2..).unwrap_or_default();
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8(bytes).map_err(|_| anyhow!("`{text}` is not UTF-8 once unescaped; use UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_has_a_default() {
        for (text, host, port, user, password, vhost) in [
            ("stomp://h", "h", 61613, "guest", "guest", "/"),
            ("stomp://h:1", "h", 1, "guest", "guest", "/"),
            ("stomp://u:p@h:1/v", "h", 1, "u", "p", "v"),
            ("stomp://u@h/%2Fv", "h", 61613, "u", "", "/v"),
            ("stomp://u:p%40x@[::1]:5", "::1", 5, "u", "p@x", "/"),
            ("stomp://[::1]", "::1", 61613, "guest", "guest", "/"),
        ] {
            let url: Url = text.parse().unwrap();
            assert_eq!(
                (url.host.as_str(), url.port, url.user.as_str(), url.password.as_str(), url.vhost.as_str()),
                (host, port, user, password, vhost),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_no_url_is_refused() {
        for text in [
            "",
            "h:1",
            "http://h",
            "stomp://",
            "stomp://h:x",
            "stomp://h:70000",
            "stomp://h/%2",
            "stomp://h/%zz",
        ] {
            assert!(text.parse::<Url>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_password_is_never_shown() {
        let url: Url = "stomp://u:secret@h:1".parse().unwrap();
        assert_eq!(url.to_string(), "stomp://h:1");
    }
}
