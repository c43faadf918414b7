//! The name of a session within its connection.

/// A session of a connection: STOMP and NATS have one, AMQP has many.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub u16);

impl SessionId {
    /// The session that every connection has from its start to its end.
    pub const FIRST: SessionId = SessionId(0);
}
