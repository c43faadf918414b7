//! The simulated process and its machine: locks, network, clock and threads, as the scheduler sees them.

mod coroutine;
mod shared;
mod waits;
mod idle_task;
mod network;
mod wire_bugs;
mod slots;
mod lock;

pub(crate) use coroutine::{CoroutineContext, Held};
pub(crate) use idle_task::{Task, Waits};
pub(crate) use lock::Lock;
pub(crate) use network::Write;
pub(crate) use shared::{CellState, PipeWire, Shared};
pub(crate) use waits::{STORE_THREADS, Status, Wait};
pub(crate) use wire_bugs::{read_instead, written_instead};
