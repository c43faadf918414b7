//! Encodes and decodes AMQP 1.0: frames, performatives, SASL, message sections and the values in
//! them.
//!
//! The codec keeps no client state and borrows rather than copies where it can. It allocates only
//! to grow the output buffer. All described lists are in one table, `composites.rs`.

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
