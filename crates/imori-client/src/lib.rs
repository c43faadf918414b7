//! The client's side of each protocol: commands in, bytes out; bytes in, events out.
//!
//! The command line, the load tool and the simulator share it. It does no I/O and waits for
//! nothing; what a client remembers of its messages is up to the caller.

pub mod stomp;
pub mod nats;
pub mod amqp091;
pub mod amqp10;

use std::error::Error;

/// Why the bytes of a broker are not of the protocol.
pub type Malformed = Box<dyn Error + Send + Sync>;
