//! Creates and deletes vhosts while the broker runs, and counts their objects.

use std::sync::Arc;

use imori_core::authorize::Identity;
use imori_core::broker::{Actor, DeleteOptions, delete_exchange, delete_queue_if};
use imori_core::id::{ConnectionId, VhostId};
use imori_core::name::Name;
use imori_core::outbound::CutReason;
use imori_core::world::World;

use super::connections::connection_ids;
use super::queues::queue_ids;
use crate::access::VhostFacts;
use crate::cell::Cell;
use crate::cell_state::internal_counts::Owner;
use crate::http::rest_at;
use crate::internal::{InternalClients, start_responder};
use crate::limits::{VHOST_LOOK_EVERY, VHOST_LOOKS_MAX};
use crate::requests::administered::Administered;
use crate::requests::body::change;
use crate::requests::on_cell::on_cell;
use crate::requests::operation_error::OperationError;
use crate::shared::{NO_CONNECTION, queue_key};

/// Messages of queues, summed up.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Totals {
    pub(crate) ready: usize,
    pub(crate) unsettled: usize,
}

impl Totals {
    /// The sums over these vhosts. Locks one queue at a time, for two loads.
    pub(crate) async fn of(broker: &Administered, vhosts: &[VhostId]) -> Totals {
        let mut totals = Totals::default();
        for (index, (_, id)) in queue_ids(broker, vhosts).into_iter().enumerate() {
            let counted =
                broker.shared.queues.with(queue_key(id), |queue| (queue.ready_len(), queue.unsettled_len()));
            let (ready, unsettled) = counted.unwrap_or_default();
            totals.ready += ready;
            totals.unsettled += unsettled;
            rest_at(index).await;
        }
        totals
    }
}

/// The number of objects of each kind.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct ObjectTotals {
    pub(crate) connections: usize,
    pub(crate) sessions: usize,
    pub(crate) readers: usize,
    pub(crate) exchanges: usize,
    pub(crate) queues: usize,
}

impl ObjectTotals {
    /// Counts the connections that the user may see, with their sessions and readers, and the exchanges and queues of
    /// these vhosts.
    pub(crate) async fn of(broker: &Administered, identity: &Identity, vhosts: &[VhostId]) -> ObjectTotals {
        let mut totals = ObjectTotals::default();
        for (index, id) in connection_ids(broker, identity).into_iter().enumerate() {
            let counted = broker
                .shared
                .with_link(id, |link| (link.outbound.open_sessions().count(), link.outbound.readers_len()));
            if let Some((sessions, readers)) = counted {
                totals.connections += 1;
                totals.sessions += sessions;
                totals.readers += readers;
            }
            rest_at(index).await;
        }
        let table = broker.shared.table.load_full();
        totals.exchanges = vhosts.iter().map(|vhost| table.exchanges(*vhost).count()).sum();
        totals.queues = vhosts.iter().map(|vhost| table.queues(*vhost).count()).sum();
        totals
    }
}

/// Creates a vhost or changes its description and tags; `None` keeps the old value. Returns true if the vhost is new.
///
/// # Errors
/// [`OperationError`].
pub(crate) async fn put_vhost(
    broker: &Arc<Administered>,
    name: String,
    description: Option<String>,
    tags: Option<Vec<String>>,
) -> Result<bool, OperationError> {
    let made = name.clone();
    let put = change(broker, move |draft| {
        let known = draft.objects.vhosts.get(&made).map(|facts| (**facts).clone()).unwrap_or_default();
        let description = description.unwrap_or(known.description.clone());
        let tags = tags.unwrap_or(known.tags.clone());
        let is_new = draft.put_vhost(&made, VhostFacts { description, tags, ..known })?;
        Ok((is_new, draft.objects.vhosts.get(&made).map_or(0, |facts| facts.id)))
    });
    let (is_new, id) = put.await?;
    if is_new {
        open_vhosts(broker, vec![(name, id)]).await.ok_or(OperationError::Ended)?;
    }
    Ok(is_new)
}

/// Opens new vhosts, given by name and number, to clients; `None` if the broker has stopped.
pub(crate) async fn open_vhosts(broker: &Administered, vhosts: Vec<(String, u32)>) -> Option<()> {
    let add = move |cell: &Cell| {
        for (name, id) in &vhosts {
            cell.with_topology(|topology| topology.add_vhost(VhostId(*id), Name::from(name.as_str())));
            start_responder(cell, VhostId(*id));
        }
    };
    on_cell(&broker.shared, 0, add).await
}

/// Deletes a vhost with its connections, queues, exchanges and permissions.
///
/// # Errors
/// There is no such vhost, or its connections do not close in time; or [`OperationError`].
pub(crate) async fn delete_vhost(broker: &Arc<Administered>, name: String) -> Result<(), OperationError> {
    let found = broker.shared.table.load().vhost_named(name.as_bytes());
    let vhost = found.ok_or_else(|| OperationError::no_vhost(&name))?;
    let mut emptied = None;
    for _ in 0..VHOST_LOOKS_MAX {
        emptied = on_cell(&broker.shared, 0, move |cell| empty(cell, vhost)).await;
        match emptied {
            Some(true) => break,
            // Connections are still closing, and their exclusive queues go with them.
            Some(false) => tokio::time::sleep(VHOST_LOOK_EVERY).await,
            None => return Err(OperationError::Ended),
        }
    }
    let Some(true) = emptied else {
        let text = "the vhost is still in use: its connections do not end; try again";
        return Err(OperationError::Conflict(String::from(text)));
    };
    // Any vhost would do: the client only waits for the journal.
    let clients = InternalClients::owned(&broker.shared, Owner::Operator);
    clients.connect_to(Identity::broker(), vhost).await?.sync().await?;
    change(broker, move |draft| draft.delete_vhost(&name)).await
}

/// Closes the connections of a vhost and deletes its queues and exchanges; removes the vhost once nothing is left.
/// Returns false if something is left.
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
    cell.with_topology(|topology| topology.remove_vhost(vhost))
}
