//! Deliveries to a connection: those that queues offer to its consumers, those of its live subscriptions and those to
//! its inboxes.

use std::sync::Arc;

use super::backlog::{Receiver, Waiting};
use super::encoder::{CutReason, SharedHeaders};
use super::inbox::InboxAddress;
use super::outbound::Outbound;
use super::readers::{Source, Subscription};
use super::session::SessionId;
use crate::delivery::{About, Delivery, Place, Taken};
use crate::id::ReaderId;
use crate::message::{AddressView, Publication};
use crate::route::pattern::is_reply;

/// A body from this size on waits as a message, below as the bytes of its frame:
/// for small ones the frame takes less memory than the message would.
pub(super) const WAITING_BODY_MIN: usize = 512;

/// Bytes of a delivery's head besides its label, as far as it matters for finding room.
const HEAD_BYTES: usize = 32;

/// What became of a delivery to a live subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Live {
    /// It is on its way.
    Taken,
    /// It is on its way, but its reader is behind: the publisher should slow down.
    Pressed,
    /// The first of the run are on their way, and with them the reader has had all that it may have: it
    /// gets nothing any more, and its subscription has to be taken out of the routing table.
    Exhausted {
        /// How many are on their way.
        taken: usize,
        /// What it heard.
        subscription: Subscription,
    },
    /// Its protocol has no form for the message.
    NoForm,
    /// Its reader was cut, because too much waited for it.
    Cut,
    /// There is no such subscription any more.
    Gone,
}

/// What became of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// It is on its way.
    Taken,
    /// Its owner was cut, because too much waited for it.
    Cut,
    /// There is no such inbox, or not any more.
    Gone,
}

impl Outbound {
    /// Offers a delivery of a queue to a consumer.
    pub fn offer(&mut self, id: ReaderId, place: Place, delivery: &Delivery<'_>) -> Taken {
        if self.is_ended() {
            return Taken::Gone;
        }
        let has_room = self.has_room();
        let Some(record) = self.readers.get_mut(id) else {
            return Taken::Gone;
        };
        if !has_room || record.is_held || !record.spec.credit.has_any() {
            record.is_starved = true;
            self.is_starved |= !has_room;
            return Taken::Full;
        }
        let spec = &mut record.spec;
        let Some(session) = self.sessions.get_mut(usize::from(spec.session.0)) else {
            return Taken::Gone;
        };
        spec.credit.spend();
        let (encoder, number) = (&mut self.encoder, session.next_number());
        self.buffer.append(|out| {
            encoder.head(out, &spec.label, number, spec.settles, delivery);
            encoder.headers(out, delivery);
            encoder.body(out, delivery);
        });
        if spec.settles {
            session.sent_unsettled(place, id);
            self.unsettled += 1;
            Taken::Unsettled
        } else {
            session.sent(1);
            Taken::Settled
        }
    }

