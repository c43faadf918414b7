//! The outbound half of one connection: its parts, readers and inboxes, and the memory charged for it.
//!
//! The files before this one implement the verbs: incoming deliveries, outgoing bytes, and the end.

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

/// Bytes that may wait without being charged: charging each delivery would make all cells contend for one
/// counter.
const UNCHARGED_BYTES_MAX: usize = 64 * 1024;

/// Unsettled deliveries that are not charged; most consumers have no more.
pub(super) const UNCHARGED_UNSETTLED_MAX: usize = 64;

/// Limits on what may be on its way to one connection.
#[derive(Debug, Clone, Copy)]
pub struct OutboundLimits {
    /// Unsent bytes at which queues stop feeding the connection's consumers, and publishers to its live
    /// subscriptions are slowed down.
    pub feed_bytes: usize,
    /// Unsent bytes at which the connection is cut.
    pub unsent_bytes_max: usize,
    /// Maximum number of inboxes.
    pub inboxes_max: u16,
    /// Maximum number of open sessions, including the first.
    pub sessions_max: u16,
}

/// A consumer that can take more deliveries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wake {
    /// The queue that it reads.
    pub queue: QueueId,
    /// The consumer.
    pub reader: ReaderId,
    /// Set if the session's window is open for other consumers in line too: call [`Outbound::next_in_line`]
    /// for each, after the one before has had its chance.
    pub line: Option<SessionId>,
}

/// The outbound half of a connection.
pub struct Outbound {
    pub(super) id: ConnectionId,
    pub(super) encoder: Box<dyn Encoder>,
    /// The states that every delivery has to check, in one word.
    pub(super) features: ConnectionFeatures,
    pub(super) limits: OutboundLimits,
    pub(super) gauge: Gauge,
    pub(super) buffer: Buffer,
    pub(super) backlog: Backlog,
    pub(super) sessions: Sessions,
    /// Number of unsettled deliveries of all sessions.
    pub(super) unsettled: usize,
    pub(super) readers: Readers,
    /// Readers that have used up their live deliveries, until the protocol takes their labels.
    pub(super) exhausted: Vec<ReaderId>,
    /// Inboxes by index; `None` where one was closed.
    pub(super) inboxes: Vec<Option<Inbox>>,
    /// Temporary queues that replies may pass.
    pub(super) reply_queues: ReplyQueues,
    /// The answers that the client may publish, if it has a right to answer only.
    pub(super) answers: Option<Box<OpenAnswers>>,
    /// Number of inboxes ever created.
    pub(super) inbox_serial: u32,
    /// The journal's progress, as far as it was reported here.
    pub(super) journal: Progress,
    /// Some answer only waits for the journal to be written, not synced.
    pub(super) waits_for_write: bool,
    /// The last confirm that began to wait, until [`Outbound::take_newly_held`].
    pub(super) newly_held: Option<Confirm>,
    pub(super) activity: ConnectionActivity,
    /// Some reader was refused for lack of room.
    pub(super) is_starved: bool,
    /// Number of times that readers were woken because there was room again.
    pub(super) rounds: usize,
    /// Publishers that wait until there is room.
    pub(super) throttled: Vec<ConnectionId>,
    /// Bytes that wait for the frame windows of sessions.
    pub(super) rest_bytes: usize,
    /// Unsent bytes that are charged to the gauge.
    pub(super) charged: usize,
    pub(super) is_touched: bool,
    pub(super) ended: Option<CutReason>,
    pub(super) is_finished: bool,
    pub(super) is_closed: bool,
}

