//! The protocols by name.

use imori_bench::driver::{PeerProtocol, PeerScheme};

use crate::grpc::Grpc;
use crate::zmtp::Zmtp;

/// ZeroMQ one by one, ZeroMQ with many calls in flight, and gRPC.
pub static PROTOCOLS: [PeerProtocol; 3] = [
    PeerProtocol { scheme: PeerScheme { name: "zmq-rep", peer: "zeromq", word: "rep" }, driver: &Zmtp::Req },
    PeerProtocol {
        scheme: PeerScheme { name: "zmq-router", peer: "zeromq", word: "router" },
        driver: &Zmtp::Dealer,
    },
    PeerProtocol { scheme: PeerScheme { name: "grpc", peer: "grpc", word: "grpc" }, driver: &Grpc },
];
