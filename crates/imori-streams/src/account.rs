//! The limits of an account and of the server, and the level of the API in metadata.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::duration::Nanos;

/// The level of the API that a stream or a consumer requires, in its metadata.
const REQUIRED_LEVEL: &str = "_nats.req.level";

/// The version and the level of the server, in the metadata of answers only.
const SERVER_VERSION: &str = "_nats.ver";
const SERVER_LEVEL: &str = "_nats.level";

/// Stores the level that a configuration requires, and removes what only answers have.
pub fn set_required_level(metadata: &mut BTreeMap<String, String>, level: u32) {
    metadata.remove(SERVER_VERSION);
    metadata.remove(SERVER_LEVEL);
    metadata.insert(REQUIRED_LEVEL.to_string(), level.to_string());
}

/// The limits of an account; -1 for none, or 0 for those of a single stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AccountLimits {
    /// Bytes of streams in memory.
    pub max_memory: i64,
    /// Bytes of streams in files.
    pub max_storage: i64,
    /// Streams.
    pub max_streams: i64,
    /// Consumers of one stream.
    pub max_consumers: i64,
    /// Deliveries of one consumer without an ack.
    pub max_ack_pending: i64,
    /// Bytes of one stream in memory.
    pub memory_max_stream_bytes: i64,
    /// Bytes of one stream in files.
    pub storage_max_stream_bytes: i64,
    /// Every stream must have a limit of bytes.
    pub max_bytes_required: bool,
}

/// No limits.
impl Default for AccountLimits {
    fn default() -> Self {
        Self {
            max_memory: -1,
            max_storage: -1,
            max_streams: -1,
            max_consumers: -1,
            max_ack_pending: -1,
            memory_max_stream_bytes: -1,
            storage_max_stream_bytes: -1,
            max_bytes_required: false,
        }
    }
}

/// The limits of the server; 0 for none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerLimits {
    /// Messages of one pull request, of consumers that have no limit of their own.
    pub max_request_batch: i64,
    /// Deliveries of one consumer without an ack.
    pub max_ack_pending: i64,
    /// Longest duplicate window of a stream.
    pub duplicate_window: Nanos,
    /// Streams and consumers may have more than one replica.
    pub is_clustered: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_of_the_server_is_not_stored() {
        let given = [("k", "v"), ("_nats.ver", "2.12.0"), ("_nats.level", "4")];
        let mut metadata: BTreeMap<_, _> =
            given.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        set_required_level(&mut metadata, 1);
        let pairs: Vec<_> = metadata.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(pairs, [("_nats.req.level", "1"), ("k", "v")]);
    }
}
