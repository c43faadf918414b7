//! WebSocket (RFC 6455) under a protocol: how a connection is upgraded, and how its bytes are framed.
//!
//! To a protocol a WebSocket is a stream like any other: where a message of it begins or ends means nothing.
//! So nothing is gathered here: payload is unmasked where it was read, and written from where it waits.
//! Extensions, compression above all, are not spoken.

mod opening;
mod upgrade_policy;
mod stream;
mod decode;
mod utf8;
mod writer;

pub(crate) use opening::{Opened, Opening, open};
pub(crate) use stream::WebSocketStream;
pub(crate) use upgrade_policy::UpgradePolicy;
pub(crate) use writer::FramedWriter;
