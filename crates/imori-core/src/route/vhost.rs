//! The routing of one vhost: its exchanges, the names of its queues, and its bindings.
//!
//! Bindings to queues and exchanges are also indexed by target, so that deleting a target finds
//! them. Live subscriptions are not: their connection knows them.

use std::sync::Arc;

use super::arguments::Arguments;
use super::binding::BindingKey;
use super::exchange::{AutoDeleted, Exchange, ExchangeKind, KeyError, Settings};
use super::hamt::{Hamt, Seed};
use super::target::Target;
use crate::id::QueueId;
use crate::name::Name;
use crate::policy::Policies;

/// The exchanges that every vhost has besides the default one.
const PREDECLARED: [(&str, ExchangeKind); 5] = [
    ("amq.direct", ExchangeKind::Direct),
    ("amq.fanout", ExchangeKind::Fanout),
    ("amq.topic", ExchangeKind::Topic),
    ("amq.headers", ExchangeKind::Headers),
    ("amq.match", ExchangeKind::Headers),
];

/// One namespace of exchanges and queues.
#[derive(Debug, Clone)]
pub(crate) struct Vhost {
    name: Name,
    exchanges: Hamt<Name, Arc<Exchange>>,
    queues: Hamt<Name, QueueId>,
    /// The bindings to each queue and exchange, by target.
    incoming: Hamt<Target, Hamt<Incoming, ()>>,
    bindings: usize,
    subscriptions: usize,
    policies: Policies,
}

/// A binding as seen from its target.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Incoming {
    exchange: Name,
    key: BindingKey,
    arguments: Arguments,
}

impl Vhost {
    pub(crate) fn new(seed: Seed, name: Name) -> Vhost {
        let mut vhost = Vhost {
            name,
            exchanges: Hamt::default(),
            queues: Hamt::default(),
            incoming: Hamt::default(),
            bindings: 0,
            subscriptions: 0,
            policies: Policies::default(),
        };
        let durable = Settings { is_durable: true, ..Settings::default() };
        vhost.add_exchange(seed, Exchange::new(Name::from(""), ExchangeKind::Direct, durable.clone()));
        for (name, kind) in PREDECLARED {
            vhost.add_exchange(seed, Exchange::new(Name::from(name), kind, durable.clone()));
        }
        vhost
    }

    pub(crate) fn name(&self) -> &Name {
        &self.name
    }

    pub(crate) fn exchange(&self, seed: Seed, name: &[u8]) -> Option<&Exchange> {
        self.exchanges.get(seed, name).map(Arc::as_ref)
    }

    pub(crate) fn exchanges(&self) -> impl Iterator<Item = &Exchange> {
        self.exchanges.iter().map(|(_, exchange)| exchange.as_ref())
    }

    pub(crate) fn exchange_count(&self) -> usize {
        self.exchanges.len()
    }

    pub(crate) fn add_exchange(&mut self, seed: Seed, mut exchange: Exchange) {
        exchange.govern(self.policies.of_exchange(exchange.name().as_bytes()));
        self.exchanges.insert(seed, exchange.name().clone(), Arc::new(exchange));
    }

    pub(crate) fn policies(&self) -> &Policies {
        &self.policies
    }

    /// Replaces the policies that act on the exchanges.
    pub(crate) fn set_policies(&mut self, seed: Seed, policies: Policies) {
        self.policies = policies;
        let of = |exchange: &Arc<Exchange>| {
            let matched = self.policies.of_exchange(exchange.name().as_bytes());
            (!matched.is_same(exchange.matched())).then(|| (exchange.name().clone(), matched))
        };
        let changed: Vec<_> = self.exchanges.iter().filter_map(|(_, exchange)| of(exchange)).collect();
        for (name, matched) in changed {
            if let Some(exchange) = self.exchanges.get_mut(seed, &name) {
                Arc::make_mut(exchange).govern(matched);
            }
        }
    }

