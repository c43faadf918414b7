//! SUB and UNSUB.
//!
//! Consecutive SUBs are made together, and so are consecutive UNSUBs, because the new routing table
//! is most of their cost. They take effect before the client's next other operation and before the
//! turn ends, so the delay cannot be observed.

use std::mem;
use std::num::NonZeroU32;

use imori_core::broker::{self, SubscribeOptions};
use imori_core::id::ReaderId;
use imori_core::name::Name;
use imori_core::route::{BindingKey, Syntax};
use imori_core::world::World;

use crate::address::QUEUE_PREFIX;
use crate::client::{Client, SESSION};
use crate::codec::operation::{ClientOp, Subscribe, Unsubscribe};
use crate::protocol_error::ProtocolError;

/// Placeholder for the reader of a subscription not made yet.
const NOT_YET: ReaderId = ReaderId { slot: u32::MAX, generation: u32::MAX };

/// Subscriptions to make or to end; never both at once.
#[derive(Debug, Default)]
pub(crate) struct PendingSubscriptions {
    list: Vec<PendingSubscription>,
    ends: Vec<ReaderId>,
}

#[derive(Debug)]
struct PendingSubscription {
    key: BindingKey,
    group: Option<Name>,
    sid: Box<[u8]>,
}

impl PendingSubscriptions {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty() && self.ends.is_empty()
    }

    /// Whether the pending changes must be made before `op` is performed.
    #[inline]
    pub(crate) fn come_before(&self, op: &ClientOp<'_>) -> bool {
        match op {
            ClientOp::Subscribe(_) => !self.ends.is_empty(),
            ClientOp::Unsubscribe(_) => !self.list.is_empty(),
            _ => !self.is_empty(),
        }
    }

    /// Whether the subscription with this sid is still pending.
    #[inline]
    pub(crate) fn has(&self, client: &Client, sid: &[u8]) -> bool {
        !self.is_empty() && client.sids.get(sid) == Some(NOT_YET)
    }

    /// Queues a subscription to be made. As in nats-server, a SUB for a sid in use is ignored. NATS
    /// does not read queues, so the subject of a queue is refused.
    pub(crate) fn add<W: World>(
        &mut self,
        client: &mut Client,
        world: &W,
        subscribe: &Subscribe<'_>,
    ) -> Result<(), ProtocolError> {
        let is_full = client.sids.len() >= client.settings.subscription_count_max;
        if is_full || client.sids.get(subscribe.sid).is_some() {
            forget_exhausted(client, world);
        }
        if client.sids.get(subscribe.sid).is_some() {
            return Ok(());
        }
        if subscribe.subject.starts_with(QUEUE_PREFIX) {
            let group = subscribe.group.map(Into::into);
            return Err(ProtocolError::SubscribeViolation(subscribe.subject.into(), group));
        }
        // SECURITY LIM-10.
        if client.sids.len() >= client.settings.subscription_count_max {
            return Err(ProtocolError::TooManySubscriptions);
        }
        client.sids.insert(subscribe.sid, NOT_YET);
        self.list.push(PendingSubscription {
            key: BindingKey::new(Syntax::Nats, subscribe.subject),
            group: subscribe.group.map(Name::new),
            sid: subscribe.sid.into(),
        });
        Ok(())
    }

    /// Queues the end of a subscription, unless it goes on until `max` messages. An unknown sid is
    /// ignored.
    pub(crate) fn end<W: World>(&mut self, client: &mut Client, world: &W, unsubscribe: &Unsubscribe<'_>) {
        if self.ends.is_empty() {
            forget_exhausted(client, world);
        }
        let Some(reader) = client.sids.get(unsubscribe.sid) else { return };
        let max = unsubscribe.max.and_then(|max| u32::try_from(max).ok()).and_then(NonZeroU32::new);
        if max.is_some_and(|max| broker::limit_deliveries(world, &client.actor(), reader, max)) {
            return;
        }
        client.sids.remove(unsubscribe.sid);
        self.ends.push(reader);
    }

    /// Makes or ends the pending subscriptions; returns a result for each one made, in order.
    pub(crate) fn apply<W: World>(
        &mut self,
        client: &mut Client,
        world: &W,
    ) -> Vec<Result<(), ProtocolError>> {
        if !self.ends.is_empty() {
            broker::cancel_all(world, &client.actor(), &mem::take(&mut self.ends));
        }
        if self.list.is_empty() {
            return Vec::new();
        }
        forget_exhausted(client, world);
        let options = |pending: &PendingSubscription| {
            let label = pending.sid.clone();
            (
                pending.key.clone(),
                SubscribeOptions { session: SESSION, label, group: pending.group.clone(), selector: None },
            )
        };
        let subscriptions = self.list.iter().map(options);
        let made = broker::subscribe_all(world, &client.actor(), &client.exchange, subscriptions);
        let results = self.list.drain(..).zip(made).map(|(pending, made)| match made {
            Ok(reader) => {
                client.sids.insert(&pending.sid, reader);
                Ok(())
            }
            Err(error) => {
                client.sids.remove(&pending.sid);
                let group = pending.group.as_ref().map(Name::as_bytes);
                Err(ProtocolError::of_subscribe(&error, pending.key.text.as_bytes(), group))
            }
        });
        results.collect()
    }
}

/// Removes the sids of subscriptions that reached their maximum of messages.
fn forget_exhausted<W: World>(client: &mut Client, world: &W) {
    let exhausted = world.with_outbound(client.connection, |outbound| outbound.take_exhausted());
    for sid in exhausted.unwrap_or_default() {
        client.sids.remove(&sid);
    }
}
