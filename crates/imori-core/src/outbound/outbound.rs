//! One connection's outbound half.

use std::mem;
use std::num::NonZeroU32;
use std::sync::Arc;

use super::answers::Answers;
use super::backlog::{Backlog, Receiver, Waiting};
use super::buffer::Buffer;
use super::credit::Credit;
use super::encoder::{AfterCancel, CutReason, Encoder, SharedHeaders};
use super::inbox::{Inbox, InboxAddress};
use super::readers::{ReaderSpec, Readers, Source, Subscription};
use super::session::{Numbers, Session, SessionId, Unsettled};
use crate::confirm::{Confirm, Given, Level, Progress};
use crate::delivery::{About, Delivery, Place, Taken};
use crate::id::{ConnectionId, QueueId, ReaderId};
use crate::memory::Gauge;
use crate::message::{Address, AddressView, DEFAULT_EXCHANGE, Publication};
use crate::name::Name;
use crate::route::pattern::is_reply;

/// A body from this size on waits as a message, below as the bytes of its frame:
/// for small ones the frame takes less memory than the message would.
const WAITING_BODY_MIN: usize = 512;

/// Bytes that may wait without being charged: charging each delivery would make all cells write to
/// one counter.
const UNCHARGED_BYTES_MAX: usize = 64 * 1024;

/// Bytes of a delivery's head besides its label, as far as it matters for finding room.
const HEAD_BYTES: usize = 32;

/// Unsettled deliveries that are not charged, as most consumers have no more.
const UNCHARGED_UNSETTLED_MAX: usize = 64;

/// How much may be on its way to one connection.
#[derive(Debug, Clone, Copy)]
pub struct OutboundLimits {
    /// Unsent bytes from which on queues do not feed its consumers and publishers to its
    /// live subscriptions are slowed.
    pub feed_bytes: usize,
    /// Unsent bytes at which it is cut.
    pub unsent_bytes_max: usize,
    /// Inboxes it may have.
    pub inboxes_max: u16,
}

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

/// A consumer that can take more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wake {
    /// The queue it reads.
    pub queue: QueueId,
    /// The consumer.
    pub reader: ReaderId,
}

/// What a connection leaves behind.
#[derive(Debug, Default)]
pub struct Remains {
    /// Deliveries that it had not settled, by session and number.
    pub unsettled: Vec<Unsettled>,
    /// Its readers and what they read.
    pub readers: Vec<(ReaderId, Source)>,
    /// Publishers that waited for it to have room.
    pub pressing: Vec<ConnectionId>,
    /// Nothing else is left.
    pub is_all: bool,
}

/// The outbound half of a connection.
pub struct Outbound {
    id: ConnectionId,
    encoder: Box<dyn Encoder>,
    /// As the encoder says: asked once, because asking it each time shows in a fan-out.
    is_choosy: bool,
    limits: OutboundLimits,
    gauge: Gauge,
    buffer: Buffer,
    backlog: Backlog,
    sessions: Vec<Session>,
    /// Unsettled deliveries of all sessions.
    unsettled: usize,
    readers: Readers,
    /// Readers that have had all that they may have, which their protocol was not told yet.
    exhausted: Vec<ReaderId>,
    inboxes: Vec<Inbox>,
    answers: Answers,
    /// Some reader was refused for want of room.
    is_starved: bool,
    /// How often readers were told that there is room again.
    rounds: usize,
    /// Publishers that wait until there is room.
    pressing: Vec<ConnectionId>,
    /// Unsent bytes that are charged to the gauge.
    charged: usize,
    is_touched: bool,
    ended: Option<CutReason>,
    is_finished: bool,
    is_closed: bool,
}

impl Outbound {
    /// Makes the outbound half of a connection with one session; what waits in it is charged to `gauge`.
    pub fn new(
        id: ConnectionId,
        encoder: Box<dyn Encoder>,
        limits: OutboundLimits,
        gauge: Gauge,
    ) -> Outbound {
        Outbound {
            id,
            is_choosy: encoder.is_choosy(),
            encoder,
            limits,
            gauge,
            buffer: Buffer::default(),
            backlog: Backlog::default(),
            sessions: vec![Session::default()],
            unsettled: 0,
            readers: Readers::default(),
            exhausted: Vec::new(),
            inboxes: Vec::new(),
            answers: Answers::default(),
            is_starved: false,
            rounds: 0,
            pressing: Vec::new(),
            charged: 0,
            is_touched: false,
            ended: None,
            is_finished: false,
            is_closed: false,
        }
    }