    pub(crate) fn queue(&self, seed: Seed, name: &[u8]) -> Option<QueueId> {
        self.queues.get(seed, name).copied()
    }

    pub(crate) fn queues(&self) -> impl Iterator<Item = (&Name, QueueId)> {
        self.queues.iter().map(|(name, id)| (name, *id))
    }

    pub(crate) fn queue_count(&self) -> usize {
        self.queues.len()
    }

    pub(crate) fn add_queue(&mut self, seed: Seed, name: Name, id: QueueId) {
        self.queues.insert(seed, name, id);
    }

    /// The number of bindings to queues and exchanges.
    pub(crate) fn binding_count(&self) -> usize {
        self.bindings
    }

    /// The number of live subscriptions.
    pub(crate) fn subscription_count(&self) -> usize {
        self.subscriptions
    }

    /// Adds a binding to an existing exchange; returns whether it is new.
    pub(crate) fn bind(
        &mut self,
        seed: Seed,
        exchange: &[u8],
        key: &BindingKey,
        arguments: &Arguments,
        target: &Target,
    ) -> Result<bool, KeyError> {
        let Some(source) = self.exchanges.get_mut(seed, exchange).map(Arc::make_mut) else {
            return Ok(false);
        };
        if !source.bind(seed, key, arguments, target)? {
            return Ok(false);
        }
        if is_live(target) {
            self.subscriptions += 1;
            return Ok(true);
        }
        self.bindings += 1;
        let incoming =
            Incoming { exchange: source.name().clone(), key: key.clone(), arguments: arguments.clone() };
        match self.incoming.get_mut(seed, target) {
            Some(known) => known.insert(seed, incoming, ()).is_none(),
            None => {
                let mut known = Hamt::default();
                known.insert(seed, incoming, ());
                self.incoming.insert(seed, target.clone(), known).is_none()
            }
        };
        Ok(true)
    }

    /// Whether exactly this binding of a queue or an exchange exists.
    pub(crate) fn has_binding(
        &self,
        seed: Seed,
        exchange: &[u8],
        key: &BindingKey,
        arguments: &Arguments,
        target: &Target,
    ) -> bool {
        let incoming =
            Incoming { exchange: Name::new(exchange), key: key.clone(), arguments: arguments.clone() };
        self.incoming.get(seed, target).is_some_and(|known| known.get(seed, &incoming).is_some())
    }

    /// Removes a binding; returns whether it was present. Exchanges that are auto-deleted with it
    /// are appended to `auto_deleted`.
    pub(crate) fn unbind(
        &mut self,
        seed: Seed,
        exchange: &[u8],
        key: &BindingKey,
        arguments: &Arguments,
        target: &Target,
        auto_deleted: &mut Vec<AutoDeleted>,
    ) -> Result<bool, KeyError> {
        // Two syntaxes may write the same pattern. A binding made in one is not removed through the
        // other, so that target, store and this table agree.
        if !is_live(target) && !self.has_binding(seed, exchange, key, arguments, target) {
            return Ok(false);
        }
        let Some(source) = self.exchanges.get_mut(seed, exchange).map(Arc::make_mut) else {
            return Ok(false);
        };
        if !source.unbind(seed, key, arguments, target)? {
            return Ok(false);
        }
        let name = source.name().clone();
        let is_spent = source.is_empty() && source.settings().is_auto_delete;
        if is_live(target) {
            self.subscriptions -= 1;
        } else {
            self.bindings -= 1;
            let incoming =
                Incoming { exchange: name.clone(), key: key.clone(), arguments: arguments.clone() };
            self.forget_incoming(seed, target, |known| {
                known.remove(seed, &incoming);
            });
        }
        if is_spent {
            self.remove_all(seed, vec![name], auto_deleted);
        }
        Ok(true)
    }

