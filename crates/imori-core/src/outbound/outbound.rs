//! The outbound half of one connection: its parts, readers, inboxes, and the memory that is charged for it.
//!
//! The files before this one have the verbs: deliveries that come in, bytes that leave, and the end.

use std::mem;
use std::num::NonZeroU32;
use std::sync::Arc;

use super::backlog::Backlog;
use super::buffer::Buffer;
use super::encoder::{CutReason, Encoder};
use super::inbox::{Inbox, InboxAddress, ReplyQueues};
use super::readers::{ReaderSpec, Readers, Record, Source};
use super::session::{Session, SessionInspection};
use super::sessions::{FIRST_SLOT, Sessions};
use crate::activity::ConnectionActivity;
use crate::confirm::{Confirm, Progress};
use crate::features::ConnectionFeatures;
use crate::id::SessionId;
use crate::id::{ConnectionId, QueueId, ReaderId, VhostId};
use crate::memory::Gauge;
use crate::message::{Address, DEFAULT_EXCHANGE, HeaderReaders};
use crate::responses::{OpenAnswers, Responses};
use crate::route::SubjectFilter;
use crate::selector::Selector;
use crate::time::Time;

/// Bytes that may wait without being charged: charging each delivery would make all cells write to
/// one counter.
const UNCHARGED_BYTES_MAX: usize = 64 * 1024;

/// Unsettled deliveries that are not charged, as most consumers have no more.
pub(super) const UNCHARGED_UNSETTLED_MAX: usize = 64;

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
    /// Sessions it may have at a time, the first included.
    pub sessions_max: u16,
}

/// A consumer that can take more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wake {
    /// The queue it reads.
    pub queue: QueueId,
    /// The consumer.
    pub reader: ReaderId,
    /// The session whose window is open for others too that wait in its line: each is asked for by
    /// [`Outbound::next_in_line`] once the one before has had its chance.
    pub line: Option<SessionId>,
}

/// The outbound half of a connection.
pub struct Outbound {
    pub(super) id: ConnectionId,
    pub(super) encoder: Box<dyn Encoder>,
    /// The states that a delivery has to mind, all of them looked at together.
    pub(super) features: ConnectionFeatures,
    pub(super) limits: OutboundLimits,
    pub(super) gauge: Gauge,
    pub(super) buffer: Buffer,
    pub(super) backlog: Backlog,
    pub(super) sessions: Sessions,
    /// Unsettled deliveries of all sessions.
    pub(super) unsettled: usize,
    pub(super) readers: Readers,
    /// Readers that have had all that they may have, which their protocol was not told yet.
    pub(super) exhausted: Vec<ReaderId>,
    /// By index; `None` where an inbox ended with its session.
    pub(super) inboxes: Vec<Option<Inbox>>,
    /// Its temporary queues that replies may pass.
    pub(super) reply_queues: ReplyQueues,
    /// The answers that its client may publish, where that is a right of its own.
    pub(super) answers: Option<Box<OpenAnswers>>,
    /// Inboxes that there ever were.
    pub(super) inbox_serial: u32,
    /// How far the journal has come, as far as it was told.
    pub(super) journal: Progress,
    /// An answer waits for no more than that the journal is written.
    pub(super) waits_for_write: bool,
    /// The last confirm that began to wait, until somebody asks for it.
    pub(super) newly_held: Option<Confirm>,
    pub(super) activity: ConnectionActivity,
    /// Some reader was refused for want of room.
    pub(super) is_starved: bool,
    /// How often readers were told that there is room again.
    pub(super) rounds: usize,
    /// Publishers that wait until there is room.
    pub(super) throttled: Vec<ConnectionId>,
    /// Bytes that wait for the windows of sessions.
    pub(super) rest_bytes: usize,
    /// Unsent bytes that are charged to the gauge.
    pub(super) charged: usize,
    pub(super) is_touched: bool,
    pub(super) ended: Option<CutReason>,
    pub(super) is_finished: bool,
    pub(super) is_closed: bool,
}

