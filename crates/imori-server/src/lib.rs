//! The broker's runtime: cells, sockets, timers, limits.

mod server;
mod prepare;
mod start_error;
mod small_disk;
mod monitor;
mod listener;
mod thread;
mod internal;
mod connection;
mod socket;
mod stalled;
mod keep;
mod spill;
mod keeper_host;
mod watch;
mod cell;
mod shared;
mod store;
pub mod turn;
mod settings;
pub mod protocol;
pub mod protocol_numbers;
mod pipe;
mod websocket;
mod client;
mod stall;
mod pulse;
mod counters;
pub mod login;
mod admission;
mod complaints;
mod load;
mod spin;
mod turns;
mod slots;
mod host_names;
mod clock;
mod memory_limit;
mod limits;
pub mod config;

pub use internal::{InternalClient, InternalClients, InternalError};
pub use keep::{Pauses, keep_last, keep_once};
pub use keeper_host::KeeperHost;
pub use server::{Listener, Server, StopHandle};
pub use shared::ServeError;
pub use small_disk::{SmallDisk, small_disk};
pub use start_error::StartError;
pub use store::{
    Asked, Job, Keeper, PageHost, PageNews, Purpose, Room, StoreError, asked, discard_pages, do_job,
    manifest_of, page_facts, read_journal, write_drafts,
};
pub use turns::Turns;
