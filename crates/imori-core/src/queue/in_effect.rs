//! The settings of a queue in effect: those of its declaration, as policies change them.
//!
//! As in RabbitMQ, the lowest of all limits applies. A declared target of dead letters wins over one of a
//! policy. For overflow the declaration wins in a classic queue, and the policy in a quorum queue.

use super::dedup::Dedup;
use super::leave::Effects;
use super::queue::Queue;
use super::settings::{DeadLetterTarget, Governed, QueueSettings};
use crate::limits::DEDUP_BYTES_MAX;
use crate::policy::{DeliveryLimit, Matched, Overflow, QueueKind, Source};
use crate::time::Time;

/// The source of each setting in effect.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Sources {
    /// The source of [`QueueSettings::expires`].
    pub expires: Source,
    /// The source of [`QueueSettings::message_ttl`].
    pub message_ttl: Source,
    /// The source of [`QueueSettings::length_max`].
    pub length_max: Source,
    /// The source of [`QueueSettings::length_bytes_max`].
    pub length_bytes_max: Source,
    /// The source of [`QueueSettings::overflow`].
    pub overflow: Source,
    /// The source of the dead-letter exchange.
    pub dead_letter_exchange: Source,
    /// The source of the dead-letter routing key.
    pub dead_letter_routing_key: Source,
    /// The source of [`QueueSettings::delivery_limit`].
    pub delivery_limit: Source,
}

impl Queue {
    /// The settings of the declaration, which a later declaration has to repeat.
    pub fn declared(&self) -> &QueueSettings {
        self.governed.as_ref().map_or(&self.settings, |governed| &governed.declared)
    }

    /// The policies that apply to the queue.
    pub fn matched(&self) -> Matched {
        self.governed.as_ref().map(|governed| governed.matched.clone()).unwrap_or_default()
    }

    /// Whether exactly these policies apply to the queue.
    pub fn is_governed_by(&self, matched: &Matched) -> bool {
        self.governed.as_ref().map_or(matched.is_empty(), |governed| governed.matched.is_same(matched))
    }

    /// Applies these policies from now on, in place of the previous ones.
    pub fn govern(&mut self, matched: Matched, now: Time) {
        let declared = match self.governed.take() {
            Some(governed) => governed.declared,
            None => self.settings.clone(),
        };
        let (settings, _) = in_effect(&declared, &matched);
        if settings.expires != self.settings.expires {
            // Time that passed under another setting does not count.
            self.last_used = now;
        }
        self.settings = settings;
        if !matched.is_empty() {
            self.governed = Some(Box::new(Governed { declared, matched }));
        }
        self.renew_features();
    }

    /// Replaces the declaration of a stream. Policies have to be applied anew.
    pub(crate) fn redeclare(&mut self, settings: QueueSettings, now: Time) {
        self.governed = None;
        if let Some(stream) = &mut self.stream {
            stream.settings = settings.stream.as_deref().cloned().unwrap_or_default();
        }
        if settings.dedup_window != self.settings.dedup_window {
            let gauge = self.gauge.clone();
            let dedup = |window| Box::new(Dedup::new(window, DEDUP_BYTES_MAX, gauge));
            self.dedup = settings.dedup_window.map(dedup);
        }
        self.settings = settings;
        self.last_used = now;
        self.renew_features();
    }

    /// Removes the ready messages that the settings in effect forbid. Messages on disk follow when they are
    /// read.
    pub fn enforce(&mut self, now: Time, effects: &mut Effects) {
        if self.stream.is_some() {
            return self.enforce_stream(now, effects);
        }
        self.expire(now, effects);
        if self.settings.overflow == Overflow::DropHead {
            self.drop_surplus(now, effects);
        }
    }
}

/// The settings in effect under these policies, and the source of each.
pub fn in_effect(declared: &QueueSettings, matched: &Matched) -> (QueueSettings, Sources) {
    let (mut settings, mut sources) = (declared.clone(), Sources::default());
    (settings.expires, sources.expires) = matched.lowest(declared.expires, |policy| policy.expires);
    (settings.message_ttl, sources.message_ttl) =
        matched.lowest(declared.message_ttl, |policy| policy.message_ttl);
    if declared.kind == QueueKind::Stream {
        let (age, source) = matched.lowest(settings.message_ttl, |policy| policy.max_age);
        if age != settings.message_ttl {
            (settings.message_ttl, sources.message_ttl) = (age, source);
        }
    }
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
        QueueKind::Classic | QueueKind::Stream => argument.or(policy),
        QueueKind::Quorum => policy.or(argument),
    };
    said.unwrap_or_default()
}

/// The default limit of a quorum queue gives way to a policy.
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
