//! Administration over HTTP in RabbitMQ's shape: the paths, names, types and units of its management API, as far as
//! clients' tests, probes and `rabbitmqadmin` use them.
//!
//! Answers are made on a thread of their own, so that a client that floods, or never reads, costs no cell. They look at
//! queues and connections one at a time, under each one's lock for a few loads, and a list is written 256 rows at a
//! time. Whatever changes something is a job for a cell, where the broker's verbs authorize it: a second way into the
//! core could forget that. A figure that this broker does not have is absent.

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
