//! A protocol as small as may be that needs the whole seam: frames with a length in front, channels, several frames
//! a message, credit, merged confirms. Its clients are tests; the recipe "Add a protocol" follows these files.

mod connection;
mod encoder;
mod frame;

pub use connection::{Connection, Settings};
pub use frame::{Fields, Frame, Kind, PAYLOAD_BYTES_MAX, decode, push};
