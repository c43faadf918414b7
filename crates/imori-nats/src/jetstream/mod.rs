//! The vocabulary of JetStream as values: requests and answers of its API, configurations with
//! nats-server's checks, acknowledgements, headers and statuses.
//!
//! Nothing here touches a queue, a connection or a clock; time arrives as an argument.

pub mod publish_headers;
pub mod batch;
pub mod schedule;
pub mod pull;
pub mod bodies;
pub mod status;
pub mod ack;
pub mod answers;
pub mod consumer_info;
pub mod stream_info;
pub mod request;
pub mod account;
