//! The routing table of all vhosts: a snapshot that is cheap to copy.
//!
//! A single writer changes a copy and publishes it; holders of an older snapshot are not disturbed.

use std::fmt;
use std::sync::Arc;

use super::arguments::{Arguments, ArgumentsError};
use super::binding::BindingKey;
use super::exchange::{AutoDeleted, Exchange, ExchangeKind, KeyError, Settings};
use super::follow::follow;
use super::hamt::Seed;
use super::header::Headers;
use super::pattern::PatternError;
use super::target::{FoundTargets, Route, Target};
use super::vhost::Vhost;
use crate::id::{QueueId, VhostId};
use crate::limits::{
    BINDINGS_PER_VHOST_MAX, EXCHANGES_PER_VHOST_MAX, QUEUES_PER_VHOST_MAX, SUBSCRIPTIONS_PER_VHOST_MAX,
};
use crate::message::Address;
use crate::name::Name;
use crate::policy::Policies;

/// All vhosts with their exchanges, bindings and queue names.
#[derive(Debug, Clone)]
pub struct Table {
    seed: Seed,
    limits: TableLimits,
    version: u64,
    /// Indexed by vhost number: there are few, and every message looks one up.
    vhosts: Arc<Vec<Option<Arc<Vhost>>>>,
}

/// The result of a removal.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Removal {
    /// Whether the object existed.
    pub was_there: bool,
    /// Auto-delete exchanges that lost their last binding and were removed as well.
    pub auto_deleted: Vec<AutoDeleted>,
}

/// The reason why the table refuses a change or cannot route a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RouteError {
    /// The vhost is not in the table.
    NoVhost(VhostId),
    /// The vhost has no such exchange.
    NoExchange(Name),
    /// The exchange is internal, so clients cannot publish to it.
    Internal(Name),
    /// The default exchange cannot be changed: its only bindings are those to every queue by name.
    DefaultExchange,
    /// The name begins with `amq.`.
    Reserved(Name),
    /// The exchange exists with another kind or other settings.
    Differs {
        /// Its name.
        exchange: Name,
        /// The kind that it was declared with.
        kind: ExchangeKind,
        /// The settings it was declared with.
        settings: Settings,
    },
    /// The key is not a valid pattern, or the subject cannot be routed.
    Pattern(PatternError),
    /// `x-match` has another value than its four.
    HeaderMatch,
    /// The arguments of the binding exceed a limit.
    Arguments(ArgumentsError),
    /// The vhost has reached its limit of such objects.
    Limit {
        /// The kind of object.
        what: &'static str,
        /// The limit.
        max: usize,
    },
}

/// The limits of each vhost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableLimits {
    /// Queues and streams together.
    pub queues_max: usize,
    /// Bindings to queues and exchanges.
    pub bindings_max: usize,
    /// Live subscriptions.
    pub subscriptions_max: usize,
    /// The broker's own subscriptions in each vhost, which do not count towards the limit.
    pub subscriptions_built_in: usize,
}

impl Default for TableLimits {
    fn default() -> TableLimits {
        TableLimits {
            queues_max: QUEUES_PER_VHOST_MAX,
            bindings_max: BINDINGS_PER_VHOST_MAX,
            subscriptions_max: SUBSCRIPTIONS_PER_VHOST_MAX,
            subscriptions_built_in: 0,
        }
    }
}

impl Table {
    /// An empty table. The seed is a secret that defends against names chosen to collide.
    pub fn new(seed: Seed, limits: TableLimits) -> Table {
        Table { seed, limits, version: 0, vhosts: Arc::default() }
    }

    /// Changes the limits; a vhost that is above them keeps what it has.
    pub fn limit(&mut self, limits: TableLimits) {
        self.limits = limits;
        self.version += 1;
    }

    /// The version, which each change increases.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Adds a vhost with the default exchange and the other predeclared ones; returns whether it is
    /// new.
    pub fn add_vhost(&mut self, id: VhostId, name: Name) -> bool {
        let place = id.0 as usize;
        let vhosts = Arc::make_mut(&mut self.vhosts);
        if vhosts.len() <= place {
            vhosts.resize(place + 1, None);
        }
        let Some(vhost @ None) = vhosts.get_mut(place) else {
            return false;
        };
        *vhost = Some(Arc::new(Vhost::new(self.seed, name)));
        self.version += 1;
        true
    }

