//! Places of the broker, as a run names them.

use crate::workload::QueueSpec;

/// A place of the broker, whatever a protocol calls it.
#[derive(Debug, Clone)]
pub(crate) enum Place {
    /// A queue, which is declared by use where the protocol can.
    Queue(String),
    /// A queue that is there.
    DeclaredQueue(String),
    /// A subject of the topic exchange, or a pattern with the wildcards of AMQP.
    Topic(String),
    /// An address for replies, as a delivery named it.
    Reply(String),
}

impl Place {
    /// The place of a queue of the run.
    pub(crate) fn of(spec: &QueueSpec) -> Place {
        match spec.pattern {
            Some(_) => Place::DeclaredQueue(spec.name.clone()),
            None => Place::Queue(spec.name.clone()),
        }
    }
}
