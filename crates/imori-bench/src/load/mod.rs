//! Connections under load: one thread and one epoll drive many of them, each with its role.

pub(crate) mod phase;
pub(crate) mod other_thread;
pub(crate) mod event_loop;
pub(crate) mod requester;
pub(crate) mod responder;
pub(crate) mod publisher;
pub(crate) mod consumer;
pub(crate) mod flow;
pub mod schedule;
mod unconfirmed;
pub(crate) mod spread;
mod calls;
mod arrived_set;
pub(crate) mod held;
