//! The queue: stored messages that leave once they are settled.
//!
//! A queue is plain data. It takes messages, consumers, outcomes and the time, and returns the effects for
//! its caller to carry out. Locks and sockets are not its concern.

mod throttle;
mod get;
mod contents;
mod peek;
mod publish;
mod due;
mod deliver;
mod seek;
mod die;
mod purge;
mod in_effect;
mod leave;
mod queue;
mod pending_dead_letters;
mod waiting_publishers;
mod settings;
mod dedup;
#[cfg(test)]
mod test_stage;

pub use crate::consumers::{ConsumeRefusal, Selection};
pub use crate::policy::Overflow;
pub use contents::{Contents, KeptMessage, MessageState, ReadEntries};
pub use dedup::Dedup;
pub use get::Got;
pub use in_effect::{Sources, in_effect};
pub use leave::{DeadLetter, Effects, RareEffects};
pub use peek::{Peek, PeekPage, PeekPart};
pub use publish::{Arrival, Published, QueueFull};
pub use queue::{Durability, Queue};
pub use settings::{DeadLetterTarget, NO_LOCAL_ARGUMENT, QueueSettings};
#[cfg(test)]
pub(crate) use test_stage::{dead_lettering, entry};
#[cfg(test)]
pub(crate) use waiting_publishers::throttled_above;
