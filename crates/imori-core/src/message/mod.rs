//! What travels: a message, its headers in their origin's own form, and the envelope a broker puts around it.
//!
//! Bytes are borrowed from the connection that sent them until somebody has to wait for
//! them; only then is a [`Message`] made, once, however many queues share it.

mod publication;
mod stored;
mod view;
mod properties;
mod envelope;
mod address;
mod value;

pub use address::{Address, AddressView, DEFAULT_EXCHANGE, TOPIC_EXCHANGE};
pub use envelope::{Death, DeathReason, Deaths, Envelope};
pub use properties::{OriginId, Origins, Properties, Property, Span};
pub use publication::Publication;
pub use stored::{BODY_SHARED_MIN, Message};
pub use value::Value;
pub use view::{AddressParts, HeaderReader, HeaderReaders, MessageView, NoHeaders};
