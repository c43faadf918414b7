//! Creates and deletes vhosts while the broker runs, and counts their objects.

use imori_core::authorize::Identity;
use imori_core::id::VhostId;
use imori_server::access::VhostFacts;
use imori_server::broker::Broker;

use super::connections::connection_ids;
use super::queues::queue_ids;
use crate::http::rest_at;
use crate::limits::{VHOST_LOOK_EVERY, VHOST_LOOKS_MAX};
use crate::objects::change::change;
use crate::objects::operation_error::OperationError;

/// Messages of queues, summed up.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Totals {
    pub(crate) ready: usize,
    pub(crate) unsettled: usize,
}

impl Totals {
    /// The sums over these vhosts. Locks one queue at a time, for two loads.
    pub(crate) async fn of(broker: &Broker, vhosts: &[VhostId]) -> Totals {
        let mut totals = Totals::default();
        for (index, (_, id)) in queue_ids(broker, vhosts).into_iter().enumerate() {
            let counted = broker.with_queue(id, |queue| (queue.ready_len(), queue.unsettled_len()));
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
    pub(crate) async fn of(broker: &Broker, identity: &Identity, vhosts: &[VhostId]) -> ObjectTotals {
        let mut totals = ObjectTotals::default();
        for (index, id) in connection_ids(broker, identity).into_iter().enumerate() {
            let counted = broker.with_connection(id, |connection| {
                (connection.outbound().open_sessions().count(), connection.outbound().readers_len())
            });
            if let Some((sessions, readers)) = counted {
                totals.connections += 1;
                totals.sessions += sessions;
                totals.readers += readers;
            }
            rest_at(index).await;
        }
        let table = broker.table();
        totals.exchanges = vhosts.iter().map(|vhost| table.exchanges(*vhost).count()).sum();
        totals.queues = vhosts.iter().map(|vhost| table.queues(*vhost).count()).sum();
        totals
    }
}

/// Creates a vhost or changes its description and tags; `None` keeps the old value. Returns true if the vhost is new; its
/// maker then has all rights in it.
///
/// # Errors
/// [`OperationError`].
pub(crate) async fn put_vhost(
    broker: &Broker,
    maker: &Identity,
    name: String,
    (description, tags): (Option<String>, Option<Vec<String>>),
) -> Result<bool, OperationError> {
    let (made, maker) = (name.clone(), maker.user.to_string());
    let put = change(broker, move |draft| {
        let known = draft.objects.vhosts.get(&made).map(|facts| (**facts).clone()).unwrap_or_default();
        let description = description.unwrap_or(known.description.clone());
        let tags = tags.unwrap_or(known.tags.clone());
        let is_new = draft.put_vhost(&made, VhostFacts { description, tags, ..known })?;
        if is_new {
            draft.give_to_maker(&made, &maker)?;
        }
        Ok((is_new, draft.objects.vhosts.get(&made).map_or(0, |facts| facts.id)))
    });
    let (is_new, id) = put.await?;
    if is_new {
        broker.open_vhosts(vec![(name, id)]).await.ok_or(OperationError::Ended)?;
    }
    Ok(is_new)
}

/// Deletes a vhost with its connections, queues, exchanges and permissions.
///
/// # Errors
/// There is no such vhost, or its connections do not close in time; or [`OperationError`].
pub(crate) async fn delete_vhost(broker: &Broker, name: String) -> Result<(), OperationError> {
    let found = broker.table().vhost_named(name.as_bytes());
    let vhost = found.ok_or_else(|| OperationError::no_vhost(&name))?;
    let mut emptied = None;
    for _ in 0..VHOST_LOOKS_MAX {
        emptied = broker.empty_vhost(vhost).await;
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
    broker.connect_operator(Identity::broker(), vhost).await?.sync().await?;
    change(broker, move |draft| draft.delete_vhost(&name)).await
}
