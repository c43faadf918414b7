//! Operations of the admin APIs on the broker: queries and changes. Parsing requests and formatting answers are left to
//! each API.
//!
//! A change runs as a job on a cell, where the broker's verbs decide and authorize. A query takes one queue or
//! connection at a time and holds its lock for a few loads.

pub(crate) mod configuration;
pub(crate) mod limits;
pub(crate) mod users;
pub(crate) mod take_over;
pub(crate) mod guest;
pub(crate) mod stops;
pub(crate) mod vhosts;
pub(crate) mod policies;
pub(crate) mod in_effect;
pub(crate) mod routing;
pub(crate) mod moves;
pub(crate) mod streams;
pub(crate) mod messages;
pub(crate) mod message_facts;
pub(crate) mod publish;
pub(crate) mod queues;
pub(crate) mod readers;
pub(crate) mod connections;
pub(crate) mod vhost_operator;
