//! The simulated process and its machine: locks, network, clock and threads.

mod coroutine;
mod shared;
mod waits;
mod idle_task;
mod network;
mod command_pipe;
mod wire_bugs;
mod amqp10_bugs;
mod stream_bugs;
mod slots;
mod lock;

pub(crate) use command_pipe::CommandPipe;
pub(crate) use coroutine::{CoroutineContext, Held};
pub(crate) use idle_task::{Served, Task, Waits};
pub use lock::{Lock, Locks};
pub(crate) use network::{Spoken, Write};
pub(crate) use shared::{CHANNELS_MAX, CellState, PARKED_BYTES_MAX, PipeWire, Shared};
pub(crate) use stream_bugs::{is_unread, read_message, written_streams};
pub(crate) use waits::{STORE_THREADS, Status, Wait};
pub(crate) use wire_bugs::{read_instead, written_instead};