    /// Whose half it is.
    pub fn id(&self) -> ConnectionId {
        self.id
    }

    /// Replaces the encoder, once the protocol's version is agreed.
    pub fn set_encoder(&mut self, encoder: Box<dyn Encoder>) {
        self.is_choosy = encoder.is_choosy();
        self.encoder = encoder;
    }

    /// Bytes that are not known to be written.
    pub fn unsent(&self) -> usize {
        self.buffer.unsent() + self.backlog.bytes()
    }

    /// Bytes that were ever given to the writer or wait for it: where it does not change, nothing is sent.
    pub fn appended(&self) -> u64 {
        self.buffer.appended()
    }

    /// Bytes that were ever written: where it does not change, the peer takes nothing.
    pub fn written_bytes(&self) -> u64 {
        self.buffer.appended() - self.buffer.unsent() as u64
    }

    /// Why the broker ends the connection, if it does.
    pub fn ended(&self) -> Option<&CutReason> {
        self.ended.as_ref()
    }

    /// How many readers it has.
    pub fn readers_len(&self) -> usize {
        self.readers.len()
    }

    /// Its readers from this slot on, each with its slot: so a long list can be had in pieces.
    pub fn readers_from(&self, slot: usize) -> impl Iterator<Item = (usize, &ReaderSpec)> {
        self.readers.specs(slot)
    }

    /// How many deliveries were written, settled or not.
    pub fn delivered(&self) -> u64 {
        self.sessions.iter().map(Session::delivered).sum()
    }

    /// How many deliveries are not settled.
    pub fn unsettled_len(&self) -> usize {
        self.unsettled
    }

    // ---- Answers of the connection's own protocol.

    /// Sends an answer once `confirm` is reached, behind all earlier answers.
    pub fn answer(&mut self, confirm: Confirm, write: impl FnOnce(&mut Vec<u8>)) {
        self.send_or_hold(confirm, None, write);
    }

    /// The same with an answer that promises a level; tells whether it left at once. One that waits is
    /// counted by [`Outbound::confirmed`] when it leaves.
    pub fn promise(&mut self, confirm: Confirm, level: Level, write: impl FnOnce(&mut Vec<u8>)) -> bool {
        self.send_or_hold(confirm, Some(level), write)
    }