    /// Removes a queue and the bindings to it.
    pub(crate) fn remove_queue(
        &mut self,
        seed: Seed,
        name: &[u8],
        auto_deleted: &mut Vec<AutoDeleted>,
    ) -> bool {
        let Some(id) = self.queue(seed, name) else {
            return false;
        };
        self.queues.remove(seed, name);
        let spent = self.unbind_target(seed, &Target::Queue(id));
        self.remove_all(seed, spent, auto_deleted);
        true
    }

    /// Removes an exchange and the bindings from and to it.
    pub(crate) fn remove_exchange(
        &mut self,
        seed: Seed,
        name: &[u8],
        auto_deleted: &mut Vec<AutoDeleted>,
    ) -> bool {
        let Some(exchange) = self.exchanges.get(seed, name) else {
            return false;
        };
        let mut removed = Vec::new();
        self.remove_all(seed, vec![exchange.name().clone()], &mut removed);
        // The first one removed is the exchange itself.
        auto_deleted.extend(removed.into_iter().skip(1));
        true
    }

    /// Removes exchanges and, transitively, those with auto-delete that lose their last binding.
    fn remove_all(&mut self, seed: Seed, names: Vec<Name>, removed: &mut Vec<AutoDeleted>) {
        let mut pending = names;
        while let Some(name) = pending.pop() {
            let Some(exchange) = self.exchanges.get(seed, &name).cloned() else {
                continue;
            };
            self.exchanges.remove(seed, &name);
            self.forget_outgoing(seed, &exchange);
            pending.extend(self.unbind_target(seed, &Target::Exchange(name.clone())));
            removed.push(AutoDeleted { is_durable: exchange.settings().is_durable, name });
        }
    }

    /// Forgets the bindings from a removed exchange.
    fn forget_outgoing(&mut self, seed: Seed, exchange: &Exchange) {
        let mut targets: Vec<Target> = Vec::new();
        exchange.for_each_binding(&mut |binding| {
            if is_live(binding.target) {
                self.subscriptions -= 1;
            } else {
                self.bindings -= 1;
                targets.push(binding.target.clone());
            }
        });
        targets.sort_unstable();
        targets.dedup();
        for target in targets {
            self.forget_incoming(seed, &target, |known| {
                let gone: Vec<Incoming> = known
                    .iter()
                    .map(|(incoming, ())| incoming)
                    .filter(|incoming| incoming.exchange == *exchange.name())
                    .cloned()
                    .collect();
                for incoming in gone {
                    known.remove(seed, &incoming);
                }
            });
        }
    }

    fn forget_incoming(&mut self, seed: Seed, target: &Target, forget: impl FnOnce(&mut Hamt<Incoming, ()>)) {
        if let Some(known) = self.incoming.get_mut(seed, target) {
            forget(known);
            if known.is_empty() {
                self.incoming.remove(seed, target);
            }
        }
    }

    /// Removes all bindings to `target`; returns the auto-delete exchanges that are left without
    /// any.
    fn unbind_target(&mut self, seed: Seed, target: &Target) -> Vec<Name> {
        let Some(known) = self.incoming.get(seed, target).cloned() else {
            return Vec::new();
        };
        self.incoming.remove(seed, target);
        let mut spent = Vec::new();
        for (incoming, ()) in &known {
            let Some(source) = self.exchanges.get_mut(seed, &incoming.exchange).map(Arc::make_mut) else {
                continue;
            };
            // The key was validated when it was bound.
            if let Ok(true) = source.unbind(seed, &incoming.key, &incoming.arguments, target) {
                self.bindings -= 1;
                if source.is_empty() && source.settings().is_auto_delete {
                    spent.push(incoming.exchange.clone());
                }
            }
        }
        spent
    }
}

fn is_live(target: &Target) -> bool {
    match target {
        Target::Subscription(_) | Target::Member { .. } => true,
        Target::Queue(_) | Target::Exchange(_) => false,
    }
}
