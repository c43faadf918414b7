//! `listen` and `server_name`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::problem::{Note, Problems};
use super::syntax::{Directive, one_line};

/// An address to listen on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Listen {
    pub(super) address: String,
    pub(super) port: u16,
    pub(super) is_tls: bool,
    /// Whether the server takes requests of all hosts that no other server names.
    pub(super) is_default: bool,
}

impl Listen {
    /// nginx's address for a server without `listen`.
    pub(super) fn default() -> Listen {
        Listen { address: String::from("0.0.0.0:80"), port: 80, is_tls: false, is_default: false }
    }

    /// Reads a `listen`.
    pub(super) fn read(
        directive: &Directive,
        notes: &mut Vec<Note>,
        problems: &mut Problems,
    ) -> Option<Listen> {
        let Some((address, parameters)) = directive.words.split_first() else {
            problems.add(directive, "it takes an address or a port");
            return None;
        };
        if address.starts_with("unix:") {
            problems.add(directive, "the gateway listens on no Unix sockets; name an address and a port");
            return None;
        }
        let Some((ip, port)) = socket(address) else {
            problems.add(
                directive,
                format!(
                    "`{}` is no IP address with a port; a name has to be replaced by its address",
                    one_line(address)
                ),
            );
            return None;
        };
        let host = match ip {
            IpAddr::V4(ip) => ip.to_string(),
            IpAddr::V6(ip) => format!("[{ip}]"),
        };
        let mut listen = Listen { address: format!("{host}:{port}"), port, is_tls: false, is_default: false };
        let mut is_plain = true;
        for parameter in parameters {
            match parameter.split('=').next().unwrap_or_default() {
                "default_server" | "default" => listen.is_default = true,
                "ssl" => listen.is_tls = true,
                "quic" => {
                    problems.add(directive, "the gateway speaks no HTTP/3; clients use HTTP/2 over `ssl`");
                    return None;
                }
                "proxy_protocol" => problems.add(
                    directive,
                    "the gateway reads no PROXY header; let the proxy before it send `X-Forwarded-For`",
                ),
                "http2" | "spdy" | "deferred" | "bind" | "reuseport" | "backlog" | "rcvbuf" | "sndbuf"
                | "so_keepalive" | "fastopen" | "setfib" | "ipv6only" | "accept_filter" => is_plain = false,
                _ => problems.add(
                    directive,
                    format!("`{}` is left out; nginx does not document it", one_line(parameter)),
                ),
            }
        }
        if !is_plain {
            notes.push(Note::new(directive, "the address is listened on with the gateway's own options"));
        }
        Some(listen)
    }
}

/// Reads `address:port`, an address alone with port 80, or a port alone on all addresses.
fn socket(text: &str) -> Option<(IpAddr, u16)> {
    const ALL: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    let port = |text: &str| text.parse::<u16>().ok().filter(|port| *port > 0);
    if let Some(inner) = text.strip_prefix('[') {
        let (ip, rest) = inner.split_once(']')?;
        let ip: Ipv6Addr = ip.parse().ok()?;
        let port = match rest.strip_prefix(':') {
            Some(text) => port(text)?,
            None if rest.is_empty() => 80,
            None => return None,
        };
        return Some((IpAddr::V6(ip), port));
    }
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some((ALL, port(text)?));
    }
    let (host, port) = match text.split_once(':') {
        Some((host, text)) => (host, port(text)?),
        None => (text, 80),
    };
    match host {
        "*" => Some((ALL, port)),
        "localhost" => Some((IpAddr::V4(Ipv4Addr::LOCALHOST), port)),
        _ => Some((IpAddr::V4(host.parse().ok()?), port)),
    }
}

