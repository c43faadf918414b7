//! The operations of both directions, as views of the bytes they came in.

/// An operation of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientOp<'a> {
    /// CONNECT: its options as JSON text.
    Connect(&'a [u8]),
    /// PUB or HPUB.
    Publish(Publish<'a>),
    /// SUB.
    Subscribe(Subscribe<'a>),
    /// UNSUB.
    Unsubscribe(Unsubscribe<'a>),
    /// PING.
    Ping,
    /// PONG.
    Pong,
    /// +OK or INFO, which mean nothing from a client.
    Nothing,
}

/// PUB or HPUB: a message for a subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Publish<'a> {
    /// Where it goes.
    pub subject: &'a [u8],
    /// Where replies to it go.
    pub reply: Option<&'a [u8]>,
    /// The header block of an HPUB with its version line and its empty line; `None` for a PUB.
    pub headers: Option<&'a [u8]>,
    /// The message.
    pub payload: &'a [u8],
}

/// SUB: asks for messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subscribe<'a> {
    /// The subject to hear, with or without wildcards.
    pub subject: &'a [u8],
    /// The queue group of which one member gets each message.
    pub group: Option<&'a [u8]>,
    /// The client's own name of the subscription.
    pub sid: &'a [u8],
}

/// UNSUB: the end of a subscription, at once or after a number of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unsubscribe<'a> {
    /// The client's own name of the subscription.
    pub sid: &'a [u8],
    /// The messages after which it ends, those already delivered included.
    pub max: Option<usize>,
}

/// An operation of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerOp<'a> {
    /// INFO: JSON text.
    Info(&'a [u8]),
    /// MSG or HMSG.
    Message(Message<'a>),
    /// +OK.
    Ok,
    /// -ERR: its text, without the quotes.
    Err(&'a [u8]),
    /// PING.
    Ping,
    /// PONG.
    Pong,
}

/// MSG or HMSG: a message for a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message<'a> {
    /// Where it was sent to.
    pub subject: &'a [u8],
    /// The client's own name of the subscription.
    pub sid: &'a [u8],
    /// Where replies to it go.
    pub reply: Option<&'a [u8]>,
    /// The header block of an HMSG; `None` for a MSG.
    pub headers: Option<&'a [u8]>,
    /// The message.
    pub payload: &'a [u8],
}
