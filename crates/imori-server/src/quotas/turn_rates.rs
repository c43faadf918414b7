//! Caches the publish rates of the connection whose turn it is, to avoid a lookup for each message.

use std::cell::RefCell;
use std::sync::Arc;

use imori_core::authorize::Actor;
use imori_core::id::{ConnectionId, VhostId};
use imori_core::name::Name;
use imori_core::time::Time;

use super::rate::Rate;

/// The rates of the last publisher.
#[derive(Debug, Default)]
pub(crate) struct TurnRates(RefCell<Option<Found>>);

/// Looks up the rates of an actor.
pub(crate) trait Rates {
    /// Changes whenever rates change.
    fn version(&self) -> u64;

    /// The rates of the actor's user and vhost.
    fn find(&self, actor: &Actor<'_>) -> [Option<Arc<Rate>>; 2];
}

#[derive(Debug)]
struct Found {
    connection: ConnectionId,
    user: Name,
    vhost: VhostId,
    /// The version at which they were found.
    version: u64,
    rates: [Option<Arc<Rate>>; 2],
}

impl TurnRates {
    /// Whether a publish rate applies to the actor.
    pub(crate) fn has_any(&self, from: &impl Rates, actor: &Actor<'_>) -> bool {
        self.with(from, actor, |rates| rates.next().is_some())
    }

    /// Charges a publish to the actor's rates.
    pub(crate) fn charge(
        &self,
        from: &impl Rates,
        actor: &Actor<'_>,
        now: Time,
        (messages, bytes): (usize, usize),
    ) {
        self.with(from, actor, |rates| rates.for_each(|rate| rate.charge(now, messages, bytes)));
    }

    /// When the actor may publish again; `None` if it is now.
    pub(crate) fn open_at(&self, from: &impl Rates, actor: &Actor<'_>, now: Time) -> Option<Time> {
        self.with(from, actor, |rates| rates.filter_map(|rate| rate.open_at(now)).max())
    }

    fn with<R>(
        &self,
        from: &impl Rates,
        actor: &Actor<'_>,
        f: impl FnOnce(&mut dyn Iterator<Item = &Rate>) -> R,
    ) -> R {
        let mut found = self.0.borrow_mut();
        let version = from.version();
        let user = &actor.identity.user;
        let is_of = |found: &Found| {
            (found.connection, found.vhost, found.version) == (actor.connection, actor.vhost, version)
                && found.user == *user
        };
        if !found.as_ref().is_some_and(is_of) {
            *found = None;
        }
        let found = found.get_or_insert_with(|| Found {
            connection: actor.connection,
            user: user.clone(),
            vhost: actor.vhost,
            version,
            rates: from.find(actor),
        });
        f(&mut found.rates.iter().flatten().map(|rate| &**rate))
    }
}
