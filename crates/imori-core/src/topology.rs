//! The topology: the routing table, and the data that only its writer needs.

use std::collections::{BTreeMap, BTreeSet};

use crate::id::{ConnectionId, QueueId, Reader, VhostId};
use crate::name::Name;
use crate::outbound::Subscription;
use crate::policy::Policies;
use crate::route::{
    Arguments, AutoDeleted, BindingKey, ExchangeKind, Removal, RouteError, Settings, Table, TableLimits,
    Target,
};

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
    /// A topology with a table that already has its vhosts.
    pub fn new(table: Table) -> Topology {
        Topology { table, names: BTreeMap::new(), exclusive: BTreeSet::new() }
    }

    /// The current table; a clone of it is a snapshot.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// Changes the limits; a vhost that is above them keeps what it has.
    pub fn limit(&mut self, limits: TableLimits) {
        self.table.limit(limits);
    }

    /// Adds an empty vhost of this name; returns whether it is new.
    pub fn add_vhost(&mut self, vhost: VhostId, name: Name) -> bool {
        self.table.add_vhost(vhost, name)
    }

    /// Removes a vhost that has no queues, with its exchanges and bindings; returns whether it did.
    pub fn remove_vhost(&mut self, vhost: VhostId) -> bool {
        self.table.queues(vhost).next().is_none() && self.table.remove_vhost(vhost)
    }

    /// Replaces the policies of a vhost, as [`Table::set_policies`] does.
    pub fn set_policies(&mut self, vhost: VhostId, policies: Policies) -> bool {
        self.table.set_policies(vhost, policies)
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

    /// Removes a queue and its bindings from the table; returns the exchanges that were
    /// auto-deleted.
    pub(crate) fn forget_queue(&mut self, id: QueueId) -> Vec<AutoDeleted> {
        let Some(QueueName { vhost, name, exclusive_to }) = self.names.remove(&id) else {
            return Vec::new();
        };
        if let Some(owner) = exclusive_to {
            self.exclusive.remove(&(owner, id));
        }
        // Names and table change together, so the queue is in the table.
        let removal = self.table.remove_queue(vhost, name.as_bytes());
        removal.map(|removal| removal.auto_deleted).unwrap_or_default()
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

    pub(crate) fn delete_exchange(&mut self, vhost: VhostId, name: &[u8]) -> Result<Removal, RouteError> {
        self.table.delete_exchange(vhost, name)
    }

    /// Binds a queue or an exchange; returns whether the binding is new.
    pub(crate) fn bind(
        &mut self,
        vhost: VhostId,
        exchange: &[u8],
        key: &BindingKey,
        arguments: &Arguments,
        target: &Target,
    ) -> Result<bool, RouteError> {
        // A binding to a queue that was deleted after its look-up would never be removed.
        if let Target::Queue(queue) = target
            && !self.names.contains_key(queue)
        {
            return Ok(false);
        }
        self.table.bind(vhost, exchange, key, arguments, target)
    }

    /// Removes a binding of a queue or an exchange.
    pub(crate) fn unbind(
        &mut self,
        vhost: VhostId,
        exchange: &[u8],
        key: &BindingKey,
        arguments: &Arguments,
        target: &Target,
    ) -> Result<Removal, RouteError> {
        self.table.unbind(vhost, exchange, key, arguments, target)
    }

    pub(crate) fn subscribe(
        &mut self,
        vhost: VhostId,
        subscription: &Subscription,
        reader: Reader,
    ) -> Result<bool, RouteError> {
        let target = target(subscription, reader);
        let exchange = subscription.exchange.as_bytes();
        self.table.bind(vhost, exchange, &subscription.key, &Arguments::NONE, &target)
    }

    /// Ends a live subscription; returns the exchanges that were auto-deleted.
    pub(crate) fn unsubscribe(
        &mut self,
        vhost: VhostId,
        subscription: &Subscription,
        reader: Reader,
    ) -> Vec<AutoDeleted> {
        let target = target(subscription, reader);
        let exchange = subscription.exchange.as_bytes();
        // The exchange may already be gone, and the binding with it.
        let removal = self.table.unbind(vhost, exchange, &subscription.key, &Arguments::NONE, &target);
        removal.map(|removal| removal.auto_deleted).unwrap_or_default()
    }
}

fn target(subscription: &Subscription, reader: Reader) -> Target {
    match &subscription.group {
        Some(group) => Target::Member { group: group.clone(), reader },
        None => Target::Subscription(reader),
    }
}
