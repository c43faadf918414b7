//! Messages that leave once they are settled.
//!
//! A queue is plain data: it is handed messages, consumers, outcomes and the time, and
//! answers with what has to be done. Who locks it and who writes to a socket is not its concern.

mod queue;
mod settings;
mod consumers;
mod delayed;
mod dedup;
mod ready;

pub use consumers::ConsumeRefusal;
pub use dedup::Dedup;
pub use queue::{Arrival, Dead, Durability, Effects, Published, Queue, QueueFull};
pub use settings::{DeadLetter, Overflow, QueueSettings};
