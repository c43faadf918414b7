//! Streams: messages that stay, with sequence numbers, for many readers.
//!
//! A stream is a kind of queue. Its messages are the ready messages of that queue; here is what a stream has beside:
//! the index of their subjects, the consumers, and the requests of readers. All of it is plain data.

mod stream;
mod late_answer;
mod form;
mod consumer;
mod cursor;
mod pull;
mod get;
mod purge;
mod settings;
mod age;
mod size;
mod index;
mod sequences;
mod subjects;
mod filter;

pub use age::parse_age;
pub(crate) use consumer::{Pending, Turn};
pub use consumer::{Position, Settlement, StreamConsumer};
pub(crate) use cursor::Cursor;
pub use cursor::{CursorOptions, ValueFilter};
pub use filter::Filter;
pub use form::{
    Advisory, ConsumerDelivery, NoStreamForms, StreamForm, StreamForms, StreamMessage, StreamRefusal,
};
pub use get::{Get, GetForm, MessageQuery};
pub use index::Index;
pub use late_answer::LateAnswer;
pub use pull::{PullEnd, PullRequest};
pub use purge::StreamPurge;
pub use settings::{AckPolicy, ConsumerSettings, Push, Retention, Start, StreamSettings};
pub(crate) use size::{header_bytes, stored_bytes};
pub use stream::Stream;
pub(crate) use stream::{Answer, Answered};
