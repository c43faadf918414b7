//! The settings of a queue that are in effect: those of its declaration, and what policies make of them.
//!
//! As in RabbitMQ, limits take the lowest of all that is said. The target of dead letters is the declaration's own, if
//! it has one. Of overflow the declaration of a classic queue has the last word, of a quorum queue the policy.

use super::leave::Effects;
use super::queue::Queue;
use super::settings::{DeadLetterTarget, Governed, QueueSettings};
use crate::policy::{DeliveryLimit, Matched, Overflow, QueueKind, Source};
use crate::time::Time;

/// Where each setting in effect comes from.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Sources {
    /// Of [`QueueSettings::expires`].
    pub expires: Source,
    /// Of [`QueueSettings::message_ttl`].
    pub message_ttl: Source,
    /// Of [`QueueSettings::length_max`].
    pub length_max: Source,
    /// Of [`QueueSettings::length_bytes_max`].
    pub length_bytes_max: Source,
    /// Of [`QueueSettings::overflow`].
    pub overflow: Source,
    /// Of the exchange to which dead letters go.
    pub dead_letter_exchange: Source,
    /// Of the routing key that dead letters get.
    pub dead_letter_routing_key: Source,
    /// Of [`QueueSettings::delivery_limit`].
    pub delivery_limit: Source,
}

impl Queue {
    /// The settings of its declaration, which a later one has to repeat.
    pub fn declared(&self) -> &QueueSettings {
        self.governed.as_ref().map_or(&self.settings, |governed| &governed.declared)
    }

    /// The policies that act on it.
    pub fn matched(&self) -> Matched {
        self.governed.as_ref().map(|governed| governed.matched.clone()).unwrap_or_default()
    }

    /// Tells whether exactly these policies act on it.
    pub fn is_governed_by(&self, matched: &Matched) -> bool {
        self.governed.as_ref().map_or(matched.is_empty(), |governed| governed.matched.is_same(matched))
    }

    /// Lets these policies act on it from now on, in place of those that did.
    pub fn govern(&mut self, matched: Matched, now: Time) {
        let declared = match self.governed.take() {
            Some(governed) => governed.declared,
            None => self.settings.clone(),
        };
        let (settings, _) = in_effect(&declared, &matched);
        if settings.expires != self.settings.expires {
            // Time that went by under other settings does not count.
            self.last_used = now;
        }
        self.settings = settings;
        if !matched.is_empty() {
            self.governed = Some(Box::new(Governed { declared, matched }));
        }
        self.renew_features();
    }

    /// Removes what the settings in effect do not let wait. Messages on disk follow when they are read.
    pub fn enforce(&mut self, now: Time, effects: &mut Effects) {
        self.expire(now, effects);
        if self.settings.overflow == Overflow::DropHead {
            self.drop_surplus(now, effects);
        }
    }
}

/// The settings that these policies make of a declaration, and where each comes from.
pub fn in_effect(declared: &QueueSettings, matched: &Matched) -> (QueueSettings, Sources) {
    let (mut settings, mut sources) = (declared.clone(), Sources::default());
    (settings.expires, sources.expires) = matched.lowest(declared.expires, |policy| policy.expires);
    (settings.message_ttl, sources.message_ttl) =
        matched.lowest(declared.message_ttl, |policy| policy.message_ttl);
    (settings.length_max, sources.length_max) =
        matched.lowest(declared.length_max, |policy| policy.length_max);
    (settings.length_bytes_max, sources.length_bytes_max) =
        matched.lowest(declared.length_bytes_max, |policy| policy.length_bytes_max);
    (settings.overflow, sources.overflow) = overflow(declared, matched);
    (settings.delivery_limit, sources.delivery_limit) = delivery_limit(declared, matched);
    let target = declared.dead_letter.as_ref();
    let exchange = target.map(|target| target.exchange.clone());
    let routing_key = target.and_then(|target| target.routing_key.clone());
    let exchange = matched.unless_said(exchange, |policy| policy.dead_letter_exchange.clone());
    let routing_key = matched.unless_said(routing_key, |policy| policy.dead_letter_routing_key.clone());
    (sources.dead_letter_exchange, sources.dead_letter_routing_key) = (exchange.1, routing_key.1);
    settings.dead_letter =
        exchange.0.map(|exchange| DeadLetterTarget { exchange, routing_key: routing_key.0 });
    (settings, sources)
}

/// A declaration that names the default counts as one that says nothing.
fn overflow(declared: &QueueSettings, matched: &Matched) -> (Overflow, Source) {
    let argument =
        Some((declared.overflow, Source::Argument)).filter(|(said, _)| *said != Overflow::default());
    let policy = matched.last_word(|policy| policy.overflow);
    let said = match declared.kind {
        QueueKind::Classic => argument.or(policy),
        QueueKind::Quorum => policy.or(argument),
    };
    said.unwrap_or_default()
}

/// The limit that a quorum queue has by its kind alone gives way to a policy.
fn delivery_limit(declared: &QueueSettings, matched: &Matched) -> (Option<u32>, Source) {
    let default = declared.kind.delivery_limit();
    let argument = match declared.delivery_limit {
        limit if limit == default => None,
        Some(limit) => Some(DeliveryLimit::Failures(limit)),
        None => Some(DeliveryLimit::Unlimited),
    };
    match matched.lowest(argument, |policy| policy.delivery_limit) {
        (None, source) => (default, source),
        (Some(DeliveryLimit::Failures(limit)), source) => (Some(limit), source),
        (Some(DeliveryLimit::Unlimited), source) => (None, source),
    }
}

#[cfg(test)]
mod tests;
