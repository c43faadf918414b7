//! The broker's server: cells, sockets, threads, storage and HTTP around the core.

mod server;
mod operator;
mod reload;
mod transfers;
mod start;
pub mod http;
pub mod broker;
mod thread;
mod internal;
mod net;
mod checkpoint;
mod watch;
mod cell;
mod link_verdicts;
mod audit;
mod shared;
mod services;
pub mod access;
pub mod credentials;
mod jwt;
mod traces;
mod fetch;
mod store;
pub mod turn;
mod settings;
pub mod protocols;
mod run_facts;
mod pipe;
mod websocket;
pub mod tls;
mod peers;
mod quotas;
mod bodies;
pub mod stall;
pub mod login;
mod cell_state;
mod slots;
pub mod json_value;
mod clock;
pub mod config;
mod limits;

pub use access::FirstPassword;
pub use broker::{OperatorRequest, ReloadAnswer, Reloaded};
pub use cell_state::turn_counter::TurnCounter;
pub use checkpoint::checkpointer::{Pauses, checkpoint_last, checkpoint_once};
pub use checkpoint::host::CheckpointHost;
pub use internal::{
    ClientOptions, ConsumeOptions, DeclaredQueue, InternalClient, InternalClients, InternalError, Published,
    SubscribeOptions, Subscription,
};
pub use jwt::KeysError;
pub use reload::{ReloadError, Reloader};
pub use server::{LiveUsers, Server, StopHandle};
pub use services::{
    AcceptedConnection, AutomationState, GatewayFigures, ImportDefinitions, Importing, RouteFigures,
    ScriptFault, Services, TakeConnections,
};
pub use settings::{Listener, Settings};
pub use shared::{Phase, ServeError};
pub use start::small_disk::{SmallDisk, small_disk};
pub use start::start_error::StartError;
pub use store::{
    Checkpointer, Job, PageHost, PageNews, PageRequest, Purpose, Room, StoreError, discard_pages, do_job,
    manifest_mark, page_facts, page_request, read_journal, write_drafts,
};
pub use transfers::{StreamRestore, StreamSnapshot, TransferError};
