//! INFO: the server's description of itself, as JSON.

use serde::{Deserialize, Serialize};

/// The version of nats-server to report; clients infer from it which features they may use.
pub const NATS_VERSION: &str = "2.15.0";

/// The contents of INFO.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Info {
    /// An id of the server that stays the same while it runs.
    pub server_id: String,
    /// The configured name of the server.
    pub server_name: String,
    /// The features of the server, as a version of nats-server.
    pub version: String,
    /// 1: the server understands `protocol` in CONNECT.
    pub proto: u32,
    /// The address it listens on.
    pub host: String,
    /// The port it listens on.
    pub port: u16,
    /// The server supports header blocks.
    pub headers: bool,
    /// Clients must log in.
    #[serde(skip_serializing_if = "is_false")]
    pub auth_required: bool,
    /// Clients must begin TLS.
    #[serde(skip_serializing_if = "is_false")]
    pub tls_required: bool,
    /// Clients may begin TLS.
    #[serde(skip_serializing_if = "is_false")]
    pub tls_available: bool,
    /// Maximum bytes of headers and payload of a message.
    pub max_payload: usize,
    /// The server has JetStream.
    #[serde(skip_serializing_if = "is_false")]
    pub jetstream: bool,
    /// The number of the connection.
    pub client_id: u64,
    /// The client's address as seen by the server.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub client_ip: String,
    /// The text to sign for a login with a key.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub nonce: String,
    /// Other addresses to connect to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub connect_urls: Vec<String>,
    /// This INFO follows a CONNECT.
    #[serde(skip_serializing_if = "is_false")]
    pub connect_info: bool,
    /// The server is about to stop ("lame duck mode"); clients should reconnect elsewhere.
    #[serde(skip_serializing_if = "is_false")]
    pub ldm: bool,
}

impl Info {
    /// Parses the JSON of an INFO; absent fields are empty. `None` if it is not valid JSON.
    pub fn parse(json: &[u8]) -> Option<Self> {
        serde_json::from_slice(json).ok()
    }
}

// serde demands this signature.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde lends the field")]
fn is_false(value: &bool) -> bool {
    !value
}
