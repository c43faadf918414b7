//! How brokers are spoken to: one driver a protocol, and the session that opens a connection.

pub(crate) mod session;
pub(crate) mod stomp;
mod stomp_frame;
pub(crate) mod nats;
mod zmtp;
mod grpc;
mod reply_stream;
mod http2;
mod hpack;
mod huffman;
pub(crate) mod driver;
pub(crate) mod template;
mod credit;
