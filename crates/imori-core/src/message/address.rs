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

/// An address whose subject is in its sender's buffer, made an [`Address`] when somebody has to keep it.
///
/// That of a reply is used once, and mostly by nobody who keeps it.
#[derive(Debug)]
pub struct PassingAddress<'a> {
    exchange: &'a Name,
    subject: &'a [u8],
    kept: OnceCell<Arc<Address>>,
}

impl<'a> PassingAddress<'a> {
    /// An address that nobody keeps yet.
    pub fn new(exchange: &'a Name, subject: &'a [u8]) -> PassingAddress<'a> {
        PassingAddress { exchange, subject, kept: OnceCell::new() }
    }
}

/// An address as those see it to whom a message comes.
#[derive(Debug, Clone, Copy)]
pub enum AddressView<'a> {
    /// Somebody keeps it.
    Kept(&'a Arc<Address>),
    /// Nobody may have kept it so far.
    Passing(&'a PassingAddress<'a>),
}

impl<'a> AddressView<'a> {
    /// The exchange; empty for the default exchange.
    #[inline]
    pub fn exchange(self) -> &'a [u8] {
        match self {
            AddressView::Kept(address) => address.exchange.as_bytes(),
            AddressView::Passing(address) => address.exchange.as_bytes(),
        }
    }

    /// The subject.
    #[inline]
    pub fn subject(self) -> &'a [u8] {
        match self {
            AddressView::Kept(address) => address.subject.as_bytes(),
            AddressView::Passing(address) => address.subject,
        }
    }

    /// The address in a form that can be kept: one for all who ask.
    pub fn keep(self) -> Arc<Address> {
        let kept = match self {
            AddressView::Kept(address) => address,
            AddressView::Passing(PassingAddress { exchange, subject, kept }) => kept.get_or_init(|| {
                Arc::new(Address { exchange: Name::clone(exchange), subject: Name::new(subject) })
            }),
        };
        Arc::clone(kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_who_keep_a_passing_address_share_it() {
        let exchange = Name::from("amq.topic");
        let passing = PassingAddress::new(&exchange, b"a.b");
        let view = AddressView::Passing(&passing);
        assert_eq!((view.exchange(), view.subject()), (&b"amq.topic"[..], &b"a.b"[..]));
        let kept = view.keep();
        assert_eq!(*kept, Address::new(b"amq.topic", b"a.b"));
        assert!(Arc::ptr_eq(&kept, &view.keep()));
        assert!(Arc::ptr_eq(&kept, &AddressView::Kept(&kept).keep()));
    }
}
