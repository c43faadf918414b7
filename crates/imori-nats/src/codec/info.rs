//! INFO: what a server says of itself, as JSON.

use serde::{Deserialize, Serialize};

/// The version of nats-server whose protocol is spoken here: clients decide by it what they may use.
pub const NATS_VERSION: &str = "2.11.0";

/// The facts that a server tells of itself in INFO.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Info {
    /// A name of the server that holds for as long as it runs.
    pub server_id: String,
    /// The name that people gave to the server.
    pub server_name: String,
    /// The abilities of the server, as a version of nats-server.
    pub version: String,
    /// 1: it understands the `protocol` of CONNECT.
    pub proto: u32,
    /// Where it listens.
    pub host: String,
    /// Where it listens.
    pub port: u16,
    /// The server passes header blocks on.
    pub headers: bool,
    /// Clients have to log in.
    #[serde(skip_serializing_if = "is_false")]
    pub auth_required: bool,
    /// Clients have to begin TLS.
    #[serde(skip_serializing_if = "is_false")]
    pub tls_required: bool,
    /// Clients may begin TLS.
    #[serde(skip_serializing_if = "is_false")]
    pub tls_available: bool,
    /// Bytes of headers and payload of a message.
    pub max_payload: usize,
    /// The number of the client's connection.
    pub client_id: u64,
    /// The client's address as the server sees it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub client_ip: String,
    /// A text that clients sign who log in by a key.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub nonce: String,
    /// Other addresses to connect to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub connect_urls: Vec<String>,
    /// The INFO follows a CONNECT, and the server knows of it.
    #[serde(skip_serializing_if = "is_false")]
    pub connect_info: bool,
    /// The server is going to stop: clients should go elsewhere.
    #[serde(skip_serializing_if = "is_false")]
    pub ldm: bool,
}

impl Info {
    /// Reads the JSON of an INFO; what is absent is empty. `None` where it is not JSON.
    pub fn parse(json: &[u8]) -> Option<Self> {
        serde_json::from_slice(json).ok()
    }
}

// The signature is what serde asks for.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde lends the field")]
fn is_false(value: &bool) -> bool {
    !value
}
