//! A message, its headers in the form of their origin, and the envelope that a broker puts around it.
//!
//! Bytes are borrowed from the connection that sent them until a receiver has to wait. Only then is a [`Message`]
//! made, once, however many queues share it.

mod publication;
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
pub use stored::{BODY_SHARED_MIN, Message};
pub use value::Value;
pub use view::{AddressParts, HeaderReader, HeaderReaders, MessageView, NoHeaders};
