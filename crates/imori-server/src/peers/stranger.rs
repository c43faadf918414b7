//! Recognizes clients of another protocol by their first bytes, to give a hint in the log.

use super::proxy::begins_header;
use crate::config::{ListenerName, ProtocolName, Service};

/// Bytes needed to tell protocols apart.
pub(crate) const BYTES_MAX: usize = 9;

/// First bytes of HTTP requests.
const HTTP: [&[u8]; 6] = [b"GET ", b"HEAD ", b"POST ", b"PUT ", b"DELETE ", b"OPTIONS "];

/// First bytes of STOMP clients.
const STOMP: [&[u8]; 4] = [b"CONNECT\n", b"CONNECT\r\n", b"STOMP\n", b"STOMP\r\n"];

/// First bytes of NATS clients that do not wait for the broker's INFO.
const NATS: [&[u8]; 4] = [b"CONNECT {", b"PING\r\n", b"SUB ", b"PUB "];

/// First bytes of clients of any AMQP version.
const AMQP: [&[u8]; 1] = [b"AMQP"];

/// For a proxy that is not configured.
const PROXY_HINT: &str =
    "it begins with a header of PROXY protocol 2; name the proxy's network in `broker.proxy_from`";

/// The first bytes of a connection.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct FirstBytes {
    bytes: [u8; BYTES_MAX],
    len: usize,
}

impl FirstBytes {
    /// Records the first bytes read.
    #[inline]
    pub(crate) fn note(&mut self, read: &[u8]) {
        if self.len < BYTES_MAX {
            self.bytes.iter_mut().skip(self.len).zip(read).for_each(|(byte, read)| *byte = *read);
            self.len = (self.len + read.len()).min(BYTES_MAX);
        }
    }

    /// Whether they begin a TLS handshake.
    pub(crate) fn is_tls(&self) -> bool {
        self.bytes.get(..self.len).unwrap_or_default().starts_with(&[0x16, 3])
    }

    /// A guess, for the log, at what a refused client of this listener speaks; `None` if it may be the right
    /// protocol.
    pub(crate) fn hint(&self, listener: ListenerName) -> Option<&'static str> {
        let first = self.bytes.get(..self.len).unwrap_or_default();
        let begins = |forms: &[&[u8]]| forms.iter().any(|form| first.starts_with(form));
        let protocol = match listener.service {
            _ if begins_header(first) && first.len() == BYTES_MAX => return Some(PROXY_HINT),
            _ if listener.is_tls => return self.hint_at_tls(),
            _ if self.is_tls() => return Some(tls_hint(listener.service)),
            Service::Messages(protocol) => protocol,
            Service::WebSocket
            | Service::NatsMonitor
            | Service::Admin
            | Service::Automation
            | Service::Http => return None,
        };
        match protocol {
            _ if begins(&HTTP) => Some(
                "it speaks HTTP; that is at `listeners.ws`, the monitor at `listeners.nats_monitor`, administration at `listeners.admin`",
            ),
            ProtocolName::Nats | ProtocolName::Amqp if begins(&STOMP) => {
                Some("it speaks STOMP; that is at `listeners.stomp`")
            }
            ProtocolName::Stomp | ProtocolName::Amqp if begins(&NATS) => {
                Some("it speaks NATS; that is at `listeners.nats`")
            }
            ProtocolName::Stomp | ProtocolName::Nats if begins(&AMQP) => {
                Some("it speaks AMQP; 0-9-1 and 1.0 are at `listeners.amqp`")
            }
            ProtocolName::Stomp if first.is_empty() => {
                Some("it said nothing; a client of NATS waits for the broker to begin, at `listeners.nats`")
            }
            _ => None,
        }
    }
}

impl FirstBytes {
    /// A guess at what a client speaks that did not begin TLS at a listener that requires it.
    fn hint_at_tls(&self) -> Option<&'static str> {
        let first = self.bytes.get(..self.len).unwrap_or_default();
        let begins = |forms: &[&[u8]]| forms.iter().any(|form| first.starts_with(form));
        match first {
            [] => None,
            _ if self.is_tls() => None,
            _ if begins(&STOMP) => Some("it speaks STOMP without TLS; that is at `listeners.stomp`"),
            _ if begins(&NATS) => Some("it speaks NATS without TLS; that is at `listeners.nats`"),
            _ if begins(&AMQP) => Some("it speaks AMQP without TLS; that is at `listeners.amqp`"),
            _ if begins(&HTTP) => {
                Some("it speaks HTTP without TLS; that is at the listeners without `tls` in their names")
            }
            _ => Some("it does not begin with TLS; connect with it"),
        }
    }
}

