//! Administration over HTTP in RabbitMQ's shape: the paths, names, types and units of its management API, as far as
//! clients' tests, probes and `rabbitmqadmin` use them.
//!
//! Requests run on a thread of their own, so a client that floods or never reads takes no time from the cells. A
//! handler locks one queue or connection at a time, for a few loads, and writes a list 256 rows at a time. Changes to
//! queues, exchanges, bindings and messages run on a cell through the broker's verbs, which authorize them; a second
//! way into the core could skip that check. Figures that this broker does not have are absent.

pub(crate) mod routes;
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
