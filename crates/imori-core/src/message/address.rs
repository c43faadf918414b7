//! Where a message is sent to.

use std::cell::OnceCell;
use std::sync::Arc;

use crate::name::Name;

/// The exchange that routes a key to the queue of that name.
pub const DEFAULT_EXCHANGE: &[u8] = b"";

/// The exchange in which NATS subjects, MQTT topics and STOMP `/topic/` live.
pub const TOPIC_EXCHANGE: &[u8] = b"amq.topic";

/// An exchange and a subject (AMQP's routing key) in it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Address {
    /// The exchange; empty for the default exchange.
    pub exchange: Name,
    /// The subject.
    pub subject: Name,
}

impl Address {
    /// Makes an address of its two parts.
    pub fn new(exchange: &[u8], subject: &[u8]) -> Address {
        Address { exchange: Name::new(exchange), subject: Name::new(subject) }
    }
}

/// An address as those see it to whom a message comes: made an [`Address`] when somebody has to keep it.
///
/// That of a reply is used once, and mostly by nobody who keeps it.
#[derive(Debug)]
pub struct AddressView<'a> {
    exchange: &'a Name,
    subject: &'a [u8],
    source: Option<&'a Arc<Address>>,
    kept: OnceCell<Arc<Address>>,
}

impl<'a> AddressView<'a> {
    /// A view of an address that is kept already.
    #[inline]
    pub fn new(address: &'a Arc<Address>) -> AddressView<'a> {
        let Address { exchange, subject } = &**address;
        AddressView { exchange, subject: subject.as_bytes(), source: Some(address), kept: OnceCell::new() }
    }

    /// A view of an address whose subject is in its sender's buffer.
    #[inline]
    pub fn passing(exchange: &'a Name, subject: &'a [u8]) -> AddressView<'a> {
        AddressView { exchange, subject, source: None, kept: OnceCell::new() }
    }

    /// The exchange; empty for the default exchange.
    #[inline]
    pub fn exchange(&self) -> &'a [u8] {
        self.exchange.as_bytes()
    }

    /// The subject.
    #[inline]
    pub fn subject(&self) -> &'a [u8] {
        self.subject
    }

    /// The address in a form that can be kept: one for all who ask.
    pub fn keep(&self) -> Arc<Address> {
        let make = || Arc::new(Address { exchange: self.exchange.clone(), subject: Name::new(self.subject) });
        Arc::clone(self.source.unwrap_or_else(|| self.kept.get_or_init(make)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
