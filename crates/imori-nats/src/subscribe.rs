//! SUB and UNSUB.
//!
//! SUBs that come together are made together, because most of what one costs is the new routing
//! table. They are made before anything else the client asks for, and before the turn ends, so that
//! nobody can tell.

use std::num::NonZeroU32;

use imori_core::broker::{self, SubscribeOptions};
use imori_core::id::ReaderId;
use imori_core::name::Name;
use imori_core::route::{BindingKey, Syntax};
use imori_core::world::World;

use crate::complaint::Complaint;
use crate::operation::{Subscribe, Unsubscribe};
use crate::session::{SESSION, Session};

/// What stands for a subscription that is still to be made.
const NOT_YET: ReaderId = ReaderId { slot: u32::MAX, generation: u32::MAX };

/// Subscriptions that are still to be made.
#[derive(Debug, Default)]
pub(crate) struct Wishes {
    list: Vec<Wish>,
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
        self.list.is_empty()
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

    /// Makes the subscriptions, and gives what each came to, in their order.
    pub(crate) fn fulfil<W: World>(
        &mut self,
        session: &mut Session,
        world: &W,
    ) -> Vec<Result<(), Complaint>> {
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

/// Ends a subscription, at once or after so many messages. One that is not there counts for nothing.
pub(crate) fn unsubscribe<W: World>(session: &mut Session, world: &W, unsubscribe: &Unsubscribe<'_>) {
    forget_exhausted(session, world);
    let Some(reader) = session.sids.get(unsubscribe.sid) else { return };
    let max = unsubscribe.max.and_then(|max| u32::try_from(max).ok()).and_then(NonZeroU32::new);
    let goes_on = match max {
        Some(max) => broker::limit_deliveries(world, &session.actor(), reader, max),
        None => {
            broker::cancel(world, &session.actor(), reader);
            false
        }
    };
    if !goes_on {
        session.sids.remove(unsubscribe.sid);
    }
}

/// Forgets the subscriptions that have had all that they may have.
fn forget_exhausted<W: World>(session: &mut Session, world: &W) {
    let exhausted = world.with_outbound(session.connection, |outbound| outbound.take_exhausted());
    for sid in exhausted.unwrap_or_default() {
        session.sids.remove(&sid);
    }
}