    /// All vhosts with their names, in ascending order of number.
    pub fn vhosts(&self) -> impl Iterator<Item = (VhostId, &Name)> {
        let numbered = (0..).map(VhostId).zip(self.vhosts.iter());
        numbered.filter_map(|(id, vhost)| vhost.as_ref().map(|vhost| (id, vhost.name())))
    }

    /// Finds a vhost by its name; `None` if there is none.
    pub fn vhost_named(&self, name: &[u8]) -> Option<VhostId> {
        self.vhosts().find(|(_, known)| known.as_bytes() == name).map(|(id, _)| id)
    }

    /// The name of a vhost, if it exists.
    pub fn vhost_name(&self, id: VhostId) -> Option<&Name> {
        self.known(id).map(Vhost::name)
    }

    /// Removes a vhost with everything in it; returns whether it existed.
    pub fn remove_vhost(&mut self, id: VhostId) -> bool {
        let vhost = Arc::make_mut(&mut self.vhosts).get_mut(id.0 as usize);
        let removed = vhost.and_then(Option::take).is_some();
        self.version += u64::from(removed);
        removed
    }

    /// The policies of a vhost.
    pub fn policies(&self, vhost: VhostId) -> Policies {
        self.known(vhost).map(|vhost| vhost.policies().clone()).unwrap_or_default()
    }

    /// Replaces the policies of a vhost, for its exchanges and for everything declared there from
    /// now on; returns whether the vhost exists.
    pub fn set_policies(&mut self, vhost: VhostId, policies: Policies) -> bool {
        let seed = self.seed;
        let Ok(vhost) = self.vhost_mut(vhost) else { return false };
        vhost.set_policies(seed, policies);
        self.version += 1;
        true
    }

    /// Adds an exchange; returns whether it is new. An equal redeclaration changes nothing.
    pub fn declare_exchange(
        &mut self,
        vhost: VhostId,
        name: &[u8],
        kind: ExchangeKind,
        settings: Settings,
    ) -> Result<bool, RouteError> {
        let seed = self.seed;
        let known = self.vhost(vhost)?;
        if let Some(found) = known.exchange(seed, name) {
            if found.kind() == kind && *found.settings() == settings {
                return Ok(false);
            }
            return Err(RouteError::Differs {
                exchange: found.name().clone(),
                kind: found.kind(),
                settings: found.settings().clone(),
            });
        }
        if name.starts_with(b"amq.") {
            return Err(RouteError::Reserved(Name::new(name)));
        }
        check_limit("exchanges", known.exchange_count(), EXCHANGES_PER_VHOST_MAX)?;
        self.vhost_mut(vhost)?.add_exchange(seed, Exchange::new(Name::new(name), kind, settings));
        self.version += 1;
        Ok(true)
    }

    /// Removes an exchange and the bindings from and to it.
    pub fn delete_exchange(&mut self, vhost: VhostId, name: &[u8]) -> Result<Removal, RouteError> {
        if name.is_empty() {
            return Err(RouteError::DefaultExchange);
        }
        if name.starts_with(b"amq.") {
            return Err(RouteError::Reserved(Name::new(name)));
        }
        let seed = self.seed;
        let mut removal = Removal::default();
        removal.was_there = self.vhost_mut(vhost)?.remove_exchange(seed, name, &mut removal.auto_deleted);
        self.version += u64::from(removal.was_there);
        Ok(removal)
    }

    /// The exchange of this name.
    pub fn exchange(&self, vhost: VhostId, name: &[u8]) -> Option<&Exchange> {
        self.known(vhost)?.exchange(self.seed, name)
    }

    /// All exchanges of a vhost.
    pub fn exchanges(&self, vhost: VhostId) -> impl Iterator<Item = &Exchange> {
        self.known(vhost).into_iter().flat_map(Vhost::exchanges)
    }

    /// Registers a queue under its name; returns whether the name was free. A name that is taken
    /// keeps its queue.
    pub fn add_queue(&mut self, vhost: VhostId, name: &[u8], id: QueueId) -> Result<bool, RouteError> {
        let seed = self.seed;
        let known = self.vhost(vhost)?;
        if known.queue(seed, name).is_some() {
            return Ok(false);
        }
        check_limit("queues", known.queue_count(), self.limits.queues_max)?;
        self.vhost_mut(vhost)?.add_queue(seed, Name::new(name), id);
        self.version += 1;
        Ok(true)
    }

