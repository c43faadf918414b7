//! The broker as the admin listener sees it.

use std::sync::Arc;
use std::time::Duration;

use imori_core::id::VhostId;
use imori_core::name::Name;
use imori_core::time::Time;

use crate::config::HostName;
use crate::metrics::Metrics;
use crate::net::listener::Listener;
use crate::shared::{CellHandle, Shared};

/// A broker that is administered.
pub(crate) struct Administered {
    pub(crate) shared: Arc<Shared>,
    /// Names of this host, besides `localhost` and its addresses.
    pub(crate) host_names: Arc<[HostName]>,
    /// Clients from elsewhere count as local.
    pub(crate) trusts_network: bool,
    pub(crate) listeners: Vec<Listener>,
    /// The broker's name, as nodes of RabbitMQ are named.
    pub(crate) node: String,
    pub(crate) cores: usize,
    pub(crate) started: Time,
    /// A flush that takes longer makes the broker unready.
    pub(crate) stalled_flush: Duration,
    pub(crate) metrics: Arc<Metrics>,
}

impl Administered {
    pub(super) fn cells(&self) -> impl Iterator<Item = &CellHandle> {
        self.shared.cells.get().into_iter().flatten()
    }

    /// All vhosts by name.
    pub(super) fn vhosts(&self) -> Vec<(Name, VhostId)> {
        let table = self.shared.table.load();
        let mut vhosts: Vec<_> = table.vhosts().map(|(id, name)| (name.clone(), id)).collect();
        vhosts.sort_unstable();
        vhosts
    }

    /// The vhost of this name.
    pub(super) fn vhost(&self, name: &str) -> Option<VhostId> {
        self.shared.table.load().vhost_named(name.as_bytes())
    }

    /// The vhosts of a list: all of them, or that of this name. `None` where there is no such vhost.
    pub(super) fn listed(&self, vhost: Option<&str>) -> Option<Vec<VhostId>> {
        match vhost {
            None => Some(self.vhosts().into_iter().map(|(_, vhost)| vhost).collect()),
            Some(name) => self.vhost(name).map(|vhost| vec![vhost]),
        }
    }

    /// The name of a vhost; empty where it is deleted meanwhile.
    pub(super) fn vhost_name(&self, id: VhostId) -> String {
        self.shared.table.load().vhost_name(id).map(ToString::to_string).unwrap_or_default()
    }
}
