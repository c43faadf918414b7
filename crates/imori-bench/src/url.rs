//! Where a broker is, and the login to use.

use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

use anyhow::{Result, anyhow, bail};

/// The protocol that a URL begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// `stomp://`
    Stomp,
    /// `nats://`
    Nats,
    /// `amqp://`: AMQP 0-9-1.
    Amqp,
    /// `amqp10://`: AMQP 1.0.
    Amqp10,
    /// A brokerless protocol that the program adds.
    Peer(PeerScheme),
}

/// The names by which URLs and peers refer to a brokerless protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerScheme {
    /// The part of a URL before `://`.
    pub name: &'static str,
    /// The peer that speaks it, such as `zeromq`.
    pub peer: &'static str,
    /// The word after the peer's name and a colon, such as `rep` in `zeromq:rep`.
    pub word: &'static str,
}

/// The brokerless protocols that the program added.
static BROUGHT: OnceLock<Vec<PeerScheme>> = OnceLock::new();

/// Adds schemes that URLs may have, for the whole process; only the first call counts.
pub fn bring(schemes: Vec<PeerScheme>) {
    BROUGHT.get_or_init(|| schemes);
}

/// Schemes with TLS, each with the protocol inside.
const TLS: [(&str, Scheme); 5] = [
    ("stomps", Scheme::Stomp),
    ("stomp+ssl", Scheme::Stomp),
    ("amqps", Scheme::Amqp),
    ("amqp10s", Scheme::Amqp10),
    ("tls", Scheme::Nats),
];

/// The location of a broker or a peer.
///
/// `stomp://user:password@host:port/vhost`, `amqp://user:password@host:port/vhost`, `amqp10://`
/// likewise and `nats://user:password@host:port` need only scheme and host. `stomps://` (or
/// `stomp+ssl://`), `amqps://`, `amqp10s://` and `tls://` (NATS) are the same with TLS. The
/// `scheme://host:port/path` of a peer also needs its port, and has no user.
#[derive(Clone, PartialEq, Eq)]
pub struct Url {
    /// The protocol.
    pub scheme: Scheme,
    /// Whether the protocol is spoken inside TLS.
    pub is_tls: bool,
    /// Name or address of the machine.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// User and password, if the URL names them.
    pub login: Option<(String, String)>,
    /// The vhost, or the path for a peer's protocol; `/` if the URL has no path.
    pub vhost: String,
}

impl Url {
    /// User and password, if the URL names them.
    pub fn user(&self) -> Option<(&str, &str)> {
        self.login.as_ref().map(|(user, password)| (user.as_str(), password.as_str()))
    }
}

impl FromStr for Url {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Url> {
        let Some((scheme, rest)) = text.split_once("://") else {
            bail!("`{text}` is not a URL; write it as `stomp://user:password@host:port`");
        };
        let Some((scheme, is_tls)) = scheme_of(scheme) else {
            let with_tls = ["stomps", "amqps", "amqp10s", "tls"].into_iter();
            let known = Scheme::all().map(Scheme::name).chain(with_tls);
            let known: Vec<String> = known.map(|name| format!("`{name}://`")).collect();
            bail!("`{scheme}://` is not spoken here; use {}", known.join(" or "));
        };
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (login, place) = match authority.rsplit_once('@') {
            Some((login, place)) => (Some(login), place),
            None => (None, authority),
        };
        let login = match login.map(|login| login.split_once(':').unwrap_or((login, ""))) {
            Some((user, password)) => Some((unescaped(user)?, unescaped(password)?)),
            None => None,
        };
        let (host, port) = host_and_port(place)?;
        if host.is_empty() {
            bail!("`{text}` names no host; write it as `{}`", scheme.sample());
        }
        let Some(port) = port.or(scheme.port(is_tls)) else {
            bail!(
                "`{text}` names no port, and this protocol has none of its own; write it as `{}`",
                scheme.sample()
            );
        };
        if scheme == Scheme::Nats && !path.is_empty() {
            bail!("`{path}` names a vhost, which NATS cannot; leave it out and log in as a user of it");
        }
        if matches!(scheme, Scheme::Peer(_)) && login.is_some() {
            bail!(
                "`{text}` names a user, and this protocol is spoken without; write it as `{}`",
                scheme.sample()
            );
        }
        Ok(Url {
            scheme,
            is_tls,
            host: host.to_owned(),
            port,
            login,
            vhost: if path.is_empty() { "/".to_owned() } else { unescaped(path)? },
        })
    }
}

