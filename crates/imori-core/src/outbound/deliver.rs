//! Deliveries to a connection: from queues to its consumers, and live ones to its subscriptions and inboxes.

use std::sync::Arc;

use super::backlog::{Receiver, Waiting};
use super::buffer::Buffer;
use super::credit::Credit;
use super::encoder::{CutReason, Encoder, Recipient, SharedHeaders};
use super::inbox::{InboxAddress, Pass};
use super::outbound::Outbound;
use super::readers::{ReaderSpec, Source, Subscription};
use super::session::Session;
use crate::delivery::{About, Delivery, QueuePosition, Taken};
use crate::features::ConnectionFeatures;
use crate::id::{QueueId, ReaderId, SessionId, VhostId};
use crate::message::{AddressView, Publication};
use crate::route::pattern::is_reply;

/// Body size from which a delivery waits as a message; below, it waits as encoded bytes, because a small
/// frame takes less memory than the message would.
pub(super) const WAITING_BODY_MIN: usize = 512;

/// The result of a delivery to a live subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Live {
    /// The message was accepted for delivery.
    Taken,
    /// The message was accepted, but the reader is behind: the publisher should slow down.
    SlowReader,
    /// The first messages of the run were accepted, and used up the reader's limit. The caller has to remove
    /// the subscription from the routing table.
    Exhausted {
        /// Number of messages that were accepted.
        taken: usize,
        /// The subscription to remove from the routing table.
        subscription: Box<Subscription>,
    },
    /// The reader's protocol has no form for the message.
    NoForm,
    /// The reader's rights deny the subject.
    Denied,
    /// The reader's selector does not match the message.
    Unwanted,
    /// The reader was cut, because it had too many unsent bytes.
    Cut,
    /// There is no such subscription.
    Gone,
}

/// The result of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// The reply was accepted for delivery.
    Taken,
    /// The inbox's owner was cut, because it had too many unsent bytes.
    Cut,
    /// There is no such inbox.
    Gone,
}

impl Outbound {
    /// Offers a delivery from `queue` to a consumer. `shared` serves all receivers of this message and
    /// similar ones.
    #[inline]
    pub fn offer(
        &mut self,
        id: ReaderId,
        queue: QueueId,
        delivery: &Delivery<'_>,
        shared: &mut SharedHeaders,
    ) -> Taken {
        if self.is_ended() {
            return Taken::Gone;
        }
        let has_room = self.has_room();
        let Some(record) = self.readers.get_mut(id) else {
            return Taken::Gone;
        };
        if !has_room || record.is_held || !record.spec.credit.has_any() {
            record.is_starved = true;
            record.is_behind = true;
            self.is_starved |= !has_room;
            return Taken::Full;
        }
        let Some(session) = self.sessions.at_mut(record.session).filter(|session| !session.is_ended) else {
            return Taken::Gone;
        };
        if !session.has_window(record.spec.settles) {
            record.is_starved = true;
            record.is_behind = true;
            session.join_line(record, id);
            return Taken::Full;
        }
        record.is_behind &= !delivery.is_last;
        record.spec.credit.spend();
        let taken = write_delivery(
            &mut *self.encoder,
            &mut self.buffer,
            session,
            (&record.spec, id),
            queue,
            delivery,
            shared,
        );
        if session.frames.is_some() {
            self.rest_bytes += session.rest_bytes();
        }
        if taken == Taken::Unsettled {
            self.unsettled += 1;
            self.activity.delivered_unsettled += 1;
        }
        if delivery.is_redelivered {
            self.activity.redelivered += 1;
        }
        taken
    }

    /// Writes a delivery from a queue to a client that gets one message without being a consumer. It answers
    /// a command, so neither a window nor waiting bytes hold it back.
    pub fn give(
        &mut self,
        queue: QueueId,
        (session, label): (SessionId, Box<[u8]>),
        settles: bool,
        delivery: &Delivery<'_>,
    ) -> Taken {
        if self.is_ended() {
            return Taken::Gone;
        }
        // A reader for this one delivery, with an id of its own, so that it is settled like any other.
        let source = Source::Queue(queue);
        let spec = ReaderSpec { session, label, source, settles, credit: Credit::Unlimited, name: None };
        let Some(id) = self.add_reader(spec) else { return Taken::Gone };
        let Some(record) = self.take_reader(id) else { return Taken::Gone };
        let Some(session) = self.sessions.at_mut(record.session) else { return Taken::Gone };
        let taken = write_delivery(
            &mut *self.encoder,
            &mut self.buffer,
            session,
            (&record.spec, id),
            queue,
            delivery,
            &mut SharedHeaders::for_receivers(1),
        );
        self.unsettled += usize::from(taken == Taken::Unsettled);
        match settles {
            true => self.activity.got_unsettled += 1,
            false => self.activity.got_settled += 1,
        }
        self.activity.redelivered += u64::from(delivery.is_redelivered);
        taken
    }

