//! Routing, queues, subscriptions and inboxes as plain, deterministic values.
//!
//! The modules below are listed in the order in which a message meets them. Deliberately absent:
//! protocols, sockets, clocks, locks and logs; the program that runs the core lends it these
//! through [`world::World`].

pub mod internal;
pub mod inbound;
pub mod turn;
pub mod broker;
mod definitions;
mod pipeline;
pub mod world;
pub mod restore;
mod streaming;
pub mod record;
pub mod topology;
pub mod error;
pub mod login;
pub mod authorize;
pub mod certificate;
pub mod paging;
pub mod arguments;
pub mod queue;
mod consumers;
pub mod stream;
pub mod index;
pub mod entries;
pub mod outbound;
mod features;
pub mod activity;
pub mod responses;
pub mod delivery;
pub mod route;
pub mod selector;
pub mod message;
pub mod confirm;
pub mod room;
pub mod memory;
pub mod quota;
pub mod policy;
mod expression;
pub mod name;
pub mod id;
pub mod time;
pub mod limits;