impl Scheme {
    /// All schemes that URLs may have.
    fn all() -> impl Iterator<Item = Scheme> {
        [Scheme::Stomp, Scheme::Nats, Scheme::Amqp, Scheme::Amqp10].into_iter().chain(Scheme::of_peers())
    }

    /// The schemes that the program added.
    pub fn of_peers() -> impl Iterator<Item = Scheme> {
        BROUGHT.get().into_iter().flatten().map(|scheme| Scheme::Peer(*scheme))
    }

    /// The scheme of a URL, if it is known.
    pub fn of(url: &str) -> Option<Scheme> {
        let (name, _) = url.split_once("://")?;
        scheme_of(name).map(|(scheme, _)| scheme)
    }

    /// The part of a URL before `://`.
    fn name(self) -> &'static str {
        match self {
            Scheme::Stomp => "stomp",
            Scheme::Nats => "nats",
            Scheme::Amqp => "amqp",
            Scheme::Amqp10 => "amqp10",
            Scheme::Peer(scheme) => scheme.name,
        }
    }

    /// The word after a peer's name and a colon, such as `nats` in `imori:nats`.
    pub fn word(self) -> &'static str {
        match self {
            Scheme::Stomp | Scheme::Nats | Scheme::Amqp | Scheme::Amqp10 => self.name(),
            Scheme::Peer(scheme) => scheme.word,
        }
    }

    /// The URL of a peer started on loopback.
    pub fn on_loopback(self, port: u16) -> String {
        let login =
            if matches!(self, Scheme::Stomp | Scheme::Amqp | Scheme::Amqp10) { "guest:guest@" } else { "" };
        format!("{}://{login}127.0.0.1:{port}", self.name())
    }

    /// The default port of a broker; `None` for peers, which choose theirs.
    fn port(self, is_tls: bool) -> Option<u16> {
        match (self, is_tls) {
            (Scheme::Stomp, false) => Some(61613),
            (Scheme::Stomp, true) => Some(61614),
            (Scheme::Nats, _) => Some(4222),
            (Scheme::Amqp | Scheme::Amqp10, false) => Some(5672),
            (Scheme::Amqp | Scheme::Amqp10, true) => Some(5671),
            (Scheme::Peer(_), _) => None,
        }
    }

    /// An example URL for error messages.
    fn sample(self) -> String {
        format!("{}://127.0.0.1:{}", self.name(), self.port(false).unwrap_or(5555))
    }
}

/// The protocol of a scheme, and whether it runs inside TLS.
fn scheme_of(name: &str) -> Option<(Scheme, bool)> {
    let plain = Scheme::all().find(|scheme| scheme.name() == name).map(|scheme| (scheme, false));
    plain.or_else(|| TLS.into_iter().find(|(tls, _)| *tls == name).map(|(_, scheme)| (scheme, true)))
}

/// Omits the password, so that it never appears in a log.
impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Omits the password, so that it never appears in a report.
impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Url { scheme, is_tls, host, port, .. } = self;
        let tls = TLS.into_iter().find(|(_, inside)| *is_tls && inside == scheme);
        let name = tls.map_or(scheme.name(), |(name, _)| name);
        match host.contains(':') {
            true => write!(f, "{name}://[{host}]:{port}"),
            false => write!(f, "{name}://{host}:{port}"),
        }
    }
}

