//! The running broker as the services around it use it: clients, settings, objects, facts and changes.
//!
//! A service of another crate has a [`Broker`] and no other way to the broker's state. It reads one queue or connection
//! at a time, under that one's lock, and changes them by internal clients. The changes that no client has a command for
//! are methods of the handle, which run on a cell.

mod changes;
mod on_cell;
mod observation;
mod figures;
mod store_figures;
mod usage;
mod connections;
mod queues;
mod broker;
mod operator_request;

pub use broker::{Broker, Finishing, may_see};
pub use connections::OpenConnection;
pub use figures::{CellFigures, MemoryFigures};
pub(crate) use on_cell::on_cell;
pub use operator_request::{OperatorRequest, ReloadAnswer, Reloaded};
pub use store_figures::{CommitFigures, JournalFigures, StoreFacts};
pub use usage::Usage;

pub use crate::cell_state::histogram::{BOUNDS_US as LATENCY_BOUNDS_US, Times};
pub use crate::limits::TRACED_MESSAGES_MAX;
pub use crate::peers::publisher_wait::PublisherWait;
pub use crate::peers::sums::{KINDS, Sums, SumsByKind, kind};
pub use crate::store::{COMMIT_BOUNDS_US, Counts as CommitCounts};
pub use crate::traces::{
    CallFigures, MessageTrace, ServiceFigures, TraceFilter, TraceStep, TracedClient, TracedMessage,
};
