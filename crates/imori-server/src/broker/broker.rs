//! The handle of a running broker.

use std::fmt;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Weak};

use imori_core::authorize::{Action, Identity, Object, authorize};
use imori_core::id::VhostId;
use imori_core::name::Name;
use imori_core::route::Table;
use imori_core::time::Time;
use tokio::runtime::Handle;
use tokio::sync::watch;

use super::operator_request::{OperatorRequest, ReloadAnswer, Reloaded};
use crate::access::Access;
use crate::bodies::Bodies;
use crate::cell_state::internal_counts::Owner;
use crate::internal::{InternalClient, InternalClients, InternalError};
use crate::services::{AutomationState, GatewayFigures};
use crate::settings::Settings;
use crate::shared::{Phase, Shared};
use crate::slots::unpoisoned;
use crate::stall::happenings::Heard;

/// A running broker. A clone is another handle of the same broker.
#[derive(Clone)]
pub struct Broker {
    shared: Arc<Shared>,
    /// Requests to the program that runs the broker, while it accepts them.
    requests: Weak<Sender<OperatorRequest>>,
    /// The runtime of HTTP requests.
    runtime: Handle,
}

/// A service that finishes its work at the broker's end; dropped once it has.
pub struct Finishing(Arc<Shared>);

impl Drop for Finishing {
    fn drop(&mut self) {
        self.0.finishing.send_modify(|services| *services -= 1);
    }
}

impl fmt::Debug for Finishing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Finishing").finish()
    }
}

impl Broker {
    pub(crate) fn new(
        shared: Arc<Shared>,
        requests: Weak<Sender<OperatorRequest>>,
        runtime: Handle,
    ) -> Broker {
        Broker { shared, requests, runtime }
    }

    /// The runtime of HTTP requests, on a thread of its own: services run their tasks there, apart from the cells.
    pub fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// The state that the cells share.
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// The factory of internal clients.
    pub fn internal_clients(&self) -> InternalClients {
        InternalClients::of(&self.shared)
    }

    /// Connects a client for one request of an operator. Such clients have a limit of their own. The user may be one
    /// who must not enter the vhost; each command checks its own right.
    ///
    /// # Errors
    /// Too many requests are running, or the broker has stopped.
    pub async fn connect_operator(
        &self,
        identity: Identity,
        vhost: VhostId,
    ) -> Result<InternalClient, InternalError> {
        InternalClients::owned(&self.shared, Owner::Operator).connect_to(identity, vhost).await
    }

    /// The settings in force.
    pub fn settings(&self) -> Arc<Settings> {
        self.shared.settings.load_full()
    }

    /// Users, vhosts, permissions, limits and policies.
    pub fn access(&self) -> &Access {
        &self.shared.access
    }

    /// The account of the bodies of HTTP requests.
    pub fn bodies(&self) -> &Arc<Bodies> {
        &self.shared.bodies
    }

    /// The routing table.
    pub fn table(&self) -> Arc<Table> {
        self.shared.table.load_full()
    }

    /// The broker's time.
    pub fn now(&self) -> Time {
        self.shared.clock.now()
    }

    /// The random id of this run of the broker.
    pub fn server_id(&self) -> &str {
        &self.shared.run.server_id
    }

    /// The phase of the broker's life.
    pub fn phase(&self) -> Phase {
        *self.shared.phase.borrow()
    }

    /// Changes of the phase.
    pub fn follow_phase(&self) -> watch::Receiver<Phase> {
        self.shared.phase.subscribe()
    }

    /// Figures of the gateway; empty without one.
    pub fn gateway_figures(&self) -> GatewayFigures {
        self.shared.gateway.get().map(|gateway| gateway.figures()).unwrap_or_default()
    }

    /// Whether the automation works.
    pub fn automation_state(&self) -> AutomationState {
        unpoisoned(self.shared.automation.lock()).clone()
    }

    /// Takes note whether the automation works.
    pub fn note_automation(&self, state: AutomationState) {
        *unpoisoned(self.shared.automation.lock()) = state;
    }

    /// Keeps the runtime of services running after the broker's end until this is dropped, for a few seconds at most.
    pub fn finishing(&self) -> Finishing {
        self.shared.finishing.send_modify(|services| *services += 1);
        Finishing(Arc::clone(&self.shared))
    }

    /// Stops the broker and lets connections finish what they have begun. A second call ends it at once.
    pub fn stop(&self) {
        self.shared.stop();
    }

    /// Asks the program that runs the broker to reload the configuration; only that program knows the file. `None` if
    /// the broker is stopping.
    pub async fn reload(&self) -> Option<Result<Reloaded, String>> {
        let (answer, answered) = ReloadAnswer::new();
        let requests = self.requests.upgrade()?;
        requests.send(OperatorRequest::Reload(answer)).ok()?;
        // The broker stops only once all senders are dropped.
        drop(requests);
        answered.await.ok()
    }

    /// The vhosts that a user may see, by name: those that the user may enter, or all if the user may monitor.
    pub fn vhosts(&self, identity: &Identity) -> Vec<(Name, VhostId)> {
        let table = self.shared.table.load();
        let seen = table.vhosts().filter(|(id, _)| may_see(identity, *id));
        let mut vhosts: Vec<_> = seen.map(|(id, name)| (name.clone(), id)).collect();
        vhosts.sort_unstable();
        vhosts
    }

    /// The vhost of this name, if the user may see it (SECURITY AUTH-14).
    pub fn vhost(&self, identity: &Identity, name: &str) -> Option<VhostId> {
        self.shared.table.load().vhost_named(name.as_bytes()).filter(|id| may_see(identity, *id))
    }

    /// The name of a vhost; empty if it has been deleted.
    pub fn vhost_name(&self, id: VhostId) -> String {
        self.shared.vhost_name(id).to_string()
    }

    /// Up to `max` recent events, from this number on.
    pub fn events_from(&self, number: u64, max: usize) -> Heard {
        self.shared.happenings.from(number, max)
    }

    /// The number of events so far, and notification of the next.
    pub fn follow_events(&self) -> watch::Receiver<u64> {
        self.shared.happenings.follow()
    }
}

/// Whether the user may see the vhost and what is in it.
pub fn may_see(identity: &Identity, vhost: VhostId) -> bool {
    let may = |action| authorize(identity, action, vhost, Object::Vhost).is_ok();
    may(Action::Enter) || may(Action::Monitor)
}

impl fmt::Debug for Broker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Broker").finish_non_exhaustive()
    }
}
