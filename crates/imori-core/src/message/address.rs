//! The address of a message: an exchange and a subject.

use std::cell::OnceCell;
use std::sync::Arc;

use crate::name::Name;

/// The exchange that routes each key to the queue with that name.
pub const DEFAULT_EXCHANGE: &[u8] = b"";

/// The exchange of NATS subjects, MQTT topics and STOMP `/topic/`.
pub const TOPIC_EXCHANGE: &[u8] = b"amq.topic";

/// The prefix of routing keys on the default exchange that stand for an address on any exchange. No queue has
/// such a name.
pub const ADDRESS_KEY_PREFIX: &[u8] = b"imori.address.";

/// Encodes an address as a routing key of the default exchange, for protocols that have only keys as reply
/// addresses. `None` if the exchange has a slash in its name, because a slash ends the exchange.
pub fn address_key(exchange: &[u8], subject: &[u8]) -> Option<Vec<u8>> {
    let is_plain = !exchange.contains(&b'/');
    is_plain.then(|| [ADDRESS_KEY_PREFIX, exchange, b"/", subject].concat())
}

/// The exchange and subject that a publisher means: decoded from a key of [`address_key`], or unchanged.
#[inline]
pub fn meant_address<'a>(exchange: &'a [u8], subject: &'a [u8]) -> (&'a [u8], &'a [u8]) {
    if exchange.is_empty() && subject.starts_with(ADDRESS_KEY_PREFIX) {
        return behind_key(subject).unwrap_or((exchange, subject));
    }
    (exchange, subject)
}

#[cold]
fn behind_key(key: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = key.strip_prefix(ADDRESS_KEY_PREFIX)?;
    let slash = rest.iter().position(|byte| *byte == b'/')?;
    Some((rest.get(..slash)?, rest.get(slash + 1..)?))
}

/// An exchange, and a subject (AMQP's routing key) on it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Address {
    /// The exchange; empty for the default exchange.
    pub exchange: Name,
    /// The subject or routing key; on the default exchange, the name of a queue.
    pub subject: Name,
}

impl Address {
    /// Creates an address from its two parts.
    pub fn new(exchange: &[u8], subject: &[u8]) -> Address {
        Address { exchange: Name::new(exchange), subject: Name::new(subject) }
    }
}

/// A borrowed address; becomes an [`Address`] only when a queue stores it.
///
/// The address of a reply is used once, and is rarely stored.
#[derive(Debug)]
pub struct AddressView<'a> {
    exchange: &'a Name,
    subject: &'a [u8],
    source: Option<&'a Arc<Address>>,
    kept: OnceCell<Arc<Address>>,
}

impl<'a> AddressView<'a> {
    /// Creates a view of a stored address.
    #[inline]
    pub fn new(address: &'a Arc<Address>) -> AddressView<'a> {
        let Address { exchange, subject } = &**address;
        AddressView { exchange, subject: subject.as_bytes(), source: Some(address), kept: OnceCell::new() }
    }

    /// Creates a view of an address with its subject still in the sender's buffer.
    #[inline]
    pub fn passing(exchange: &'a Name, subject: &'a [u8]) -> AddressView<'a> {
        AddressView { exchange, subject, source: None, kept: OnceCell::new() }
    }

    /// The exchange; empty for the default exchange.
    #[inline]
    pub fn exchange(&self) -> &'a [u8] {
        self.exchange.as_bytes()
    }

    /// The subject or routing key; on the default exchange, the name of a queue.
    #[inline]
    pub fn subject(&self) -> &'a [u8] {
        self.subject
    }

    /// The address in a form that can be stored; all callers share one.
    pub fn keep(&self) -> Arc<Address> {
        let make = || Arc::new(Address { exchange: self.exchange.clone(), subject: Name::new(self.subject) });
        Arc::clone(self.source.unwrap_or_else(|| self.kept.get_or_init(make)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_stands_for_any_address() {
        for (exchange, subject) in [("amq.topic", "_INBOX.1"), ("x", "a/b"), ("", "q"), ("", ""), ("x", "")] {
            let (exchange, subject) = (exchange.as_bytes(), subject.as_bytes());
            let key = address_key(exchange, subject).unwrap();
            assert_eq!(meant_address(b"", &key), (exchange, subject));
            assert_eq!(
                meant_address(b"other", &key),
                (&b"other"[..], &*key),
                "it is a key of the default exchange"
            );
            // The key is not decoded twice.
            let twice = address_key(b"", &key).unwrap();
            assert_eq!(meant_address(b"", &twice), (&b""[..], &*key));
        }
        assert_eq!(address_key(b"a/b", b"c"), None);
        for own in [&b"imori.address.x"[..], b"imori.addres", b"q"] {
            assert_eq!(meant_address(b"", own), (&b""[..], own));
        }
    }

    #[test]
    fn all_who_keep_a_passing_address_share_it() {
        let exchange = Name::from("amq.topic");
        let view = AddressView::passing(&exchange, b"a.b");
        assert_eq!((view.exchange(), view.subject()), (&b"amq.topic"[..], &b"a.b"[..]));
        let kept = view.keep();
        assert_eq!(*kept, Address::new(b"amq.topic", b"a.b"));
        assert!(Arc::ptr_eq(&kept, &view.keep()));
        assert!(Arc::ptr_eq(&kept, &AddressView::new(&kept).keep()));
    }
}
