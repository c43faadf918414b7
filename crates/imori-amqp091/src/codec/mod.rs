//! AMQP's bytes: frames, methods, content headers, tables.
//!
//! The codec has no state of a client, and copies nothing that it can lend. It allocates only to grow the buffer that
//! it writes into.

pub mod frame;
pub mod methods;
pub mod properties;
pub mod push;
pub mod table;
pub mod error;
pub mod method;
pub mod fields;