    /// Sends messages to a live subscription. They differ only in their bodies, which have the same length;
    /// `shared` serves all of them and all their receivers.
    #[inline]
    pub fn send(
        &mut self,
        id: ReaderId,
        run: &[Publication<'_>],
        about: About<'_>,
        shared: &mut SharedHeaders,
    ) -> Live {
        // Nearly every message: it comes alone, no other waits before it, and no condition applies.
        let [publication] = run else { return self.send_with_care(id, run, about, shared) };
        if !self.is_ended()
            && self.has_room()
            && self.unsent() < self.limits.unsent_bytes_max
            && let Some(record) = self.readers.get_mut(id).filter(|record| !record.has_conditions)
            && let Some(session) = self.sessions.at_mut(record.session).filter(|session| !session.is_ended)
        {
            let delivery = about.first(publication);
            if self.features.any(ConnectionFeatures::CHOOSY) && !self.encoder.has_form(&delivery) {
                return Live::NoForm;
            }
            record.delivered = record.delivered.saturating_add(1);
            write_live(&mut *self.encoder, &mut self.buffer, session, &record.spec.label, &delivery, shared);
            self.charge_change();
            return if self.has_room() || self.spares(about) { Live::Taken } else { Live::SlowReader };
        }
        self.send_with_care(id, run, about, shared)
    }

    /// Sends messages to a live subscription if there are several, if others wait, or if conditions apply.
    #[inline(never)]
    fn send_with_care(
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
        if self.sessions.at(record.session).is_none_or(|session| session.is_ended) {
            return Live::Gone;
        }
        if record.filter.as_mut().is_some_and(|filter| filter.withholds(about.address.subject())) {
            return Live::Denied;
        }
        // All messages of a run have the same headers.
        if record.selector.is_some()
            && run.first().is_some_and(|first| !record.wants(&about.fresh(first.view())))
        {
            return Live::Unwanted;
        }
        let left = record.left();
        let run = left.and_then(|left| run.get(..left)).unwrap_or(run);
        let Some(first) = run.first() else { return Live::Gone };
        if self.features.any(ConnectionFeatures::CHOOSY) && !self.encoder.has_form(&about.fresh(first.view()))
        {
            return Live::NoForm;
        }
        record.delivered = record.delivered.saturating_add(u32::try_from(run.len()).unwrap_or(u32::MAX));
        let written = self.send_at_once(id, run, about, shared);
        for publication in run.iter().skip(written) {
            let delivery = about.first(publication);
            if !self.push(Receiver::Reader(id), publication, &delivery, shared) {
                return Live::Cut;
            }
        }
        if left == Some(run.len())
            && let Some(Source::Live(subscription)) = self.source(id)
        {
            let subscription = subscription.clone();
            self.exhausted.push(id);
            return Live::Exhausted { taken: run.len(), subscription };
        }
        if self.has_room() || self.spares(about) { Live::Taken } else { Live::SlowReader }
    }

    /// Writes the first messages of a run, as far as there is room at once; returns how many. Returns 0 for a
    /// single message, or if others wait already.
    fn send_at_once(
        &mut self,
        id: ReaderId,
        run: &[Publication<'_>],
        about: About<'_>,
        shared: &mut SharedHeaders,
    ) -> usize {
        let room = self.limits.feed_bytes.saturating_sub(self.buffer.unsent());
        if run.len() < 2 || room == 0 || !self.backlog.is_empty() {
            return 0;
        }
        let Some(record) = self.readers.get(id) else { return 0 };
        let ReaderSpec { session: session_id, label, .. } = &record.spec;
        let Some(session) = self.sessions.at_mut(record.session) else { return 0 };
        let number = session.next_number();
        let recipient = Recipient { session: *session_id, label, number, settles: false };
        let (encoder, mut written) = (&mut *self.encoder, 0);
        self.buffer.append(|out| written = encoder.deliver_run(out, recipient, run, about, shared, room));
        session.sent(written);
        self.charge_change();
        written
    }

    /// Sends a message to an inbox.
    pub fn reply(&mut self, to: &InboxAddress, publication: &Publication<'_>) -> Reply {
        if self.is_ended() {
            return Reply::Gone;
        }
        let inbox = self.inboxes.get(usize::from(to.index)).and_then(Option::as_ref);
        let Some(inbox) = inbox.filter(|inbox| inbox.is_opened_by(&to.secret)) else { return Reply::Gone };
        if self.has_room()
            && self.unsent() < self.limits.unsent_bytes_max
            && let Some(session) = self.sessions.at_mut(inbox.session).filter(|session| !session.is_ended)
        {
            let address = AddressView::new(&inbox.address);
            let delivery = About { address: &address, deaths: None }.first(publication);
            let shared = &mut SharedHeaders::for_receivers(1);
            write_live(&mut *self.encoder, &mut self.buffer, session, &inbox.label, &delivery, shared);
            self.charge_change();
            return Reply::Taken;
        }
        let address = Arc::clone(&inbox.address);
        let address = AddressView::new(&address);
        let delivery = About { address: &address, deaths: None }.first(publication);
        let receiver = Receiver::Inbox(to.index, inbox.serial);
        if self.push(receiver, publication, &delivery, &mut SharedHeaders::for_receivers(1)) {
            Reply::Taken
        } else {
            Reply::Cut
        }
    }

    /// Sends a message past a temporary queue to its reader. `false` if the queue has to take it, because
    /// others wait there, the reader has no credit, or another consumer reads too.
    pub fn pass(&mut self, to: &InboxAddress, vhost: VhostId, publication: &Publication<'_>) -> bool {
        let Some(Pass { queue, reader, address }) = self.reply_queues.pass(to, vhost) else { return false };
        if self.readers.get(reader).is_none_or(|record| record.is_behind) {
            return false;
        }
        let address = AddressView::new(&address);
        let delivery = About { address: &address, deaths: None }.first(publication);
        self.offer(reader, queue, &delivery, &mut SharedHeaders::for_receivers(1)) == Taken::Settled
    }

    /// Encodes a delivery, or lets it wait as a message; `false` if that cut the connection.
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
        let (label, slot) = match receiver {
            Receiver::Reader(id) => match self.readers.get(id) {
                Some(record) => (&record.spec.label, record.session),
                None => return,
            },
            Receiver::Inbox(index, serial) => match self.inboxes.get(usize::from(index)) {
                Some(Some(inbox)) if inbox.serial == serial => (&inbox.label, inbox.session),
                _ => return,
            },
        };
        let Some(session) = self.sessions.at_mut(slot).filter(|session| !session.is_ended) else {
            return;
        };
        write_live(&mut *self.encoder, &mut self.buffer, session, label, delivery, shared);
    }

    /// Whether a publisher need not wait although there is no room. A replier also serves other clients: one
    /// requester that sends many requests before it reads must not slow the replier down.
    #[cold]
    fn spares(&self, about: About<'_>) -> bool {
        is_reply(about.address.subject()) && self.unsent() < self.limits.unsent_bytes_max / 2
    }
}

/// Writes a delivery that needs no settling, to a live subscription or an inbox.
#[inline(always)]
fn write_live(
    encoder: &mut dyn Encoder,
    buffer: &mut Buffer,
    session: &mut Session,
    label: &[u8],
    delivery: &Delivery<'_>,
    shared: &mut SharedHeaders,
) {
    let recipient = Recipient { session: session.id, label, number: session.next_number(), settles: false };
    buffer.append(|out| encoder.deliver(out, &recipient, delivery, shared));
    session.sent(1);
}

/// Writes a delivery from a queue, and notes it in its session.
#[inline(always)]
fn write_delivery(
    encoder: &mut dyn Encoder,
    buffer: &mut Buffer,
    session: &mut Session,
    (spec, id): (&ReaderSpec, ReaderId),
    queue: QueueId,
    delivery: &Delivery<'_>,
    shared: &mut SharedHeaders,
) -> Taken {
    let number = session.next_number();
    let recipient = Recipient { session: spec.session, label: &spec.label, number, settles: spec.settles };
    buffer.append(|out| {
        let start = out.len();
        encoder.deliver(out, &recipient, delivery, shared);
        if let Some(frames) = &mut session.frames {
            frames.pass(encoder, out, start);
        }
    });
    if spec.settles {
        session.sent_unsettled(QueuePosition { queue, sequence: delivery.sequence }, id);
        Taken::Unsettled
    } else {
        session.sent(1);
        Taken::Settled
    }
}

#[cfg(test)]
mod tests;
