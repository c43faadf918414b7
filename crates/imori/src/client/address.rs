//! Addresses of AMQP on the command line, written as in STOMP.

use super::error::ClientError;

/// Where to publish to or consume from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Address<'a> {
    /// A queue by its name.
    Queue(&'a str),
    /// A key of the exchange for topics.
    Topic(&'a str),
    /// An exchange and a routing key.
    Exchange(&'a str, &'a str),
}

impl<'a> Address<'a> {
    /// Reads `/queue/NAME`, `/topic/KEY`, `/exchange/NAME/KEY` or the bare name of a queue.
    pub fn parse(text: &'a str) -> Result<Address<'a>, ClientError> {
        let address = match text.split_once('/') {
            None => Some(Address::Queue(text)),
            Some(("", rest)) => match rest.split_once('/') {
                Some(("queue", name)) => Some(Address::Queue(name)),
                Some(("topic", key)) => Some(Address::Topic(key)),
                Some(("exchange", rest)) => {
                    let (name, key) = rest.split_once('/').unwrap_or((rest, ""));
                    Some(Address::Exchange(name, key))
                }
                _ => None,
            },
            Some(_) => None,
        };
        let is_named = |address: &Address<'_>| {
            let (Address::Queue(name) | Address::Topic(name) | Address::Exchange(name, _)) = address;
            !name.is_empty()
        };
        address.filter(is_named).ok_or_else(|| {
            ClientError::Unspeakable(format!(
                "`{text}` is no address; write `/queue/NAME`, `/topic/KEY`, `/exchange/NAME/KEY` or the name of a queue"
            ))
        })
    }
}
