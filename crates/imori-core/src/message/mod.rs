//! A message, its headers in their origin's form, and its envelope in a queue.
//!
//! Bytes are borrowed from the sending connection until a receiver has to wait. Only then is a [`Message`]
//! created, once, however many queues share it.

mod publication;
mod stream_publish;
mod schedule;
mod stored;
mod view;
mod properties;
mod envelope;
mod address;
mod text;
mod value;

pub use address::{
    ADDRESS_KEY_PREFIX, Address, AddressView, DEFAULT_EXCHANGE, TOPIC_EXCHANGE, address_key, meant_address,
};
pub use envelope::{Death, DeathReason, Deaths, Envelope};
pub use properties::{OriginId, Origins, Properties, Property, Span};
pub use publication::Publication;
pub use schedule::{Calendar, Schedule, ScheduleTimes, ScheduleTtl};
pub use stored::{BODY_SHARED_MIN, Message};
pub use stream_publish::{BatchEnd, BatchPublish, Receipt, Rollup, StreamAsks, StreamPublish};
pub use value::Value;
pub use view::{AddressParts, FILTER_VALUE, HeaderReader, HeaderReaders, MessageView, NoHeaders, OFFSET};