impl Outbound {
    /// Creates the outbound half of a connection, with its first session. Waiting bytes are charged to
    /// `gauge`.
    pub fn new(
        id: ConnectionId,
        encoder: Box<dyn Encoder>,
        limits: OutboundLimits,
        gauge: Gauge,
    ) -> Outbound {
        let mut features = ConnectionFeatures::default();
        // Asked once, because a call for each delivery shows in a fan-out.
        features.set(ConnectionFeatures::CHOOSY, encoder.is_choosy());
        let mut buffer = Buffer::default();
        buffer.set_weight(encoder.weight());
        Outbound {
            id,
            features,
            encoder,
            limits,
            gauge,
            buffer,
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

    /// The connection's id.
    pub fn id(&self) -> ConnectionId {
        self.id
    }

    /// Replaces the encoder, once the protocol version is agreed.
    pub fn set_encoder(&mut self, encoder: Box<dyn Encoder>) {
        self.features.set(ConnectionFeatures::CHOOSY, encoder.is_choosy());
        self.buffer.set_weight(encoder.weight());
        self.encoder = encoder;
    }

    /// Bytes not known to be written.
    pub fn unsent(&self) -> usize {
        self.buffer.unsent() + self.backlog.bytes()
    }

    /// Total bytes ever given to the writer or left waiting for it. While this does not change, nothing is
    /// sent.
    pub fn appended(&self) -> u64 {
        self.buffer.appended()
    }

    /// Total bytes ever written. While this does not change, the peer reads nothing.
    pub fn written_bytes(&self) -> u64 {
        self.buffer.appended() - self.buffer.unsent() as u64
    }

    /// The reason why the broker ends the connection, if it does.
    pub fn ended(&self) -> Option<&CutReason> {
        self.ended.as_ref()
    }

    /// Number of consumers and subscriptions, in all sessions.
    pub fn readers_len(&self) -> usize {
        self.readers.len()
    }

    /// The readers from `slot` on, with their slots, so that a long list can be read in pieces.
    pub fn readers_from(&self, slot: usize) -> impl Iterator<Item = (usize, &ReaderSpec)> {
        self.readers.specs(slot)
    }

    /// Open sessions, except the first, which every connection has.
    pub fn open_sessions(&self) -> impl Iterator<Item = SessionInspection> {
        self.sessions.iter().filter(|session| !session.is_ended).map(Session::inspect)
    }

    /// Number of deliveries written, settled or not.
    pub fn delivered(&self) -> u64 {
        self.sessions.delivered()
    }

    /// Counters of what happened on the connection, other than deliveries in total.
    pub fn activity(&self) -> &ConnectionActivity {
        &self.activity
    }

    /// Takes the last confirm that began to wait since the previous call.
    pub fn take_newly_held(&mut self) -> Option<Confirm> {
        self.newly_held.take()
    }

    /// Counts a request for one message that found its queue empty.
    pub(crate) fn got_nothing(&mut self) {
        self.activity.got_nothing += 1;
    }

    /// Number of unsettled deliveries.
    pub fn unsettled_len(&self) -> usize {
        self.unsettled
    }

    // ---- Readers.

    /// Adds a reader; `None` if its session is not open.
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

    /// Removes a reader and returns its source. Its unsettled deliveries stay with the session.
    pub fn remove_reader(&mut self, id: ReaderId) -> Option<Source> {
        self.take_reader(id).map(|record| record.spec.source)
    }

    /// Limits the live deliveries of a reader, including those it already had; `false` if the limit is
    /// reached already or there is no such reader.
    pub fn limit_deliveries(&mut self, id: ReaderId, max: NonZeroU32) -> bool {
        let Some(record) = self.readers.get_mut(id) else {
            return false;
        };
        record.delivered_max = Some(max);
        record.note_conditions();
        record.left() != Some(0)
    }

    /// Removes the readers that have used up their live deliveries, and returns their labels. Returns none
    /// while deliveries wait as messages, because encoding these needs their readers.
    pub fn take_exhausted(&mut self) -> Vec<Box<[u8]>> {
        if !self.backlog.is_empty() {
            return Vec::new();
        }
        let exhausted = mem::take(&mut self.exhausted);
        let records = exhausted.into_iter().filter_map(|id| self.take_reader(id));
        records.map(|record| record.spec.label).collect()
    }

    /// Removes a reader from the table and from its session.
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

    /// The queue or subscription of a reader; `None` if the reader is gone.
    pub fn source(&self, id: ReaderId) -> Option<&Source> {
        self.readers.get(id).map(|record| &record.spec.source)
    }

    // ---- Inboxes.

    /// The inbox with this name in a session. On first use `make` supplies its label and secret. `None` if
    /// the connection has its maximum of inboxes, or the session is not open.
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

    /// Closes the inbox with this name in a session, if there is one: replies no longer reach it.
    pub fn close_inbox(&mut self, session: SessionId, name: &[u8]) {
        let Some(slot) = self.sessions.slot(session) else { return };
        let is_it = |inbox: &mut Inbox| inbox.session == slot && *inbox.name == *name;
        let closed = self.inboxes.iter_mut().find_map(|place| place.take_if(is_it));
        if let Some(session) = self.sessions.at_mut(slot).filter(|_| closed.is_some()) {
            session.inboxes -= 1;
        }
    }

    /// Creates the address of a temporary queue that replies may pass, named [`InboxAddress::to_queue_name`].
    /// `None` if the connection has its maximum of these.
    pub fn add_reply_queue(&mut self, vhost: VhostId, secret: [u8; 16]) -> Option<InboxAddress> {
        self.reply_queues.add(self.id, vhost, secret, self.limits.inboxes_max)
    }

    /// Lets replies pass a temporary queue to its only reader. With `None` they go into the queue.
    pub fn set_reply_reader(&mut self, of: &InboxAddress, reader: Option<(QueueId, ReaderId)>) {
        self.reply_queues.set_reader(of, reader);
    }

    /// Forgets a temporary queue that was deleted.
    pub fn remove_reply_queue(&mut self, of: &InboxAddress) {
        self.reply_queues.remove(of);
    }

    /// The consumers and live subscriptions.
    pub fn readers(&self) -> impl Iterator<Item = (ReaderId, &ReaderSpec)> {
        self.readers.iter().map(|(id, record)| (id, &record.spec))
    }

    /// Sets the filter of a live subscription, which withholds subjects that its rights deny; `None` removes
    /// it.
    pub fn set_filter(&mut self, id: ReaderId, filter: Option<SubjectFilter>) {
        if let Some(record) = self.readers.get_mut(id) {
            record.filter = filter;
            record.note_conditions();
        }
    }

    /// Restricts a live subscription to messages that match the selector.
    pub fn set_selector(&mut self, id: ReaderId, selector: Selector, headers: HeaderReaders) {
        if let Some(record) = self.readers.get_mut(id) {
            record.selector = Some(Box::new((selector, headers)));
            record.note_conditions();
        }
    }

    /// Whether a live subscription is denied messages with this subject.
    pub fn denies(&self, id: ReaderId, subject: &[u8]) -> bool {
        let filter = self.readers.get(id).and_then(|record| record.filter.as_ref());
        filter.is_some_and(|filter| filter.denies(subject))
    }

    /// Lets the client answer the messages that its live subscriptions receive from now on, within
    /// `responses`.
    pub fn set_responses(&mut self, responses: Option<Responses>) {
        match (responses, &mut self.answers) {
            (Some(responses), Some(open)) => open.set(responses),
            (responses, answers) => {
                *answers = responses.map(|responses| Box::new(OpenAnswers::new(responses)));
            }
        }
        self.features.set(ConnectionFeatures::ANSWERS, self.answers.is_some());
    }

    /// Whether [`Outbound::note_request`] has to be called for messages that can be answered.
    #[inline]
    pub fn notes_requests(&self) -> bool {
        self.features.any(ConnectionFeatures::ANSWERS)
    }

    /// Notes that the client received a message that asks for an answer to this exchange and subject.
    pub fn note_request(&mut self, to: (&[u8], &[u8]), now: Time) {
        if let Some(open) = &mut self.answers {
            open.note(to, now);
        }
    }

    /// Whether the client may publish an answer to this exchange and subject.
    pub fn may_answer(&mut self, to: (&[u8], &[u8]), now: Time) -> bool {
        self.answers.as_mut().is_some_and(|open| open.is_open(to, now))
    }

    /// Uses up one answer that the client may publish to this exchange and subject; `false` if there is none.
    pub fn spend_answer(&mut self, to: (&[u8], &[u8]), now: Time) -> bool {
        self.answers.as_mut().is_some_and(|open| open.spend(to, now))
    }

    /// Whether this is the address of one of the connection's inboxes.
    pub fn has_inbox(&self, address: &InboxAddress) -> bool {
        let inbox = self.inboxes.get(usize::from(address.index)).and_then(Option::as_ref);
        !self.is_closed && inbox.is_some_and(|inbox| inbox.is_opened_by(&address.secret))
    }

    /// Whether a delivery could be written without waiting.
    #[inline]
    pub fn has_room(&self) -> bool {
        self.buffer.unsent() < self.limits.feed_bytes && self.backlog.is_empty()
    }

    /// Bytes to charge here. The messages of the backlog are not among them: they are charged as messages.
    #[inline]
    pub(super) fn waiting_bytes(&self) -> usize {
        let unsettled = self.unsettled.saturating_sub(UNCHARGED_UNSETTLED_MAX);
        self.buffer.unsent()
            + self.rest_bytes
            + self.backlog.own_bytes()
            + unsettled * Session::UNSETTLED_BYTES
    }

    /// Charges the waiting bytes once they have changed by much, or dropped to none.
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
