//! Identities of live things: small numbers with a generation, so that a stale one finds nothing.

/// A namespace with its own exchanges, queues and rights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VhostId(pub u32);

/// A queue; the generation tells a re-used slot from the queue it held before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueId {
    /// Slot in the runtime's table of queues.
    pub slot: u32,
    /// How often the slot was used before.
    pub generation: u32,
}

/// A durable queue, for the life of its store: the number of the record that declared it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DurableQueueId(pub u64);

/// A connection, and with it the cell that owns it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId {
    /// The cell that owns the connection.
    pub cell: u16,
    /// Slot in that cell's table of connections.
    pub slot: u32,
    /// How often the slot was used before.
    pub generation: u32,
}

/// A session of a connection: STOMP and NATS have one, AMQP has many.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub u16);

impl SessionId {
    /// The session that every connection has from its start to its end.
    pub const FIRST: SessionId = SessionId(0);
}

/// A consumer or a live subscription within a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReaderId {
    /// Slot in the connection's table of readers.
    pub slot: u32,
    /// How often the slot was used before.
    pub generation: u32,
}

/// A reader and the connection it belongs to: where a delivery goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reader {
    /// Whose reader it is.
    pub connection: ConnectionId,
    /// Which of that connection's readers.
    pub id: ReaderId,
}