/// The hosts of a server's `server_name` directives, in lower case; empty if it takes every host.
pub(super) fn hosts(directives: &[&Directive], problems: &mut Problems) -> Vec<String> {
    let mut hosts: Vec<String> = Vec::new();
    let mut is_any = directives.is_empty();
    for directive in directives {
        for name in &directive.words {
            let name = name.to_ascii_lowercase();
            let inner = name.strip_prefix("*.").or_else(|| name.strip_prefix('.')).unwrap_or(&name);
            if name.is_empty() || name == "_" || name == "*" {
                is_any = true;
            } else if name.starts_with('~') {
                problems.add(
                    directive,
                    "hosts are names and `*.name`; list those that the regular expression means",
                );
            } else if inner.ends_with(".*") {
                problems.add(
                    directive,
                    format!("`{}` is left out; list the names that it means", one_line(&name)),
                );
            } else if inner.is_empty()
                || !inner.chars().all(|char| char.is_alphanumeric() || "-._:[]".contains(char))
            {
                problems.add(directive, format!("`{}` is no name of a host", one_line(&name)));
            } else if name.starts_with('.') {
                // nginx: `.example.com` is `example.com` and `*.example.com`.
                hosts.extend([String::from(inner), format!("*.{inner}")]);
            } else {
                hosts.push(name.clone());
            }
        }
    }
    if is_any {
        hosts.clear();
    }
    let mut seen = std::collections::BTreeSet::new();
    hosts.retain(|host| seen.insert(host.clone()));
    hosts
}

#[cfg(test)]
mod tests {
    use super::{Listen, hosts, socket};
    use crate::problem::Problems;
    use crate::syntax::parse;

    #[test]
    fn addresses() {
        for (text, expected) in [
            ("80", Some("0.0.0.0:80")),
            ("*:8080", Some("0.0.0.0:8080")),
            ("127.0.0.1", Some("127.0.0.1:80")),
            ("10.0.0.1:81", Some("10.0.0.1:81")),
            ("localhost:8000", Some("127.0.0.1:8000")),
            ("[::]:80", Some("[::]:80")),
            ("[::1]", Some("[::1]:80")),
            ("[::1]x", None),
            ("example.com:80", None),
            ("8000-8010", None),
            ("0", None),
            ("70000", None),
            ("", None),
        ] {
            let found = socket(text).map(|(ip, port)| std::net::SocketAddr::from((ip, port)).to_string());
            assert_eq!(found.as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn parameters() {
        for (text, is_tls, is_default, problem) in [
            ("listen 80 default_server;", false, true, ""),
            ("listen 443 ssl http2;", true, false, ""),
            ("listen 80 proxy_protocol;", false, false, "PROXY header"),
            ("listen 80 new=1;", false, false, "`new=1` is left out"),
        ] {
            let (mut notes, mut problems) = (Vec::new(), Problems::default());
            let tree = parse(text).unwrap();
            let listen = Listen::read(&tree[0], &mut notes, &mut problems).unwrap();
            assert_eq!((listen.is_tls, listen.is_default), (is_tls, is_default), "{text}");
            let found = problems.sorted();
            assert_eq!(found.is_empty(), problem.is_empty(), "{text}");
            assert!(found.iter().all(|found| found.message.contains(problem)), "{found:?}");
        }
    }

    #[test]
    fn names() {
        for (text, expected, count) in [
            ("server_name Example.com www.example.com;", &["example.com", "www.example.com"][..], 0),
            ("server_name .example.com;", &["example.com", "*.example.com"], 0),
            ("server_name *.example.com;", &["*.example.com"], 0),
            ("server_name _;", &[], 0),
            ("server_name a \"\";", &[], 0),
            ("server_name a.* b;", &["b"], 1),
            ("server_name ~^x b;", &["b"], 1),
            ("server_name a*b;", &[], 1),
        ] {
            let tree = parse(text).unwrap();
            let mut problems = Problems::default();
            let found = hosts(&tree.iter().collect::<Vec<_>>(), &mut problems);
            assert_eq!(found, expected, "{text}");
            assert_eq!(problems.sorted().len(), count, "{text}");
        }
        assert!(hosts(&[], &mut Problems::default()).is_empty());
    }
}
