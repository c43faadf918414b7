//! Changes that no client has a command for. Each runs on a cell, in turns of its own.

use imori_core::authorize::Identity;
use imori_core::broker::{
    Actor, DeleteOptions, apply_policies, delete_exchange, delete_queue_if, end_consumer, set_policies,
};
use imori_core::id::{ConnectionId, QueueId, Reader, VhostId};
use imori_core::name::Name;
use imori_core::outbound::CutReason;
use imori_core::world::World;

use super::broker::Broker;
use super::on_cell::on_cell;
use crate::access::{AccessError, FirstPassword, make_admin};
use crate::cell::Cell;
use crate::internal::start_responder;
use crate::limits::POLICY_QUEUES_A_TURN;
use crate::shared::NO_CONNECTION;

impl Broker {
    /// Opens new vhosts, given by name and number, to clients; `None` if the broker has stopped.
    pub async fn open_vhosts(&self, vhosts: Vec<(String, u32)>) -> Option<()> {
        let add = move |cell: &Cell| {
            for (name, id) in &vhosts {
                cell.with_topology(|topology| topology.add_vhost(VhostId(*id), Name::from(name.as_str())));
                start_responder(cell, VhostId(*id));
            }
        };
        on_cell(self.shared(), 0, add).await
    }

    /// Closes the connections of a vhost and deletes its queues and exchanges; removes the vhost once nothing is left.
    /// Returns false if something is left, and `None` if the broker has stopped.
    pub async fn empty_vhost(&self, vhost: VhostId) -> Option<bool> {
        on_cell(self.shared(), 0, move |cell| empty(cell, vhost)).await
    }

    /// Puts the current policies of a vhost into effect; `None` if the broker has stopped.
    pub async fn enforce_policies(&self, vhost: String) -> Option<()> {
        let shared = self.shared();
        let Some(id) = shared.table.load().vhost_named(vhost.as_bytes()) else { return Some(()) };
        // All these jobs run on cell 0 and read the newest policies, so the last change wins.
        let set = on_cell(shared, 0, move |cell| {
            let policies = cell.shared.access.objects().policies_of(&vhost);
            set_policies(cell, id, policies)
        });
        let queues = set.await?;
        for some in queues.chunks(POLICY_QUEUES_A_TURN) {
            let some = some.to_vec();
            on_cell(shared, 0, move |cell| apply_policies(cell, id, &some)).await?;
        }
        Some(())
    }

    /// Closes a connection and tells its client the reason; `None` if the broker has stopped.
    pub async fn close_connection(&self, id: ConnectionId, reason: Box<str>) -> Option<()> {
        let close = move |cell: &Cell| {
            cell.with_outbound(id, |outbound| outbound.cut(CutReason::ClosedByOperator { reason }));
        };
        on_cell(self.shared(), id.cell, close).await
    }

    /// Ends a consumer of a queue and tells its client. Returns false if there is no such consumer, and `None` if the
    /// broker has stopped.
    pub async fn end_consumer(&self, reader: Reader, queue: QueueId) -> Option<bool> {
        on_cell(self.shared(), reader.connection.cell, move |cell| end_consumer(cell, reader, queue)).await
    }

    /// Ends the recovery of lost definitions, during which only the operator may log in. Creates the user `admin` as at
    /// a first start, and returns the password if it was generated. Blocks on the disk, so no cell may call it.
    ///
    /// # Errors
    /// `admin` cannot be created, or the change cannot be stored.
    pub fn end_recovery(&self) -> Result<Option<FirstPassword>, AccessError> {
        let access = self.access();
        let file = self.settings().config.users.admin_password_file.clone();
        // Comes first, so that the built-in user never appears.
        let first_password = make_admin(access, file.as_deref())?;
        access.recover()?;
        access.warn_of_missing_scram_keys();
        Ok(first_password)
    }
}

fn empty(cell: &Cell, vhost: VhostId) -> bool {
    let reason: Box<str> = "the vhost is deleted".into();
    for (id, handle) in (0..).zip(cell.shared.cells.get().into_iter().flatten()) {
        for key in handle.connections.keys() {
            let id = ConnectionId { cell: id, slot: key.slot, generation: key.generation };
            let is_in = cell.shared.with_link(id, |link| link.wire.client.facts.vhost == Some(vhost));
            if is_in == Some(true) {
                let reason = CutReason::ClosedByOperator { reason: reason.clone() };
                cell.with_outbound(id, |outbound| outbound.cut(reason));
            }
        }
    }
    let broker = Identity::broker();
    let actor = Actor { identity: &broker, connection: NO_CONNECTION, vhost };
    let table = cell.shared.table.load_full();
    for (name, _) in table.queues(vhost) {
        // An exclusive queue goes with its connection.
        let _ = delete_queue_if(cell, &actor, name.as_bytes(), DeleteOptions::default(), |_| ());
    }
    for exchange in table.exchanges(vhost).filter(|exchange| !exchange.name().as_bytes().starts_with(b"amq."))
    {
        let _ = delete_exchange(cell, &actor, exchange.name().as_bytes(), false);
    }
    cell.shared.stream_requests.forget(vhost);
    cell.with_topology(|topology| topology.remove_vhost(vhost))
}