    /// Removes the name of a queue and all bindings to it.
    pub fn remove_queue(&mut self, vhost: VhostId, name: &[u8]) -> Result<Removal, RouteError> {
        let seed = self.seed;
        let mut removal = Removal::default();
        removal.was_there = self.vhost_mut(vhost)?.remove_queue(seed, name, &mut removal.auto_deleted);
        self.version += u64::from(removal.was_there);
        Ok(removal)
    }

    /// The queue of this name.
    pub fn queue(&self, vhost: VhostId, name: &[u8]) -> Option<QueueId> {
        self.known(vhost)?.queue(self.seed, name)
    }

    /// All queues of a vhost.
    pub fn queues(&self, vhost: VhostId) -> impl Iterator<Item = (&Name, QueueId)> {
        self.known(vhost).into_iter().flat_map(Vhost::queues)
    }

    /// The number of queues in a vhost.
    pub fn queue_count(&self, vhost: VhostId) -> usize {
        self.known(vhost).map_or(0, Vhost::queue_count)
    }

    /// Adds a binding; returns whether it is new.
    pub fn bind(
        &mut self,
        vhost: VhostId,
        exchange: &[u8],
        key: &BindingKey,
        arguments: &Arguments,
        target: &Target,
    ) -> Result<bool, RouteError> {
        let seed = self.seed;
        let known = self.vhost(vhost)?;
        check_ends(seed, known, exchange, target)?;
        arguments.check().map_err(RouteError::Arguments)?;
        match target {
            Target::Subscription(_) | Target::Member { .. } => {
                let of_clients =
                    known.subscription_count().saturating_sub(self.limits.subscriptions_built_in);
                check_limit("subscriptions", of_clients, self.limits.subscriptions_max)?;
            }
            Target::Queue(_) | Target::Exchange(_) => {
                check_limit("bindings", known.binding_count(), self.limits.bindings_max)?;
            }
        }
        let is_new = self.vhost_mut(vhost)?.bind(seed, exchange, key, arguments, target)?;
        self.version += u64::from(is_new);
        Ok(is_new)
    }

    /// Whether exactly this binding of a queue or an exchange exists. Live subscriptions are not
    /// found.
    pub fn has_binding(
        &self,
        vhost: VhostId,
        exchange: &[u8],
        key: &BindingKey,
        arguments: &Arguments,
        target: &Target,
    ) -> bool {
        let known = self.known(vhost);
        known.is_some_and(|vhost| vhost.has_binding(self.seed, exchange, key, arguments, target))
    }

    /// Removes a binding.
    pub fn unbind(
        &mut self,
        vhost: VhostId,
        exchange: &[u8],
        key: &BindingKey,
        arguments: &Arguments,
        target: &Target,
    ) -> Result<Removal, RouteError> {
        let seed = self.seed;
        check_ends(seed, self.vhost(vhost)?, exchange, target)?;
        let mut removal = Removal::default();
        let auto_deleted = &mut removal.auto_deleted;
        removal.was_there =
            self.vhost_mut(vhost)?.unbind(seed, exchange, key, arguments, target, auto_deleted)?;
        self.version += u64::from(removal.was_there);
        Ok(removal)
    }

    /// Finds the targets of a message to `exchange` with `subject`. The headers are read only if an
    /// exchange routes by them.
    pub fn route(
        &self,
        vhost: VhostId,
        exchange: &[u8],
        subject: &[u8],
        headers: &dyn Headers,
    ) -> Result<Route, RouteError> {
        self.route_known(vhost, exchange, subject, headers, None)
    }

    /// Finds the targets of an address to which the broker itself publishes, for example a dead
    /// letter. An internal exchange accepts such a message.
    ///
    /// # Errors
    /// As [`Table::route`], except [`RouteError::Internal`].
    pub fn route_from_broker(
        &self,
        vhost: VhostId,
        exchange: &[u8],
        subject: &[u8],
        headers: &dyn Headers,
    ) -> Result<Route, RouteError> {
        let vhost = self.vhost(vhost)?;
        let exchange = known_exchange(self.seed, vhost, exchange)?;
        self.follow_from(vhost, exchange, subject, headers, None)
    }

