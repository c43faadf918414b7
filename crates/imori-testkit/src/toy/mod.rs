//! A minimal protocol that exercises the whole seam between protocols and core: length-prefixed
//! frames, channels, messages in several frames, credit, merged confirms. Only tests speak it; the
//! recipe "Add a protocol" follows its files.

mod connection;
mod encoder;
mod frame;

pub use connection::{Connection, Settings};
pub use frame::{Fields, Frame, Kind, PAYLOAD_BYTES_MAX, decode, push};
