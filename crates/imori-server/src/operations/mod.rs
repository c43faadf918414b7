//! The deeds of operators: what is looked at and changed, apart from the words in which either admin API asks and
//! answers.
//!
//! Whatever changes something is a job for a cell, where the broker's verbs decide and authorize. Looks take one queue
//! or connection at a time, under its lock for a few loads.

pub(crate) mod configuration;
pub(crate) mod limits;
pub(crate) mod users;
pub(crate) mod take_over;
pub(crate) mod vhosts;
pub(crate) mod policies;
pub(crate) mod in_effect;
pub(crate) mod routing;
pub(crate) mod moves;
pub(crate) mod messages;
pub(crate) mod message_facts;
pub(crate) mod publish;
pub(crate) mod queues;
pub(crate) mod links;
pub(crate) mod readers;
pub(crate) mod connections;
pub(crate) mod vhost_operator;
