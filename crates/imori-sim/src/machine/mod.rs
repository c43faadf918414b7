//! The simulated process and its machine: locks, network, clock and threads.

mod coroutine;
mod shared;
mod waits;
mod idle_task;
mod network;
mod internal;
mod board;
mod wire_bugs;
mod amqp10_bugs;
mod slots;
mod lock;

pub(crate) use board::Board;
pub(crate) use coroutine::{CoroutineContext, Held};
pub(crate) use idle_task::{Served, Task, Waits};
pub(crate) use internal::Internal;
pub(crate) use lock::Lock;
pub(crate) use network::{Spoken, Write};
pub(crate) use shared::{CHANNELS_MAX, CellState, PipeWire, Shared};
pub(crate) use waits::{STORE_THREADS, Status, Wait};
pub(crate) use wire_bugs::{read_instead, written_instead};