fn host_and_port(place: &str) -> Result<(&str, Option<u16>)> {
    if let Some(bracketed) = place.strip_prefix('[') {
        let Some((host, rest)) = bracketed.split_once(']') else {
            bail!("`{place}` has no `]`; write the address as `[::1]:61613`");
        };
        return match rest.strip_prefix(':') {
            Some(port) => Ok((host, Some(port_number(port)?))),
            None => Ok((host, None)),
        };
    }
    match place.split_once(':') {
        Some((host, port)) => Ok((host, Some(port_number(port)?))),
        None => Ok((place, None)),
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

/// Adds two protocols of the peer `zeromq` and returns the first.
#[cfg(test)]
pub(crate) fn brought_for_tests() -> PeerScheme {
    let one = PeerScheme { name: "one", peer: "zeromq", word: "rep" };
    let many = PeerScheme { name: "many", peer: "zeromq", word: "router" };
    bring(vec![one, many]);
    one
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_has_a_default() {
        let one = Scheme::Peer(brought_for_tests());
        for (text, scheme, host, port, login, vhost) in [
            ("stomp://h", Scheme::Stomp, "h", 61613, None, "/"),
            ("stomp://h:1", Scheme::Stomp, "h", 1, None, "/"),
            ("stomp://u:p@h:1/v", Scheme::Stomp, "h", 1, Some(("u", "p")), "v"),
            (
                "stomp://guest:guest@127.0.0.1:61613/",
                Scheme::Stomp,
                "127.0.0.1",
                61613,
                Some(("guest", "guest")),
                "/",
            ),
            ("stomp://u@h/%2Fv", Scheme::Stomp, "h", 61613, Some(("u", "")), "/v"),
            ("stomp://u:p%40%3a@h/a%20b/c", Scheme::Stomp, "h", 61613, Some(("u", "p@:")), "a b/c"),
            ("stomp://u:p%40x@[::1]:5", Scheme::Stomp, "::1", 5, Some(("u", "p@x")), "/"),
            ("stomp://[::1]", Scheme::Stomp, "::1", 61613, None, "/"),
            ("nats://h", Scheme::Nats, "h", 4222, None, "/"),
            ("amqp://h", Scheme::Amqp, "h", 5672, None, "/"),
            ("amqp://u:p@h:1/%2F", Scheme::Amqp, "h", 1, Some(("u", "p")), "/"),
            ("nats://u:p@h:1/", Scheme::Nats, "h", 1, Some(("u", "p")), "/"),
            ("stomps://h", Scheme::Stomp, "h", 61614, None, "/"),
            ("stomp+ssl://h:1/v", Scheme::Stomp, "h", 1, None, "v"),
            ("amqps://h", Scheme::Amqp, "h", 5671, None, "/"),
            ("amqp10://u:p@h/v", Scheme::Amqp10, "h", 5672, Some(("u", "p")), "v"),
            ("amqp10s://h", Scheme::Amqp10, "h", 5671, None, "/"),
            ("tls://[::1]", Scheme::Nats, "::1", 4222, None, "/"),
            ("one://h:1", one, "h", 1, None, "/"),
            ("one://[::1]:1/", one, "::1", 1, None, "/"),
            ("one://h:1/a.B/C", one, "h", 1, None, "a.B/C"),
        ] {
            let login = login.map(|(user, password)| (user.to_owned(), password.to_owned()));
            let is_tls =
                ["tls", "stomps", "stomp+ssl", "amqps", "amqp10s"].iter().any(|name| text.starts_with(name));
            let expected =
                Url { scheme, is_tls, host: host.to_owned(), port, login, vhost: vhost.to_owned() };
            assert_eq!(text.parse::<Url>().unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_url_is_refused() {
        brought_for_tests();
        for text in [
            "",
            "h:1",
            "http://h",
            "stomp://",
            "stomp://:1",
            "stomp://[::1",
            "stomp://h:",
            "stomp://h:1:2",
            "stomp://h/%ff",
            "stomp://h:x",
            "stomp://h:70000",
            "stomp://h/%2",
            "stomp://h/%zz",
            "nats://",
            "nats://h/v",
            "tls://h/v",
            "https://h",
            "one://h",
            "one://[::1]",
            "one://h/a.B/C",
            "one://u:p@h:1",
            "one://u@h:1",
        ] {
            assert!(text.parse::<Url>().is_err(), "{text}");
        }
    }

    // SECURITY OPS-02
    #[test]
    fn a_password_is_never_shown() {
        for (text, shown) in [
            ("stomp://u:secret@h:1", "stomp://h:1"),
            ("nats://u:secret@[::1]", "nats://[::1]:4222"),
            ("stomp+ssl://u:secret@h", "stomps://h:61614"),
        ] {
            let url: Url = text.parse().unwrap();
            assert_eq!(url.to_string(), shown);
            assert_eq!(format!("{url:?}"), shown);
        }
    }
}
