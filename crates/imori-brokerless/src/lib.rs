//! Drivers of the load tool for peers without a broker: ZeroMQ and gRPC.
//!
//! They show what a request costs when nothing stands between the two ends. The broker does not
//! link them; `imori-brokerless` is the load tool with them.

mod protocols;
mod zmtp;
mod grpc;
mod calls;
mod pipe;
mod reply;

pub use protocols::PROTOCOLS;
