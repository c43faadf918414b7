//! Streams: messages that stay, with sequence numbers, for many readers.
//!
//! A stream is a kind of queue. Its messages are the ready messages of that queue; here is what a stream has beside:
//! the consumers, and the requests of readers. All of it is plain data.

mod contents;
mod stream;
mod arrivals;
mod ahead;
mod removals;
mod late_answer;
mod batches;
mod form;
mod consumer_report;
mod consumers;
mod pin;
mod consumer;
mod cursor;
mod pace;
mod pull;
mod get;
mod settings;
mod archived;
mod age;
mod size;
mod counter;
mod roles;

pub use age::parse_age;
pub use archived::ArchivedMessage;
pub(crate) use batches::StagedMessage;
pub(crate) use consumer::{NextMessage, Pending};
pub use consumer::{Position, Settlement, StreamConsumer};
pub use contents::{ConsumerContents, CounterContents, IndexedMessage, StreamContents};
pub(crate) use counter::add;
pub(crate) use cursor::Cursor;
pub use cursor::{CursorOptions, ValueFilter};
pub use form::{
    Advisory, AdvisoryKind, ConsumerDelivery, FlowRequest, NoStreamForms, StreamForm, StreamForms,
    StreamMessage, StreamRefusal,
};
pub use get::{Get, GetForm, MessageQuery};
pub use late_answer::LateAnswer;
pub(crate) use pace::Pace;
pub use pull::{Pin, PullEnd, PullRequest, RequestTerms};
pub(crate) use removals::LengthLimits;
pub use removals::Removals;
pub(crate) use roles::Scheduled;
pub use settings::{
    AckPolicy, ConsumerSettings, Push, RequestLimits, RequestPolicy, ResetRefusal, Retention, Start,
    StreamSettings,
};
pub(crate) use size::{header_bytes, stored_bytes};
pub use stream::Stream;
pub(crate) use stream::{Answer, Answered, Outgoing, Republished};
