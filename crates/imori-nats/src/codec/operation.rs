//! The operations of both directions, as views of the input.

/// An operation of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientOp<'a> {
    /// CONNECT, with its options as JSON text.
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
    /// +OK or INFO, which are ignored from a client.
    Nothing,
}

/// PUB or HPUB: a message for a subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Publish<'a> {
    /// The subject to publish to.
    pub subject: &'a [u8],
    /// The subject for replies.
    pub reply: Option<&'a [u8]>,
    /// The header block of an HPUB, from its version line to its empty line; `None` for a PUB.
    pub headers: Option<&'a [u8]>,
    /// The payload.
    pub payload: &'a [u8],
}

/// SUB: a subscription to a subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subscribe<'a> {
    /// The subject to subscribe to, which may have wildcards.
    pub subject: &'a [u8],
    /// The queue group, in which one member gets each message.
    pub group: Option<&'a [u8]>,
    /// The client's name for the subscription.
    pub sid: &'a [u8],
}

/// UNSUB: ends a subscription, at once or after a number of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unsubscribe<'a> {
    /// The client's name for the subscription.
    pub sid: &'a [u8],
    /// The number of messages after which to end, including those already delivered.
    pub max: Option<usize>,
}

/// An operation of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerOp<'a> {
    /// INFO, as JSON text.
    Info(&'a [u8]),
    /// MSG or HMSG.
    Message(Message<'a>),
    /// +OK.
    Ok,
    /// -ERR, with its text without quotes.
    Err(&'a [u8]),
    /// PING.
    Ping,
    /// PONG.
    Pong,
}

/// MSG or HMSG: a message for a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message<'a> {
    /// The subject that the message was sent to.
    pub subject: &'a [u8],
    /// The client's name for the subscription.
    pub sid: &'a [u8],
    /// The subject for replies.
    pub reply: Option<&'a [u8]>,
    /// The header block of an HMSG; `None` for a MSG.
    pub headers: Option<&'a [u8]>,
    /// The payload.
    pub payload: &'a [u8],
}
