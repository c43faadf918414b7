//! A connection's turn, without a runtime: the work that its cell does for it between two waits.
//!
//! [`Task`] is the state machine; [`with_outbound`] and [`flush`] carry bytes from a publisher's turn to another
//! connection's socket. The server's cells run them on sockets, the simulator's on a simulated network; a [`Host`] and
//! a [`Transport`] hide the difference. Nothing here waits, reads a clock or touches a socket.

mod task;
mod input;
mod confirm;
mod flush;
mod outbound_access;
mod host;
mod link;
mod cell_scratch;
mod memory;
mod detached;
mod long_frames;
mod signal;

pub use cell_scratch::{CellScratch, Lent};
pub use confirm::{await_journal, release_confirms};
pub use flush::{flush, flush_touched};
pub use host::{Host, Transport};
pub use link::{Inspector, Link, Wire};
pub use memory::Memory;
pub use outbound_access::{check_memory, give_signal, with_outbound};
pub use signal::{Signal, Signals};
pub use task::Task;
