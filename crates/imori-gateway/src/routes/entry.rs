//! The tables of a routes file as they are written.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;

/// `[gateway]`: what all routes have unless they say otherwise.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct GatewayEntry {
    pub(super) vhost: String,
    pub(super) user: Option<String>,
    pub(super) access_log: Option<PathBuf>,
}

impl Default for GatewayEntry {
    fn default() -> GatewayEntry {
        GatewayEntry { vhost: String::from("/"), user: None, access_log: None }
    }
}

/// `[limits]`, and `limits` of a route.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LimitsEntry {
    pub(super) body_bytes: Option<u64>,
    pub(super) in_flight: Option<usize>,
    pub(super) time_ms: Option<u64>,
    pub(super) cpu_slice_ms: Option<u64>,
    pub(super) cpu_ms: Option<u64>,
    pub(super) awaits: Option<u32>,
    pub(super) children: Option<u32>,
    pub(super) heap_bytes: Option<usize>,
    pub(super) string_bytes: Option<usize>,
}

/// A script: its text, or the file that has it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScriptEntry {
    pub(super) code: Option<String>,
    pub(super) file: Option<PathBuf>,
    /// Only for filters of bodies.
    #[serde(default)]
    pub(super) by_chunk: bool,
}

/// Where a secret comes from.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SecretEntry {
    pub(super) env: Option<String>,
    pub(super) file: Option<PathBuf>,
}

/// `[scripts]`: the scripts of the whole gateway.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ScriptsEntry {
    pub(super) init: Option<ScriptEntry>,
    pub(super) init_worker: Option<ScriptEntry>,
    pub(super) exit_worker: Option<ScriptEntry>,
    pub(super) ssl_handshake: Option<ScriptEntry>,
    pub(super) post_read: Option<ScriptEntry>,
    pub(super) server_rewrite: Option<ScriptEntry>,
    pub(super) allow_hosts: Vec<String>,
    pub(super) secrets: BTreeMap<String, SecretEntry>,
}

/// A `[[route.set]]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SetEntry {
    pub(super) variable: String,
    pub(super) code: Option<String>,
    pub(super) file: Option<PathBuf>,
}

/// A `[[route]]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RouteEntry {
    pub(super) name: Option<String>,
    #[serde(default)]
    pub(super) hosts: Vec<String>,
    #[serde(default)]
    pub(super) ports: Vec<u16>,
    pub(super) methods: Option<Vec<String>>,
    #[serde(default)]
    pub(super) origins: Vec<String>,
    pub(super) path: Option<String>,
    pub(super) prefix: Option<String>,
    pub(super) regex: Option<String>,
    #[serde(default)]
    pub(super) before_regex: bool,
    #[serde(default)]
    pub(super) internal: bool,
    pub(super) login: Option<LoginEntry>,
    pub(super) user: Option<String>,
    pub(super) vhost: Option<String>,
    #[serde(default)]
    pub(super) limits: LimitsEntry,
    #[serde(default)]
    pub(super) variables: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) set: Vec<SetEntry>,
    pub(super) rewrite: Option<ScriptEntry>,
    pub(super) access: Option<ScriptEntry>,
    pub(super) content: Option<ScriptEntry>,
    pub(super) header_filter: Option<ScriptEntry>,
    pub(super) body_filter: Option<ScriptEntry>,
    pub(super) log: Option<ScriptEntry>,
    pub(super) publish: Option<PublishEntry>,
    pub(super) rpc: Option<RpcEntry>,
    pub(super) stream: Option<StreamEntry>,
    pub(super) websocket: Option<WebSocketEntry>,
    pub(super) pull: Option<PullEntry>,
    pub(super) proxy: Option<ProxyEntry>,
    pub(super) files: Option<FilesEntry>,
    #[serde(rename = "return")]
    pub(super) respond: Option<ReturnEntry>,
}

/// Whether a caller logs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum LoginEntry {
    Required,
    Optional,
    None,
}

/// An address of messages: a queue, a topic, or an exchange with a key.
#[derive(Debug, Clone, Default)]
pub(crate) struct AddressEntry {
    pub(crate) queue: Option<String>,
    pub(crate) topic: Option<String>,
    pub(crate) exchange: Option<String>,
    pub(crate) key: Option<String>,
}

/// Defines an entry that has an address among its keys, and a method that gives it.
macro_rules! addressed {
    ($(#[$meta:meta])* $name:ident { $($(#[$field_meta:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(super) struct $name {
            queue: Option<String>,
            topic: Option<String>,
            exchange: Option<String>,
            key: Option<String>,
            $($(#[$field_meta])* pub(super) $field: $type,)*
        }

        impl $name {
            pub(super) fn address(&self) -> AddressEntry {
                AddressEntry {
                    queue: self.queue.clone(),
                    topic: self.topic.clone(),
                    exchange: self.exchange.clone(),
                    key: self.key.clone(),
                }
            }
        }
    };
}

addressed! {
    /// `[route.publish]`.
    PublishEntry {
        #[serde(default = "yes")]
        persistent: bool,
        #[serde(default)]
        headers: Vec<String>,
        /// Whether a message without a receiver is an error.
        #[serde(default)]
        mandatory: bool,
        priority: Option<u8>,
        expiration_ms: Option<u32>,
    }
}

addressed! {
    /// `[route.rpc]`.
    RpcEntry {
        timeout_ms: Option<u64>,
        #[serde(default)]
        headers: Vec<String>,
    }
}

addressed! {
    /// `[route.stream]`.
    StreamEntry {
        history: Option<usize>,
        event: Option<String>,
    }
}

addressed! {
    /// `subscribe` and `publish` of a `[route.websocket]`.
    EndEntry {}
}

addressed! {
    /// `[route.pull]`.
    PullEntry {
        wait_ms: Option<u64>,
        ack_wait_ms: Option<u64>,
    }
}

/// `[route.websocket]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WebSocketEntry {
    pub(super) subscribe: Option<EndEntry>,
    pub(super) publish: Option<EndEntry>,
    #[serde(default)]
    pub(super) binary: bool,
}

/// `[route.proxy]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProxyEntry {
    pub(super) to: String,
    pub(super) timeout_ms: Option<u64>,
    #[serde(default)]
    pub(super) headers: BTreeMap<String, String>,
    /// The CA of an upstream server with HTTPS, instead of the system's.
    pub(super) ca: Option<PathBuf>,
}

/// `[route.files]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FilesEntry {
    pub(super) root: PathBuf,
    /// Whether the route's prefix is left out of a file's path, as nginx's `alias` does.
    #[serde(default)]
    pub(super) strip: bool,
    pub(super) index: Option<Vec<String>>,
}

/// `[route.return]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReturnEntry {
    pub(super) status: u16,
    pub(super) location: Option<String>,
    pub(super) body: Option<String>,
    #[serde(default)]
    pub(super) headers: BTreeMap<String, String>,
}

/// `[[deliver]]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DeliverEntry {
    pub(super) queue: String,
    pub(super) to: String,
    pub(super) vhost: Option<String>,
    pub(super) user: Option<String>,
    pub(super) concurrency: Option<u32>,
    pub(super) timeout_ms: Option<u64>,
    pub(super) retries: Option<u32>,
    pub(super) backoff_ms: Option<[u64; 2]>,
    #[serde(default)]
    pub(super) headers: BTreeMap<String, String>,
    pub(super) ca: Option<PathBuf>,
}

fn yes() -> bool {
    true
}
