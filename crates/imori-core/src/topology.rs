//! What exists: the routing table that readers see, and what only its writer has to know.

use std::collections::{BTreeMap, BTreeSet};

use crate::id::{ConnectionId, QueueId, Reader, VhostId};
use crate::name::Name;
use crate::outbound::Subscription;
use crate::route::{Arguments, BindingKey, ExchangeKind, RouteError, Settings, Table, Target};

/// The writer's side of the routing table.
#[derive(Debug)]
pub struct Topology {
    table: Table,
    names: BTreeMap<QueueId, QueueName>,
    exclusive: BTreeSet<(ConnectionId, QueueId)>,
}

#[derive(Debug)]
struct QueueName {
    vhost: VhostId,
    name: Name,
    exclusive_to: Option<ConnectionId>,
}

impl Topology {
    /// A topology with a table that has its vhosts.
    pub fn new(table: Table) -> Topology {
        Topology { table, names: BTreeMap::new(), exclusive: BTreeSet::new() }
    }

    /// The table as it is now; a clone of it is a snapshot.
    pub fn table(&self) -> &Table {
        &self.table
    }

    pub(crate) fn add_queue(
        &mut self,
        vhost: VhostId,
        name: &Name,
        id: QueueId,
        exclusive_to: Option<ConnectionId>,
    ) -> Result<(), RouteError> {
        self.table.add_queue(vhost, name.as_bytes(), id)?;
        if let Some(owner) = exclusive_to {
            self.exclusive.insert((owner, id));
        }
        self.names.insert(id, QueueName { vhost, name: name.clone(), exclusive_to });
        Ok(())
    }

    /// Takes a queue and its bindings out of the table.
    pub(crate) fn forget_queue(&mut self, id: QueueId) {
        let Some(QueueName { vhost, name, exclusive_to }) = self.names.remove(&id) else {
            return;
        };
        // It is there: names and table change together.
        let _ = self.table.remove_queue(vhost, name.as_bytes());
        if let Some(owner) = exclusive_to {
            self.exclusive.remove(&(owner, id));
        }
    }

    /// The exclusive queues of a connection.
    pub(crate) fn exclusive_to(&self, owner: ConnectionId) -> Vec<QueueId> {
        let first = (owner, QueueId { slot: 0, generation: 0 });
        let owned = self.exclusive.range(first..).take_while(|(other, _)| *other == owner);
        owned.map(|(_, queue)| *queue).collect()
    }

    pub(crate) fn declare_exchange(
        &mut self,
        vhost: VhostId,
        name: &[u8],
        kind: ExchangeKind,
        settings: Settings,
    ) -> Result<bool, RouteError> {
        self.table.declare_exchange(vhost, name, kind, settings)
    }

    pub(crate) fn bind_queue(
        &mut self,
        vhost: VhostId,
        exchange: &[u8],
        key: &BindingKey,
        queue: QueueId,
    ) -> Result<bool, RouteError> {
        // Nothing would ever unbind a queue that was deleted since its binder found it.
        if !self.names.contains_key(&queue) {
            return Ok(false);
        }
        self.table.bind(vhost, exchange, key, &Arguments::default(), &Target::Queue(queue))
    }

    /// Tells whether a queue is bound so.
    pub(crate) fn has_binding(
        &self,
        vhost: VhostId,
        exchange: &[u8],
        key: &BindingKey,
        queue: QueueId,
    ) -> bool {
        // A snapshot shares all that it does not change.
        let mut snapshot = self.table.clone();
        let is_new = snapshot.bind(vhost, exchange, key, &Arguments::default(), &Target::Queue(queue));
        matches!(is_new, Ok(false))
    }

    pub(crate) fn subscribe(
        &mut self,
        vhost: VhostId,
        subscription: &Subscription,
        reader: Reader,
    ) -> Result<bool, RouteError> {
        let target = target(subscription, reader);
        let exchange = subscription.exchange.as_bytes();
        self.table.bind(vhost, exchange, &subscription.key, &Arguments::default(), &target)
    }

    pub(crate) fn unsubscribe(&mut self, vhost: VhostId, subscription: &Subscription, reader: Reader) {
        let target = target(subscription, reader);
        let exchange = subscription.exchange.as_bytes();
        // The exchange may be gone, and the binding with it.
        let _ = self.table.unbind(vhost, exchange, &subscription.key, &Arguments::default(), &target);
    }
}

fn target(subscription: &Subscription, reader: Reader) -> Target {
    match &subscription.group {
        Some(group) => Target::Member { group: group.clone(), reader },
        None => Target::Subscription(reader),
    }
}
