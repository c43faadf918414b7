//! Ids of live objects: small numbers with a generation, so that a stale id finds nothing.

/// A namespace with its own exchanges, queues and rights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VhostId(pub u32);

/// A queue; the generation distinguishes it from earlier queues in the same slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueId {
    /// The slot in the runtime's table of queues.
    pub slot: u32,
    /// The number of earlier uses of the slot.
    pub generation: u32,
}

/// A durable queue, for the life of its store: the number of the record that declared it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DurableQueueId(pub u64);

/// A connection, including the cell that owns it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId {
    /// The cell that owns the connection.
    pub cell: u16,
    /// The slot in that cell's table of connections.
    pub slot: u32,
    /// The number of earlier uses of the slot.
    pub generation: u32,
}

/// A session of a connection; STOMP and NATS have one, AMQP has many.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub u16);

impl SessionId {
    /// The session that every connection has for its whole life.
    pub const FIRST: SessionId = SessionId(0);
}

/// A consumer or a live subscription within a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReaderId {
    /// The slot in the connection's table of readers.
    pub slot: u32,
    /// The number of earlier uses of the slot.
    pub generation: u32,
}

/// A reader with its connection, to which deliveries are addressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reader {
    /// The connection that owns the reader.
    pub connection: ConnectionId,
    /// The reader within the connection.
    pub id: ReaderId,
}
