//! All that a routes file says.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::route::{Delivery, Route, ScriptId, ScriptSource, VmLimits};
use super::router::Router;

/// All that a routes file says.
#[derive(Debug)]
pub struct Configuration {
    /// The routes, in the order of the file.
    pub routes: Vec<Arc<Route>>,
    /// The same routes, to be found.
    pub router: Router,
    pub(crate) deliveries: Vec<Arc<Delivery>>,
    /// The texts of all scripts, each once.
    pub(crate) scripts: Vec<ScriptSource>,
    pub(crate) init: Option<ScriptId>,
    pub(crate) init_worker: Option<ScriptId>,
    pub(crate) exit_worker: Option<ScriptId>,
    pub(crate) ssl_handshake: Option<ScriptId>,
    pub(crate) post_read: Option<ScriptId>,
    pub(crate) server_rewrite: Option<ScriptId>,
    pub(crate) vm: VmLimits,
    /// Hosts to which scripts may connect, as `host:port`, `*.example.com:443` or `host`.
    pub(crate) allow_hosts: Vec<String>,
    /// Secrets by name.
    pub(crate) secrets: BTreeMap<String, Secret>,
    pub(crate) access_log: Option<PathBuf>,
    /// Who acts for requests of the whole gateway, where no route is known yet.
    pub(crate) user: Option<String>,
    pub(crate) vhost: String,
    /// The files that were read.
    pub(crate) files: Vec<PathBuf>,
}

/// A secret, which no log shows.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(pub(crate) String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}