impl Outbound {
    /// Makes the outbound half of a connection with its first session; what waits in it is charged to `gauge`.
    pub fn new(
        id: ConnectionId,
        encoder: Box<dyn Encoder>,
        limits: OutboundLimits,
        gauge: Gauge,
    ) -> Outbound {
        let mut features = ConnectionFeatures::default();
        // Asked once, because asking it each time shows in a fan-out.
        features.set(ConnectionFeatures::CHOOSY, encoder.is_choosy());
        Outbound {
            id,
            features,
            encoder,
            limits,
            gauge,
            buffer: Buffer::default(),
            backlog: Backlog::default(),
            sessions: Sessions::default(),
            unsettled: 0,
            readers: Readers::default(),
            exhausted: Vec::new(),
            answers: None,
            inboxes: Vec::new(),
            reply_queues: ReplyQueues::default(),
            inbox_serial: 0,
            journal: Progress::default(),
            waits_for_write: false,
            newly_held: None,
            activity: ConnectionActivity::default(),
            is_starved: false,
            rounds: 0,
            throttled: Vec::new(),
            rest_bytes: 0,
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
        self.features.set(ConnectionFeatures::CHOOSY, encoder.is_choosy());
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

    /// The readers from this slot on, each with its slot, so that a long list can be read in pieces.
    pub fn readers_from(&self, slot: usize) -> impl Iterator<Item = (usize, &ReaderSpec)> {
        self.readers.specs(slot)
    }

    /// Sessions that were opened and have not ended; the first, which every connection has, is not among them.
    pub fn open_sessions(&self) -> impl Iterator<Item = SessionInspection> {
        self.sessions.iter().filter(|session| !session.is_ended).map(Session::inspect)
    }

    /// How many deliveries were written, settled or not.
    pub fn delivered(&self) -> u64 {
        self.sessions.delivered()
    }

    /// How often what happened, besides deliveries as such.
    pub fn activity(&self) -> &ConnectionActivity {
        &self.activity
    }

    /// Takes the last confirm that began to wait since this was asked before.
    pub fn take_newly_held(&mut self) -> Option<Confirm> {
        self.newly_held.take()
    }

    /// Notes that a client which asked for one message found its queue empty.
    pub(crate) fn got_nothing(&mut self) {
        self.activity.got_nothing += 1;
    }

    /// How many deliveries are not settled.
    pub fn unsettled_len(&self) -> usize {
        self.unsettled
    }

    // ---- Readers.

    /// Adds a reader; `None` where its session is not open.
    pub fn add_reader(&mut self, spec: ReaderSpec) -> Option<ReaderId> {
        let slot = self.sessions.slot(spec.session)?;
        let session = self.sessions.at_mut(slot).filter(|session| !session.is_ended)?;
        let place = u32::try_from(session.readers.len()).ok()?;
        let id = self.readers.add(spec, slot, place);
        if slot != FIRST_SLOT {
            session.readers.push(id.slot);
        }
        Some(id)
    }

    /// Forgets a reader and gives what it read; its unsettled deliveries stay with the session.
    pub fn remove_reader(&mut self, id: ReaderId) -> Option<Source> {
        self.take_reader(id).map(|record| record.spec.source)
    }

    /// Limits the live deliveries of a reader, those that it had included; false where it had as many
    /// already, or is not there.
    pub fn limit_deliveries(&mut self, id: ReaderId, max: NonZeroU32) -> bool {
        let Some(record) = self.readers.get_mut(id) else {
            return false;
        };
        record.delivered_max = Some(max);
        record.note_conditions();
        record.left() != Some(0)
    }

    /// Forgets the readers that have had all that they may have, and gives their labels. What waits as
    /// messages needs its reader, so that none is given until that is written.
    pub fn take_exhausted(&mut self) -> Vec<Box<[u8]>> {
        if !self.backlog.is_empty() {
            return Vec::new();
        }
        let exhausted = mem::take(&mut self.exhausted);
        let records = exhausted.into_iter().filter_map(|id| self.take_reader(id));
        records.map(|record| record.spec.label).collect()
    }

    /// Takes a reader out of the table and out of its session.
    pub(super) fn take_reader(&mut self, id: ReaderId) -> Option<Record> {
        let record = self.readers.remove(id)?;
        let session = self.sessions.at_mut(record.session)?;
        if record.is_in_line {
            session.line.retain(|waiting| *waiting != id);
        }
        if record.session != FIRST_SLOT && (record.place as usize) < session.readers.len() {
            session.readers.swap_remove(record.place as usize);
            let moved = session.readers.get(record.place as usize);
            if let Some((_, moved)) = moved.and_then(|slot| self.readers.in_slot(*slot)) {
                moved.place = record.place;
            }
        }
        Some(record)
    }

    /// The queue or subscription that a reader reads; `None` if the reader is gone.
    pub fn source(&self, id: ReaderId) -> Option<&Source> {
        self.readers.get(id).map(|record| &record.spec.source)
    }

    // ---- Inboxes.

    /// The inbox of this name in a session. On first use `make` gives its label and its secret. `None` where the
    /// connection has as many inboxes as it may have, or the session is not open.
    pub fn inbox(
        &mut self,
        session: SessionId,
        name: &[u8],
        make: impl FnOnce() -> (Box<[u8]>, [u8; 16]),
    ) -> Option<InboxAddress> {
        let slot = self.sessions.slot(session)?;
        let known = |inbox: &Inbox| inbox.session == slot && *inbox.name == *name;
        if let Some(index) = self.inboxes.iter().position(|inbox| inbox.as_ref().is_some_and(known)) {
            let secret = self.inboxes.get(index)?.as_ref()?.secret;
            return Some(InboxAddress { owner: self.id, index: u16::try_from(index).ok()?, secret });
        }
        let free = self.inboxes.iter().position(Option::is_none).unwrap_or(self.inboxes.len());
        let index = u16::try_from(free).ok().filter(|index| *index < self.limits.inboxes_max)?;
        let session = self.sessions.at_mut(slot).filter(|session| !session.is_ended)?;
        session.inboxes += 1;
        let (label, secret) = make();
        let address = InboxAddress { owner: self.id, index, secret };
        let serial = self.inbox_serial;
        self.inbox_serial = serial.wrapping_add(1);
        let key = Arc::new(Address::new(DEFAULT_EXCHANGE, &address.to_key()));
        let inbox = Some(Inbox { session: slot, serial, name: name.into(), label, secret, address: key });
        match self.inboxes.get_mut(free) {
            Some(place) => *place = inbox,
            None => self.inboxes.push(inbox),
        }
        Some(address)
    }

    /// Closes the inbox of this name in a session, if there is one: replies to it find nothing from now on.
    pub fn close_inbox(&mut self, session: SessionId, name: &[u8]) {
        let Some(slot) = self.sessions.slot(session) else { return };
        let is_it = |inbox: &mut Inbox| inbox.session == slot && *inbox.name == *name;
        let closed = self.inboxes.iter_mut().find_map(|place| place.take_if(is_it));
        if let Some(session) = self.sessions.at_mut(slot).filter(|_| closed.is_some()) {
            session.inboxes -= 1;
        }
    }

    /// Makes the address of a temporary queue that replies may pass, whose name is
    /// [`InboxAddress::to_queue_name`]. `None` where the connection has as many as it may have inboxes.
    pub fn add_reply_queue(&mut self, vhost: VhostId, secret: [u8; 16]) -> Option<InboxAddress> {
        self.reply_queues.add(self.id, vhost, secret, self.limits.inboxes_max)
    }

    /// Lets replies pass a temporary queue to its only reader, or go into the queue where there is no such reader.
    pub fn set_reply_reader(&mut self, of: &InboxAddress, reader: Option<(QueueId, ReaderId)>) {
        self.reply_queues.set_reader(of, reader);
    }

    /// Forgets a temporary queue that is gone.
    pub fn remove_reply_queue(&mut self, of: &InboxAddress) {
        self.reply_queues.remove(of);
    }

    /// Its consumers and live subscriptions.
    pub fn readers(&self) -> impl Iterator<Item = (ReaderId, &ReaderSpec)> {
        self.readers.iter().map(|(id, record)| (id, &record.spec))
    }

    /// Keeps subjects from a live subscription that its rights do not allow, or none.
    pub fn set_filter(&mut self, id: ReaderId, filter: Option<SubjectFilter>) {
        if let Some(record) = self.readers.get_mut(id) {
            record.filter = filter;
            record.note_conditions();
        }
    }

    /// Makes a live subscription get messages only of which the selector is true.
    pub fn set_selector(&mut self, id: ReaderId, selector: Selector, headers: HeaderReaders) {
        if let Some(record) = self.readers.get_mut(id) {
            record.selector = Some(Box::new((selector, headers)));
            record.note_conditions();
        }
    }

    /// Tells whether a live subscription does not get messages with this subject.
    pub fn denies(&self, id: ReaderId, subject: &[u8]) -> bool {
        let filter = self.readers.get(id).and_then(|record| record.filter.as_ref());
        filter.is_some_and(|filter| filter.denies(subject))
    }

    /// Lets its client answer the messages that its live subscriptions receive from now on, as far as these say.
    pub fn set_responses(&mut self, responses: Option<Responses>) {
        match (responses, &mut self.answers) {
            (Some(responses), Some(open)) => open.set(responses),
            (responses, answers) => {
                *answers = responses.map(|responses| Box::new(OpenAnswers::new(responses)));
            }
        }
        self.features.set(ConnectionFeatures::ANSWERS, self.answers.is_some());
    }

    /// Says that it has to be told of messages that can be answered.
    #[inline]
    pub fn notes_requests(&self) -> bool {
        self.features.any(ConnectionFeatures::ANSWERS)
    }

    /// Notes that its client received a message that is to be answered to this exchange and subject.
    pub fn note_request(&mut self, to: (&[u8], &[u8]), now: Time) {
        if let Some(open) = &mut self.answers {
            open.note(to, now);
        }
    }

    /// Tells whether its client may publish an answer to an exchange and a subject.
    pub fn may_answer(&mut self, to: (&[u8], &[u8]), now: Time) -> bool {
        self.answers.as_mut().is_some_and(|open| open.is_open(to, now))
    }

    /// Uses up one of the answers that its client may publish to an exchange and a subject; false where there is none.
    pub fn spend_answer(&mut self, to: (&[u8], &[u8]), now: Time) -> bool {
        self.answers.as_mut().is_some_and(|open| open.spend(to, now))
    }

    /// Tells whether the address is that of one of its inboxes.
    pub fn has_inbox(&self, address: &InboxAddress) -> bool {
        let inbox = self.inboxes.get(usize::from(address.index)).and_then(Option::as_ref);
        !self.is_closed && inbox.is_some_and(|inbox| inbox.is_opened_by(&address.secret))
    }

    /// Tells whether a delivery would not have to wait for others.
    #[inline]
    pub fn has_room(&self) -> bool {
        self.buffer.unsent() < self.limits.feed_bytes && self.backlog.is_empty()
    }

    /// Bytes that nobody else charges: the messages of the backlog are charged as such.
    #[inline]
    pub(super) fn waiting_bytes(&self) -> usize {
        let unsettled = self.unsettled.saturating_sub(UNCHARGED_UNSETTLED_MAX);
        self.buffer.unsent()
            + self.rest_bytes
            + self.backlog.own_bytes()
            + unsettled * Session::UNSETTLED_BYTES
    }

    /// Charges what waits once it has changed by much, or to nothing.
    #[inline]
    pub(super) fn charge_change(&mut self) {
        let waiting = self.waiting_bytes();
        if waiting.abs_diff(self.charged) > UNCHARGED_BYTES_MAX || waiting == 0 && self.charged > 0 {
            self.charge(waiting);
        }
    }

    #[cold]
    pub(super) fn charge(&mut self, bytes: usize) {
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
