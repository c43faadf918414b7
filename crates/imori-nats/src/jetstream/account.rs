//! The answer that reports an account.

use std::collections::BTreeMap;

use imori_streams::account::AccountLimits;
use serde::Serialize;

/// The highest level of the API whose features the configurations have: fast batches and the ack
/// policy `flow_control`.
pub const API_LEVEL: u32 = 4;

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
}