    /// Finds the route of an address as [`Table::route`] does. A caller that already has the
    /// address passes it, which saves an allocation.
    pub(super) fn route_known(
        &self,
        vhost: VhostId,
        exchange: &[u8],
        subject: &[u8],
        headers: &dyn Headers,
        address: Option<Arc<Address>>,
    ) -> Result<Route, RouteError> {
        let vhost = self.vhost(vhost)?;
        let exchange = known_exchange(self.seed, vhost, exchange)?;
        if exchange.settings().is_internal {
            return Err(RouteError::Internal(exchange.name().clone()));
        }
        self.follow_from(vhost, exchange, subject, headers, address)
    }

    fn follow_from(
        &self,
        vhost: &Vhost,
        exchange: &Exchange,
        subject: &[u8],
        headers: &dyn Headers,
        address: Option<Arc<Address>>,
    ) -> Result<Route, RouteError> {
        let mut found = FoundTargets::new();
        follow(vhost, self.seed, exchange, subject, headers, &mut found).map_err(RouteError::Pattern)?;
        let made = || Arc::new(Address { exchange: exchange.name().clone(), subject: Name::new(subject) });
        Ok(found.into_route(address.unwrap_or_else(made)))
    }

    fn known(&self, id: VhostId) -> Option<&Vhost> {
        self.vhosts.get(id.0 as usize)?.as_deref()
    }

    fn vhost(&self, id: VhostId) -> Result<&Vhost, RouteError> {
        self.known(id).ok_or(RouteError::NoVhost(id))
    }

    fn vhost_mut(&mut self, id: VhostId) -> Result<&mut Vhost, RouteError> {
        let vhost = Arc::make_mut(&mut self.vhosts).get_mut(id.0 as usize).and_then(Option::as_mut);
        vhost.map(Arc::make_mut).ok_or(RouteError::NoVhost(id))
    }
}

impl fmt::Display for RouteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RouteError::NoVhost(id) => write!(f, "vhost number `{}` is gone; connect again", id.0),
            RouteError::NoExchange(name) => write!(f, "exchange `{name}` does not exist; declare it first"),
            RouteError::Internal(name) => {
                write!(f, "exchange `{name}` is internal; publish to an exchange that is bound to it")
            }
            RouteError::DefaultExchange => f.write_str(
                "the default exchange cannot be changed; use the queue's name as routing key, \
                 or another exchange",
            ),
            RouteError::Reserved(name) => {
                write!(f, "exchange name `{name}` is reserved; use one that does not begin with `amq.`")
            }
            RouteError::Differs { exchange, kind, settings } => {
                write!(f, "exchange `{exchange}` is there as `{}`, {settings}; declare it so", kind.name())
            }
            RouteError::Pattern(error) => error.fmt(f),
            RouteError::HeaderMatch => f.write_str(
                "`x-match` is none of `all`, `any`, `all-with-x` and `any-with-x`; use one of them",
            ),
            RouteError::Arguments(error) => error.fmt(f),
            RouteError::Limit { what, max } => write!(f, "vhost has {max} {what} already; remove some first"),
        }
    }
}

impl std::error::Error for RouteError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            RouteError::Pattern(error) => Some(error),
            RouteError::Arguments(error) => Some(error),
            _ => None,
        }
    }
}

impl From<KeyError> for RouteError {
    fn from(error: KeyError) -> RouteError {
        match error {
            KeyError::Pattern(error) => RouteError::Pattern(error),
            KeyError::UnknownMatch => RouteError::HeaderMatch,
        }
    }
}

fn known_exchange<'a>(seed: Seed, vhost: &'a Vhost, name: &[u8]) -> Result<&'a Exchange, RouteError> {
    vhost.exchange(seed, name).ok_or_else(|| RouteError::NoExchange(Name::new(name)))
}

/// Checks that both ends of a binding exist and are not the default exchange.
fn check_ends(seed: Seed, vhost: &Vhost, exchange: &[u8], target: &Target) -> Result<(), RouteError> {
    let ends =
        [Some(exchange), if let Target::Exchange(name) = target { Some(name.as_bytes()) } else { None }];
    for name in ends.into_iter().flatten() {
        if known_exchange(seed, vhost, name)?.name().as_bytes().is_empty() {
            return Err(RouteError::DefaultExchange);
        }
    }
    Ok(())
}

fn check_limit(what: &'static str, count: usize, max: usize) -> Result<(), RouteError> {
    if count >= max { Err(RouteError::Limit { what, max }) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
