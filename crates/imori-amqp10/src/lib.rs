//! AMQP 1.0 as a state machine: bytes in, bytes and commands out.
//!
//! The codec serves both ends. The files stand in reading order; every protocol crate has the same ones where it has
//! the same jobs.

pub mod codec;
pub mod limits;
