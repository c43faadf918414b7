//! The routing table of all vhosts: a snapshot that costs a few counters to copy.
//!
//! One writer changes a copy and publishes it; whoever holds an older one is not disturbed.

use std::fmt;
use std::sync::Arc;

use super::arguments::{Arguments, ArgumentsError};
use super::binding::BindingKey;
use super::exchange::{AutoDeleted, Exchange, ExchangeKind, KeyError, Settings};
use super::follow::follow;
use super::hamt::Seed;
use super::header::Headers;
use super::pattern::PatternError;
use super::target::{Found, Route, Target};
use super::vhost::Vhost;
use crate::id::{QueueId, VhostId};
use crate::limits::{
    BINDINGS_PER_VHOST_MAX, EXCHANGES_PER_VHOST_MAX, QUEUES_PER_VHOST_MAX, SUBSCRIPTIONS_PER_VHOST_MAX,
};
use crate::message::Address;
use crate::name::Name;
use crate::policy::Policies;

/// All vhosts with their exchanges, bindings and names of queues.
#[derive(Debug, Clone)]
pub struct Table {
    seed: Seed,
    limits: TableLimits,
    version: u64,
    /// By number: they are few, and every message asks for one.
    vhosts: Arc<Vec<Option<Arc<Vhost>>>>,
}

/// The result of a removal.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Removal {
    /// Whether there was anything to remove.
    pub was_there: bool,
    /// Exchanges with auto-delete that lost their last binding by it and are gone too.
    pub auto_deleted: Vec<AutoDeleted>,
}

/// Why the table cannot be changed so, or a message not be routed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RouteError {
    /// The vhost is not in the table.
    NoVhost(VhostId),
    /// The vhost has no such exchange.
    NoExchange(Name),
    /// Clients cannot publish to this exchange.
    Internal(Name),
    /// The default exchange is bound to every queue by its name and to nothing else.
    DefaultExchange,
    /// The name begins with `amq.`.
    Reserved(Name),
    /// The exchange is there and is of another kind, or has other settings.
    Differs {
        /// The exchange.
        exchange: Name,
        /// The kind of the exchange.
        kind: ExchangeKind,
        /// The settings of its declaration.
        settings: Settings,
    },
    /// The key is no pattern of its protocol, or the subject is none that can be routed.
    Pattern(PatternError),
    /// `x-match` is not one of its four values.
    HeaderMatch,
    /// The binding has too many arguments.
    Arguments(ArgumentsError),
    /// The vhost has as many as it may have.
    Limit {
        /// The kind of object.
        what: &'static str,
        /// How many.
        max: usize,
    },
}

/// How many things a vhost may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableLimits {
    /// Queues.
    pub queues_max: usize,
    /// Bindings to queues and exchanges.
    pub bindings_max: usize,
    /// Live subscriptions.
    pub subscriptions_max: usize,
    /// Subscriptions of the broker itself in each vhost, which take nothing away from clients.
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
    /// An empty table. The seed is a secret against names chosen to collide.
    pub fn new(seed: Seed, limits: TableLimits) -> Table {
        Table { seed, limits, version: 0, vhosts: Arc::default() }
    }

    /// Sets other limits; a vhost that has more keeps it.
    pub fn limit(&mut self, limits: TableLimits) {
        self.limits = limits;
        self.version += 1;
    }

    /// A number that each change makes larger.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Adds a vhost of this name with the default exchange and those that are always there; says whether it is new.
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

    /// All vhosts with their names, by rising number.
    pub fn vhosts(&self) -> impl Iterator<Item = (VhostId, &Name)> {
        let numbered = (0..).map(VhostId).zip(self.vhosts.iter());
        numbered.filter_map(|(id, vhost)| vhost.as_ref().map(|vhost| (id, vhost.name())))
    }

    /// The vhost of this name, which a client enters.
    pub fn vhost_named(&self, name: &[u8]) -> Option<VhostId> {
        self.vhosts().find(|(_, known)| known.as_bytes() == name).map(|(id, _)| id)
    }

    /// The name of a vhost, if there is such a vhost.
    pub fn vhost_name(&self, id: VhostId) -> Option<&Name> {
        self.known(id).map(Vhost::name)
    }

    /// Takes out a vhost with all it has; says whether it was there.
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

    /// Lets these policies act on the exchanges of a vhost, and on all that is declared there from now on; says whether
    /// the vhost is there.
    pub fn set_policies(&mut self, vhost: VhostId, policies: Policies) -> bool {
        let seed = self.seed;
        let Ok(vhost) = self.vhost_mut(vhost) else { return false };
        vhost.set_policies(seed, policies);
        self.version += 1;
        true
    }

    /// Adds an exchange; says whether it is new. Declaring it again as it is changes nothing.
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

    /// Takes out an exchange with the bindings from and to it.
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

    /// Gives a queue its name; says whether that is new. A name that is taken keeps its queue.
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

    /// Takes out the name of a queue and all bindings to it.
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

    /// How many queues a vhost has.
    pub fn queue_count(&self, vhost: VhostId) -> usize {
        self.known(vhost).map_or(0, Vhost::queue_count)
    }

    /// Adds a binding; says whether it is new.
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

    /// Tells whether a queue or an exchange is bound to `exchange` exactly so. Of live subscriptions it knows nothing.
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

    /// Takes a binding out.
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

    /// Where a message to `exchange` with `subject` goes. The headers are read only if an
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

    /// The targets of an address to which the broker itself publishes, as it does dead letters: an
    /// internal exchange takes those.
    ///
    /// # Errors
    /// As [`Table::route`], but for [`RouteError::Internal`].
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

    /// Finds the route of an address as [`Table::route`] does. The caller passes the address if it has it already,
    /// which saves an allocation.
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
        let mut found = Found::new();
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

/// Checks that both ends of a binding are there and may have one.
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
