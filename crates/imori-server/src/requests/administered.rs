//! The broker, as the admin listener uses it.

use std::sync::mpsc::Sender;
use std::sync::{Arc, Weak};

use imori_core::authorize::{Action, Identity, Object, authorize};
use imori_core::id::VhostId;
use imori_core::name::Name;
use imori_core::time::Time;

use super::operator_request::OperatorRequest;
use crate::http::Guarded;
use crate::metrics::Metrics;
use crate::settings::Settings;
use crate::shared::{CellHandle, Shared};

/// A broker and the facts about it that the admin listener shows.
pub(crate) struct Administered {
    pub(crate) shared: Arc<Shared>,
    pub(crate) guarded: Arc<Guarded>,
    /// The broker's name, in the form of a RabbitMQ node name.
    pub(crate) node: String,
    pub(crate) cores: usize,
    pub(crate) started: Time,
    pub(crate) metrics: Arc<Metrics>,
    /// Requests to the program that runs the broker, while it accepts them.
    pub(crate) requests: Weak<Sender<OperatorRequest>>,
}

impl Administered {
    pub(crate) fn cells(&self) -> impl Iterator<Item = &CellHandle> {
        self.shared.cells.get().into_iter().flatten()
    }

    /// The settings in force.
    pub(crate) fn settings(&self) -> Arc<Settings> {
        self.shared.settings.load_full()
    }

    /// The vhosts that a user may see, by name: those that the user may enter, or all if the user may monitor.
    pub(crate) fn vhosts(&self, identity: &Identity) -> Vec<(Name, VhostId)> {
        let table = self.shared.table.load();
        let seen = table.vhosts().filter(|(id, _)| may_see(identity, *id));
        let mut vhosts: Vec<_> = seen.map(|(id, name)| (name.clone(), id)).collect();
        vhosts.sort_unstable();
        vhosts
    }

    /// The vhost of this name, if the user may see it (SECURITY AUTH-14).
    pub(crate) fn vhost(&self, identity: &Identity, name: &str) -> Option<VhostId> {
        self.shared.table.load().vhost_named(name.as_bytes()).filter(|id| may_see(identity, *id))
    }

    /// The vhosts to list: the named one, or all that the user may see. `None` if the user sees no vhost of this name.
    pub(crate) fn listed(&self, identity: &Identity, vhost: Option<&str>) -> Option<Vec<VhostId>> {
        match vhost {
            None => Some(self.vhosts(identity).into_iter().map(|(_, vhost)| vhost).collect()),
            Some(name) => self.vhost(identity, name).map(|vhost| vec![vhost]),
        }
    }

    /// The name of a vhost; empty if it has been deleted.
    pub(crate) fn vhost_name(&self, id: VhostId) -> String {
        self.shared.table.load().vhost_name(id).map(ToString::to_string).unwrap_or_default()
    }
}

fn may_see(identity: &Identity, vhost: VhostId) -> bool {
    let may = |action| authorize(identity, action, vhost, Object::Vhost).is_ok();
    may(Action::Enter) || may(Action::Monitor)
}
