//! Declares, finds and deletes queues, exchanges and bindings.
//!
//! All changes happen under the topology lock. Durable ones are recorded there too, so that the
//! order of definitions in the journal is the order of the changes.

mod change;
mod delete;
mod bind;
mod delete_exchange;
mod declare;
mod republish;
mod look_up;

pub(crate) use bind::check_private;
pub use bind::{bind_exchange, bind_queue, unbind_exchange, unbind_queue};
pub use change::change_stream;
pub use declare::{Declared, declare_exchange, declare_queue, declare_unnamed_queue};
pub use delete::{DeleteOptions, Deleted, delete_queue, delete_queue_if};
pub(crate) use delete::{delete_idle, delete_unused, remove_queue};
pub use delete_exchange::delete_exchange;
pub(crate) use delete_exchange::record_auto_deleted;
pub(crate) use look_up::find_plain_queue;
pub use look_up::{QueueInspection, find_queue, look_up_exchange, look_up_queue};