/// The listener to use instead, for a client that began TLS at a plain listener.
fn tls_hint(service: Service) -> &'static str {
    match service {
        Service::Messages(ProtocolName::Stomp) => {
            "it begins with TLS, which is spoken at `listeners.stomp_tls`; connect there, or without TLS"
        }
        Service::Messages(ProtocolName::Nats) => {
            "it begins with TLS, which is spoken at `listeners.nats_tls`; connect there, or without TLS"
        }
        Service::Messages(ProtocolName::Amqp) => {
            "it begins with TLS, which is spoken at `listeners.amqp_tls`; connect there, or without TLS"
        }
        Service::WebSocket => {
            "it begins with TLS, which is spoken at `listeners.ws_tls`; connect there, or with `ws://`"
        }
        Service::NatsMonitor => {
            "it begins with TLS, which is spoken at `listeners.nats_monitor_tls`; connect there, or with `http://`"
        }
        Service::Admin => {
            "it begins with TLS, which is spoken at `listeners.admin_tls`; connect there, or with `http://`"
        }
        Service::Automation => {
            "it begins with TLS, which is spoken at `listeners.automation_tls`; connect there, or with `http://`"
        }
        Service::Http => {
            "it begins with TLS, which is spoken at `listeners.http_tls`; connect there, or with `http://`"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_bytes_tell_the_protocol() {
        use ProtocolName::{Amqp, Nats, Stomp};
        for (first, protocol, expected) in [
            (&b"\x16\x03\x01\x02\x00\x01\x00"[..], Stomp, Some("TLS")),
            (b"\x16\x03\x01", Nats, Some("TLS")),
            (b"GET / HTTP/1.1\r\n", Stomp, Some("HTTP")),
            (b"GET / HTTP/1.1\r\n", Nats, Some("HTTP")),
            (b"CONNECT\naccept-version:1.2\n", Nats, Some("STOMP")),
            (b"STOMP\r\n", Nats, Some("STOMP")),
            (b"CONNECT {\"verbose\":false}", Stomp, Some("NATS")),
            (b"PING\r\n", Stomp, Some("NATS")),
            (b"", Stomp, Some("NATS")),
            (b"", Nats, None),
            (b"CONNECT\naccept-version:1.2\n", Stomp, None),
            (b"CONNECT {\"verbose\":false}", Nats, None),
            (b"nonsense", Nats, None),
            (b"AMQP\x00\x00\x09\x01", Stomp, Some("AMQP")),
            (b"AMQP\x00\x01\x00\x00", Nats, Some("AMQP")),
            (b"AMQP\x00\x00\x09\x01", Amqp, None),
            (b"\r\n\r\n\0\r\nQUIT\n", Amqp, Some("PROXY")),
            (b"\r\n\r\n", Stomp, None),
            (b"CONNECT\naccept-version:1.2\n", Amqp, Some("STOMP")),
            (b"CONNECT {\"verbose\":false}", Amqp, Some("NATS")),
        ] {
            let mut whole = FirstBytes::default();
            whole.note(first);
            let mut cut = FirstBytes::default();
            first.chunks(2).for_each(|part| cut.note(part));
            for noted in [whole, cut] {
                let at_tls = noted.hint(ListenerName::tls(Service::Messages(protocol)));
                assert_eq!(
                    at_tls.is_some(),
                    !first.is_empty() && first[0] != 0x16,
                    "{}",
                    first.escape_ascii()
                );
                let hint = noted.hint(ListenerName::plain(Service::Messages(protocol)));
                assert_eq!(hint.is_some(), expected.is_some(), "{}", first.escape_ascii());
                assert!(hint.unwrap_or_default().contains(expected.unwrap_or_default()), "{hint:?}");
            }
        }
    }
}
