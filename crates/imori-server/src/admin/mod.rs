//! Administration over HTTP in RabbitMQ's shape: the paths, names, types and units of its management API, as far as
//! clients' tests, probes and `rabbitmqadmin` use them.
//!
//! A thread of its own answers, so a client that floods, or never reads, costs no cell. It locks one queue or
//! connection at a time for a few loads, and writes a list 256 rows at a time. Every change is a job for a cell, where
//! the broker's verbs authorize it; a second way into the core could forget that. A figure that this broker does not
//! have is absent.

mod routes;
mod probes;
mod health;
mod overview;
mod definitions;
mod users;
mod permissions;
mod vhosts;
mod limits;
mod messages;
mod policies;
mod declarations;
mod channels;
mod exchanges;
mod queues;
mod connections;

pub(crate) use routes::routes;
