//! WebSocket (RFC 6455) below a protocol: the upgrade of a connection, and the framing of its bytes.
//!
//! A protocol sees a byte stream, and message boundaries mean nothing. So messages are not assembled: payload is
//! unmasked in place and written from where it is queued. Extensions such as compression are not supported.

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