    fn send_or_hold(
        &mut self,
        confirm: Confirm,
        promised: Option<Level>,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> bool {
        if self.has_last_word() {
            return false;
        }
        if self.answers.may_pass(confirm) {
            self.append(write);
            return true;
        }
        let mut bytes = Vec::new();
        write(&mut bytes);
        self.answers.hold(confirm, promised, bytes);
        false
    }

    /// Lets go the answers that waited for the journal to come so far; tells which consumers can take
    /// something from now on, and what those answers promise.
    #[must_use]
    pub fn confirmed(&mut self, journal: Progress) -> (Vec<Wake>, Given) {
        let (mut given, mut wakes) = (Given::default(), Vec::new());
        self.answers.note(journal);
        while let Some(held) = self.answers.pop() {
            self.append(|out| out.extend_from_slice(&held.bytes));
            held.promised.into_iter().for_each(|level| given.add(level));
        }
        while let Some(id) = self.answers.pop_started() {
            if let Some(record) = self.readers.get_mut(id) {
                record.is_held = false;
                wakes.extend(self.wake(id));
            }
        }
        (wakes, given)
    }

    /// Lets a reader have nothing before all answers that were given have left.
    pub fn start_after_answers(&mut self, id: ReaderId) {
        if let Some(record) = self.readers.get_mut(id) {
            record.is_held = self.answers.start_behind(id);
        }
    }

    /// Sends bytes that answer nothing, such as heart-beats: they wait for no journal.
    pub fn beat(&mut self, bytes: &[u8]) {
        if !self.has_last_word() {
            self.append(|out| out.extend_from_slice(bytes));
        }
    }

    /// Tells whether the last of them waits for no more than that the journal is written.
    pub fn waits_for_write(&self) -> bool {
        self.answers.wait_for_write()
    }

    /// Tells whether answers wait for the journal.
    pub fn has_held_answers(&self) -> bool {
        !self.answers.is_empty()
    }

    /// Ends the connection: says why, which is the last it hears. Deliveries that wait as messages are
    /// dropped: it is far behind, and for a message shared by many the bytes for each would be too many.
    pub fn cut(&mut self, reason: CutReason) {
        if self.is_ended() {
            return;
        }
        let encoder = &mut self.encoder;
        self.buffer.append(|out| encoder.cut(out, &reason));
        self.end(reason);
    }

    /// Takes no more deliveries: the connection ends once all that is unsent is written. Deliveries that
    /// wait as messages are dropped, or they would follow the answer after which it ends.
    pub fn finish(&mut self) {
        self.backlog = Backlog::default();
        self.is_finished = true;
    }

    /// Tells whether it has ended and nothing of it is left to be written, now or when the journal allows it.
    pub fn is_over(&self) -> bool {
        self.is_ended() && !self.has_unsent() && !self.has_held_answers()
    }

    /// Tells whether it takes no more deliveries, and why does not matter.
    pub fn is_ended(&self) -> bool {
        self.is_closed || self.is_finished || self.ended.is_some()
    }

    // ---- Readers.

    /// Adds a reader.
    pub fn add_reader(&mut self, spec: ReaderSpec) -> ReaderId {
        self.readers.add(spec)
    }

    /// Forgets a reader and gives what it read; its unsettled deliveries stay with the session.
    pub fn remove_reader(&mut self, id: ReaderId) -> Option<Source> {
        self.readers.remove(id).map(|record| record.spec.source)
    }

    /// Limits the live deliveries of a reader, those that it had included; false where it had as many
    /// already, or is not there.
    pub fn limit_deliveries(&mut self, id: ReaderId, max: NonZeroU32) -> bool {
        let Some(record) = self.readers.get_mut(id) else {
            return false;
        };
        record.delivered_max = Some(max);
        record.left() != Some(0)
    }

    /// Forgets the readers that have had all that they may have, and gives their labels. What waits as
    /// messages needs its reader, so that none is given until that is written.
    pub fn take_exhausted(&mut self) -> Vec<Box<[u8]>> {
        if !self.backlog.is_empty() {
            return Vec::new();
        }
        let exhausted = mem::take(&mut self.exhausted);
        let records = exhausted.into_iter().filter_map(|id| self.readers.remove(id));
        records.map(|record| record.spec.label).collect()
    }

    /// The broker takes a reader's queue away: what follows is its protocol's decision.
    pub fn cancel_reader(&mut self, id: ReaderId, queue: &Name) {
        let Some(record) = self.readers.remove(id) else {
            return;
        };
        if self.has_last_word() {
            return;
        }
        let encoder = &mut self.encoder;
        let mut next = AfterCancel::GoOn;
        self.buffer.append(|out| next = encoder.cancelled(out, &record.spec.label, queue));
        if next == AfterCancel::End {
            self.end(CutReason::QueueDeleted { queue: queue.clone() });
        }
    }

    /// What a reader reads.
    pub fn source(&self, id: ReaderId) -> Option<&Source> {
        self.readers.get(id).map(|record| &record.spec.source)
    }

    /// Gives a reader other credit; a consumer that can take more for it has to be woken.
    pub fn set_credit(&mut self, id: ReaderId, credit: Credit) -> Option<Wake> {
        self.readers.get_mut(id)?.spec.credit = credit;
        self.wake(id)
    }

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

    // ---- Inboxes.

    /// The inbox of this name, made on first use of what `make` gives: its label and its secret.
    /// `None` where the connection has as many as it may have.
    pub fn inbox(
        &mut self,
        name: &[u8],
        make: impl FnOnce() -> (Box<[u8]>, [u8; 16]),
    ) -> Option<InboxAddress> {
        let known = self.inboxes.iter().position(|inbox| *inbox.name == *name);
        if let Some(index) = known {
            let secret = self.inboxes.get(index)?.secret;
            return Some(InboxAddress { owner: self.id, index: u16::try_from(index).ok()?, secret });
        }
        let index = u16::try_from(self.inboxes.len()).ok()?;
        if index >= self.limits.inboxes_max {
            return None;
        }
        let (label, secret) = make();
        let inbox = InboxAddress { owner: self.id, index, secret };
        let address = Arc::new(Address::new(DEFAULT_EXCHANGE, &inbox.to_key()));
        self.inboxes.push(Inbox { name: name.into(), label, secret, address });
        Some(inbox)
    }

    /// Tells whether the address is that of one of its inboxes.
    pub fn has_inbox(&self, address: &InboxAddress) -> bool {
        let inbox = self.inboxes.get(usize::from(address.index));
        !self.is_closed && inbox.is_some_and(|inbox| inbox.is_opened_by(&address.secret))
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

    // ---- Settling.

    /// The unsettled delivery of this number.
    pub fn find_unsettled(&self, session: SessionId, number: u64) -> Option<&Unsettled> {
        self.sessions.get(usize::from(session.0))?.find(number)
    }

    /// The unsettled deliveries that a client means; none where the named one is not unsettled.
    pub fn meant(&self, session: SessionId, numbers: Numbers) -> Vec<Unsettled> {
        self.sessions.get(usize::from(session.0)).map(|session| session.meant(numbers)).unwrap_or_default()
    }

    /// Takes the deliveries that a client settles, and tells which consumers can take more for it.
    /// Nothing is taken where the named one is not unsettled.
    pub fn settle(&mut self, session: SessionId, numbers: Numbers) -> (Vec<Unsettled>, Vec<Wake>) {
        let Some(session) = self.sessions.get_mut(usize::from(session.0)) else {
            return (Vec::new(), Vec::new());
        };
        let settled = session.settle(numbers);
        self.unsettled -= settled.len();
        self.charge_change();
        let mut wakes = Vec::new();
        for unsettled in &settled {
            if let Some(record) = self.readers.get_mut(unsettled.reader) {
                record.spec.credit.settled();
            }
            wakes.extend(self.wake(unsettled.reader));
        }
        (settled, wakes)
    }

    // ---- The writer's side.

    /// Tells whether there is something to write and no writer has it.
    pub fn has_unsent(&self) -> bool {
        self.unsent() > 0
    }

    /// Marks it as on a cell's list of connections to write; false where it is already.
    pub fn touch(&mut self) -> bool {
        !mem::replace(&mut self.is_touched, true)
    }

    /// It is on no cell's list any more.
    pub fn untouch(&mut self) {
        self.is_touched = false;
    }

    /// Lends it an empty vector to write into, if it has none; tells whether it was lent one.
    pub fn lend(&mut self, storage: impl FnOnce() -> Option<Vec<u8>>) -> bool {
        let storage = if self.buffer.has_storage() { None } else { storage() };
        let is_lent = storage.is_some();
        storage.into_iter().for_each(|storage| self.buffer.lend(storage));
        is_lent
    }

    /// Takes back the vector that it was lent and did not write into.
    pub fn reclaim(&mut self) -> Option<Vec<u8>> {
        self.buffer.reclaim()
    }

    /// The bytes to write next, and how many of them are written already. There is one writer at
    /// a time: the bytes have to be put back before anybody gets more.
    pub fn take_unsent(&mut self) -> Option<(Vec<u8>, usize)> {
        if self.buffer.unsent() < self.limits.feed_bytes {
            self.encode_backlog(self.limits.feed_bytes);
        }
        self.buffer.take()
    }

    /// Puts back what was taken, `written` bytes of which are written now; where that is all, gives
    /// the emptied vector for other use.
    pub fn put_back(&mut self, bytes: Vec<u8>, written: usize) -> Option<Vec<u8>> {
        // It was closed while its writer wrote: what is left of it is nobody's.
        let written = if self.is_closed { bytes.len() } else { written };
        self.buffer.put_back(bytes, written)
    }

    /// To be called when writing stops, because all is written or no more can be: charges what waits, and
    /// tells which consumers and which publishers have room again.
    pub fn written(&mut self) -> (Vec<Wake>, Vec<ConnectionId>) {
        self.charge(self.waiting_bytes());
        let is_drained = self.unsent() <= self.limits.feed_bytes / 2;
        if !is_drained {
            return (Vec::new(), Vec::new());
        }
        let mut wakes = Vec::new();
        if mem::take(&mut self.is_starved) {
            self.rounds = self.rounds.wrapping_add(1);
            for (reader, record) in self.readers.iter_mut() {
                if let Source::Queue(queue) = record.spec.source
                    && record.is_starved
                    && !record.is_held
                    && record.spec.credit.has_any()
                {
                    record.is_starved = false;
                    wakes.push(Wake { queue, reader });
                }
            }
        }
        if !wakes.is_empty() {
            // The one told first can take all the room.
            let first = self.rounds % wakes.len();
            wakes.rotate_left(first);
        }
        (wakes, mem::take(&mut self.pressing))
    }

    /// Tells whether a delivery would not have to wait for others.
    pub fn has_room(&self) -> bool {
        self.buffer.unsent() < self.limits.feed_bytes && self.backlog.is_empty()
    }

    /// Tells whether a publisher need not wait although there is no room: who replies serves others too,
    /// and must not be slow for one that asks much before it reads.
    fn spares(&self, about: About<'_>) -> bool {
        is_reply(about.address.subject()) && self.unsent() < self.limits.unsent_bytes_max / 2
    }

    /// Notes that `publisher` waits until there is room; false where there is room already.
    pub fn press(&mut self, publisher: ConnectionId) -> bool {
        let has_room = self.is_ended() || self.has_room();
        if !has_room && !self.pressing.contains(&publisher) {
            self.pressing.push(publisher);
        }
        !has_room
    }

    /// Closes it: it takes nothing any more and gives what it leaves behind. Of its readers that is so many
    /// at most; called again it gives the next, and with the last of them what was not settled.
    pub fn close(&mut self, readers_max: usize) -> Remains {
        self.is_closed = true;
        self.buffer.discard();
        self.backlog = Backlog::default();
        self.inboxes.clear();
        self.exhausted.clear();
        self.answers.clear();
        let mut remains = Remains {
            readers: self.readers.take(readers_max),
            pressing: mem::take(&mut self.pressing),
            unsettled: Vec::new(),
            is_all: self.readers.len() == 0,
        };
        if remains.is_all {
            self.unsettled = 0;
            remains.unsettled = self.sessions.iter_mut().flat_map(Session::settle_all).collect();
        }
        self.charge_change();
        remains
    }

    /// Tells whether nothing may follow what was written last.
    fn has_last_word(&self) -> bool {
        self.is_closed || self.ended.is_some()
    }

    fn end(&mut self, reason: CutReason) {
        self.backlog = Backlog::default();
        self.answers.clear();
        self.ended = Some(reason);
    }

    fn wake(&mut self, id: ReaderId) -> Option<Wake> {
        let has_room = self.has_room();
        let record = self.readers.get_mut(id)?;
        let Source::Queue(queue) = record.spec.source else {
            return None;
        };
        if !record.is_starved || record.is_held || !record.spec.credit.has_any() {
            return None;
        }
        if !has_room {
            // Whoever writes next wakes it.
            self.is_starved = true;
            return None;
        }
        record.is_starved = false;
        Some(Wake { queue, reader: id })
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

    fn encode(&mut self, receiver: Receiver, delivery: &Delivery<'_>, shared: &mut SharedHeaders) {
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

    fn encode_backlog(&mut self, until_bytes: usize) {
        while self.buffer.unsent() < until_bytes
            && let Some(waiting) = self.backlog.pop()
        {
            let address = waiting.address();
            let delivery = waiting.delivery(&address);
            self.encode(waiting.receiver, &delivery, &mut SharedHeaders::for_receivers(1));
        }
    }

    fn append(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.buffer.append(write);
        self.charge_change();
        if self.unsent() >= self.limits.unsent_bytes_max {
            self.cut(CutReason::TooSlow { unsent_max: self.limits.unsent_bytes_max });
        }
    }

    /// Bytes that nobody else charges: the messages of the backlog are charged as such.
    fn waiting_bytes(&self) -> usize {
        let unsettled = self.unsettled.saturating_sub(UNCHARGED_UNSETTLED_MAX);
        self.buffer.unsent() + self.backlog.own_bytes() + unsettled * Session::UNSETTLED_BYTES
    }

    /// Charges what waits once it has changed by much, or to nothing.
    fn charge_change(&mut self) {
        let waiting = self.waiting_bytes();
        if waiting.abs_diff(self.charged) > UNCHARGED_BYTES_MAX || waiting == 0 && self.charged > 0 {
            self.charge(waiting);
        }
    }

    fn charge(&mut self, bytes: usize) {
        match bytes.checked_sub(self.charged) {
            Some(more) => self.gauge.add(more),
            None => self.gauge.sub(self.charged - bytes),
        }
        self.charged = bytes;
    }
}

impl Drop for Outbound {
    fn drop(&mut self) {
        self.charge(0);
    }
}

#[cfg(test)]
mod tests;