    /// Sends messages to a live subscription. They differ in nothing but their bodies, which are of one length;
    /// `shared` serves all of them and all their receivers.
    pub fn send(
        &mut self,
        id: ReaderId,
        run: &[Publication<'_>],
        about: About<'_>,
        shared: &mut SharedHeaders,
    ) -> Live {
        if self.is_ended() {
            return Live::Gone;
        }
        let Some(record) = self.readers.get_mut(id) else { return Live::Gone };
        let left = record.left();
        let run = left.and_then(|left| run.get(..left)).unwrap_or(run);
        let Some(first) = run.first() else { return Live::Gone };
        if self.is_choosy && !self.encoder.has_form(&about.fresh(first.view())) {
            return Live::NoForm;
        }
        record.delivered = record.delivered.saturating_add(u32::try_from(run.len()).unwrap_or(u32::MAX));
        if !self.send_at_once(id, run, about, shared) {
            for publication in run {
                let delivery = about.fresh(publication.view());
                if !self.push(Receiver::Reader(id), publication, &delivery, shared) {
                    return Live::Cut;
                }
            }
        }
        if left == Some(run.len())
            && let Some(Source::Live(subscription)) = self.source(id)
        {
            let subscription = Subscription::clone(subscription);
            self.exhausted.push(id);
            return Live::Exhausted { taken: run.len(), subscription };
        }
        if self.has_room() || self.spares(about) { Live::Taken } else { Live::Pressed }
    }

    /// Writes a whole run, if there is room for it and it is one; false where nothing was written.
    fn send_at_once(
        &mut self,
        id: ReaderId,
        run: &[Publication<'_>],
        about: About<'_>,
        shared: &mut SharedHeaders,
    ) -> bool {
        let [first, _, ..] = run else { return false };
        let first = about.fresh(first.view());
        let encoder = &mut *self.encoder;
        let Some(headers) = shared.of(encoder, &first) else { return false };
        let Some(record) = self.readers.get(id) else { return false };
        let Some(session) = self.sessions.get_mut(usize::from(record.spec.session.0)) else { return false };
        let label = &*record.spec.label;
        let bytes = run.len() * (label.len() + headers.len() + first.message.body.len() + HEAD_BYTES);
        if !self.backlog.is_empty() || self.buffer.unsent() + bytes >= self.limits.feed_bytes {
            return false;
        }
        let number = session.next_number();
        self.buffer.append(|out| {
            out.reserve(bytes);
            encoder.run(out, label, number, run, about, headers);
        });
        session.sent(run.len());
        self.charge_change();
        true
    }

    /// Sends a message to an inbox.
    pub fn reply(&mut self, to: &InboxAddress, publication: &Publication<'_>) -> Reply {
        if self.is_ended() || !self.has_inbox(to) {
            return Reply::Gone;
        }
        let Some(inbox) = self.inboxes.get(usize::from(to.index)) else {
            return Reply::Gone;
        };
        let address = Arc::clone(&inbox.address);
        let address = AddressView::new(&address);
        let delivery = About { address: &address, deaths: None }.fresh(publication.view());
        let receiver = Receiver::Inbox(to.index);
        if self.push(receiver, publication, &delivery, &mut SharedHeaders::for_receivers(1)) {
            Reply::Taken
        } else {
            Reply::Cut
        }
    }

    /// Writes a delivery, or lets it wait as a message; false where that cut the connection.
    fn push(
        &mut self,
        receiver: Receiver,
        publication: &Publication<'_>,
        delivery: &Delivery<'_>,
        shared: &mut SharedHeaders,
    ) -> bool {
        if self.unsent() >= self.limits.unsent_bytes_max {
            self.cut(CutReason::TooSlow { unsent_max: self.limits.unsent_bytes_max });
            return false;
        }
        let waits_smaller = shared.is_shared() || delivery.message.body.len() >= WAITING_BODY_MIN;
        let is_behind = self.buffer.unsent() >= self.limits.feed_bytes;
        if !self.backlog.is_empty() || is_behind && waits_smaller {
            self.backlog.push(Waiting {
                receiver,
                message: publication.stored(&self.gauge),
                address: delivery.address.keep(),
                deaths: delivery.deaths.cloned(),
            });
        } else {
            self.encode(receiver, delivery, shared);
        }
        self.charge_change();
        true
    }

    pub(super) fn encode(&mut self, receiver: Receiver, delivery: &Delivery<'_>, shared: &mut SharedHeaders) {
        let (label, session) = match receiver {
            Receiver::Reader(id) => match self.readers.get(id) {
                Some(record) => (&record.spec.label, record.spec.session),
                None => return,
            },
            Receiver::Inbox(index) => match self.inboxes.get(usize::from(index)) {
                Some(inbox) => (&inbox.label, SessionId::default()),
                None => return,
            },
        };
        let Some(session) = self.sessions.get_mut(usize::from(session.0)) else {
            return;
        };
        let (encoder, number) = (&mut *self.encoder, session.next_number());
        self.buffer.append(|out| {
            encoder.head(out, label, number, false, delivery);
            shared.append(encoder, out, delivery);
            encoder.body(out, delivery);
        });
        session.sent(1);
    }

    /// Tells whether a publisher need not wait although there is no room: who replies serves others too,
    /// and must not be slow for one that asks much before it reads.
    fn spares(&self, about: About<'_>) -> bool {
        is_reply(about.address.subject()) && self.unsent() < self.limits.unsent_bytes_max / 2
    }
}

#[cfg(test)]
mod tests;
