//! JetStream: executes the requests of its API, its acknowledgements, and gives the messages of streams their form.
//!
//! A request is a message to a subject of `$JS.`, and its answer is a message to the reply subject. The vocabulary is in
//! `jetstream/`; streams are the core's.

mod request;
mod transfers;
mod streams;
mod consumers;
mod messages;
mod acks;
mod call;
mod archived;
mod info;
mod forms;
mod asks;
mod advisories;

pub use archived::NatsArchives;
pub(crate) use asks::{answer_refused, asks_of};
pub use forms::NatsStreams;
pub use info::{Details, consumer_info, stream_info};
pub(crate) use request::{API_PREFIX, perform};
