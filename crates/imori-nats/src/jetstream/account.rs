//! The limits of an account and of the server, and the answer that reports them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::codec::duration::Nanos;

/// The highest level of the API whose features the configurations have: fast batches and the ack
/// policy `flow_control`.
pub const API_LEVEL: u32 = 4;

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

/// The usage of an account, or of one of its tiers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct AccountTier {
    /// Bytes in memory.
    pub memory: u64,
    /// Bytes in files.
    pub storage: u64,
    /// Bytes that the limits of streams in memory add up to.
    pub reserved_memory: u64,
    /// Bytes that the limits of streams in files add up to.
    pub reserved_storage: u64,
    /// Streams.
    pub streams: u64,
    /// Consumers.
    pub consumers: u64,
    /// The limits.
    pub limits: AccountLimits,
}

/// The answer to INFO.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct AccountInfo {
    /// Usage and limits.
    #[serde(flatten)]
    pub tier: AccountTier,
    /// The domain, if one is configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// Requests to the API.
    pub api: ApiStats,
    /// Usage and limits by the name of the tier.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tiers: BTreeMap<String, AccountTier>,
}

/// Requests to the API since the start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ApiStats {
    /// The level of the API.
    pub level: u32,
    /// Requests received.
    pub total: u64,
    /// Requests that were answered with an error.
    pub errors: u64,
    /// Requests without an answer so far.
    #[serde(skip_serializing_if = "is_none_in_flight")]
    pub inflight: u64,
}

impl Default for ApiStats {
    fn default() -> Self {
        Self { level: API_LEVEL, total: 0, errors: 0, inflight: 0 }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_none_in_flight(count: &u64) -> bool {
    *count == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answer of nats-server 2.15 to INFO, but for the level.
    #[test]
    fn an_account_is_written_as_nats_server_writes_it() {
        let limits = concat!(
            r#""limits":{"max_memory":-1,"max_storage":-1,"max_streams":-1,"max_consumers":-1,"#,
            r#""max_ack_pending":-1,"memory_max_stream_bytes":-1,"storage_max_stream_bytes":-1,"#,
            r#""max_bytes_required":false}"#,
        );
        let usage =
            r#""memory":0,"storage":0,"reserved_memory":0,"reserved_storage":0,"streams":0,"consumers":0"#;
        let json = format!(r#"{{{usage},{limits},"api":{{"level":4,"total":0,"errors":0}}}}"#);
        assert_eq!(serde_json::to_string(&AccountInfo::default()).unwrap(), json);
    }

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
