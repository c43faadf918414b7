//! AMQP 1.0's bytes: frames, performatives, SASL, sections of messages, and the values in them.
//!
//! The codec has no state of a client, and copies nothing that it can lend. It allocates only to grow the buffer that
//! it writes into. All lists with a descriptor stand in one table, `composites.rs`.

pub mod frame;
pub mod sections;
pub mod composites;
pub mod composite;
pub mod restricted;
pub mod condition;
pub mod map;
pub mod symbols;
pub mod field;
pub mod push;
pub mod value;
pub(crate) mod check;
pub mod input;
pub mod error;
pub mod constructor;
