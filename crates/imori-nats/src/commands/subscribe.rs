//! SUB and UNSUB.
//!
//! SUBs that follow each other are made together, and UNSUBs obeyed together, because most of what one
//! costs is the new routing table. That is done before anything else the client asks for, and before
//! the turn ends, so that nobody can tell.

use std::mem;
use std::num::NonZeroU32;

use imori_core::broker::{self, SubscribeOptions};
use imori_core::id::ReaderId;
use imori_core::name::Name;
use imori_core::route::{BindingKey, Syntax};
use imori_core::world::World;

use crate::client::{SESSION, Session};
use crate::codec::operation::{ClientOp, Subscribe, Unsubscribe};
use crate::protocol_error::Complaint;

/// What stands for a subscription that is still to be made.
const NOT_YET: ReaderId = ReaderId { slot: u32::MAX, generation: u32::MAX };

/// Subscriptions that are still to be made, or to be ended; never both.
#[derive(Debug, Default)]
pub(crate) struct Wishes {
    list: Vec<Wish>,
    ends: Vec<ReaderId>,
}

#[derive(Debug)]
struct Wish {
    key: BindingKey,
    group: Option<Name>,
    sid: Box<[u8]>,
}

impl Wishes {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty() && self.ends.is_empty()
    }

    /// Says that an operation has to wait until they are fulfilled.
    #[inline]
    pub(crate) fn come_before(&self, op: &ClientOp<'_>) -> bool {
        match op {
            ClientOp::Subscribe(_) => !self.ends.is_empty(),
            ClientOp::Unsubscribe(_) => !self.list.is_empty(),
            _ => !self.is_empty(),
        }
    }

    /// Says that what a sid stands for is still to be made.
    #[inline]
    pub(crate) fn has(&self, session: &Session, sid: &[u8]) -> bool {
        !self.is_empty() && session.sids.get(sid) == Some(NOT_YET)
    }

    /// Notes a wish. One for a sid that is in use counts for nothing, as in nats-server.
    pub(crate) fn add<W: World>(
        &mut self,
        session: &mut Session,
        world: &W,
        subscribe: &Subscribe<'_>,
    ) -> Result<(), Complaint> {
        let is_full = session.sids.len() >= session.settings.subscription_count_max;
        if is_full || session.sids.get(subscribe.sid).is_some() {
            forget_exhausted(session, world);
        }
        if session.sids.get(subscribe.sid).is_some() {
            return Ok(());
        }
        // SECURITY LIM-10.
        if session.sids.len() >= session.settings.subscription_count_max {
            return Err(Complaint::TooManySubscriptions);
        }
        session.sids.insert(subscribe.sid, NOT_YET);
        self.list.push(Wish {
            key: BindingKey::new(Syntax::Nats, subscribe.subject),
            group: subscribe.group.map(Name::new),
            sid: subscribe.sid.into(),
        });
        Ok(())
    }

    /// Notes that a subscription ends, unless it goes on up to so many messages. One that is not there counts
    /// for nothing.
    pub(crate) fn end<W: World>(&mut self, session: &mut Session, world: &W, unsubscribe: &Unsubscribe<'_>) {
        if self.ends.is_empty() {
            forget_exhausted(session, world);
        }
        let Some(reader) = session.sids.get(unsubscribe.sid) else { return };
        let max = unsubscribe.max.and_then(|max| u32::try_from(max).ok()).and_then(NonZeroU32::new);
        if max.is_some_and(|max| broker::limit_deliveries(world, &session.actor(), reader, max)) {
            return;
        }
        session.sids.remove(unsubscribe.sid);
        self.ends.push(reader);
    }

    /// Makes or ends the subscriptions, and gives what each that was to be made came to, in their order.
    pub(crate) fn fulfil<W: World>(
        &mut self,
        session: &mut Session,
        world: &W,
    ) -> Vec<Result<(), Complaint>> {
        if !self.ends.is_empty() {
            broker::cancel_all(world, &session.actor(), &mem::take(&mut self.ends));
        }
        if self.list.is_empty() {
            return Vec::new();
        }
        forget_exhausted(session, world);
        let options = |wish: &Wish| {
            let label = wish.sid.clone();
            (wish.key.clone(), SubscribeOptions { session: SESSION, label, group: wish.group.clone() })
        };
        let wishes = self.list.iter().map(options);
        let made = broker::subscribe_all(world, &session.actor(), &session.exchange, wishes);
        let results = self.list.drain(..).zip(made).map(|(wish, made)| match made {
            Ok(reader) => {
                session.sids.insert(&wish.sid, reader);
                Ok(())
            }
            Err(error) => {
                session.sids.remove(&wish.sid);
                let group = wish.group.as_ref().map(Name::as_bytes);
                Err(Complaint::of_subscribe(&error, wish.key.text.as_bytes(), group))
            }
        });
        results.collect()
    }
}

/// Forgets the subscriptions that have had all that they may have.
fn forget_exhausted<W: World>(session: &mut Session, world: &W) {
    let exhausted = world.with_outbound(session.connection, |outbound| outbound.take_exhausted());
    for sid in exhausted.unwrap_or_default() {
        session.sids.remove(&sid);
    }
}
