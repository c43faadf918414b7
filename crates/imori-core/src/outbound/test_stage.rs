//! A connection for tests, with an encoder whose bytes can be read.

use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{
    AfterCancel, Confirmed, Credit, CutReason, Drained, Encoder, EncoderKinds, FramePart, InboxAddress, Live,
    Numbers, Outbound, OutboundLimits, ReaderSpec, Recipient, Reply, SessionId, Settled, SharedHeaders,
    Source, Subscription,
};
use crate::confirm::{Confirm, Lsn, Progress};
use crate::delivery::{About, Delivery, Outcome, Taken};
use crate::id::{ConnectionId, QueueId, ReaderId};
use crate::memory::Gauge;
use crate::message::{Address, AddressView, OriginId, Properties, Publication};
use crate::name::Name;
use crate::route::{BindingKey, Syntax};

pub(super) const FEED_BYTES: usize = 100;
pub(super) const UNSENT_BYTES_MAX: usize = 10_000;
pub(super) const SESSIONS_MAX: u16 = 4;
pub(super) const ME: ConnectionId = ConnectionId { cell: 3, slot: 5, generation: 7 };
const KINDS: EncoderKinds = EncoderKinds::of_protocol(1);
pub(super) const QUEUE: QueueId = QueueId { slot: 1, generation: 0 };

/// Writes `label#number:body;`, with a `?` if the delivery has to be settled.
struct Plain {
    kind: u8,
    after_cancel: AfterCancel,
    headers: Arc<AtomicUsize>,
}

impl Encoder for Plain {
    fn deliver(
        &mut self,
        out: &mut Vec<u8>,
        recipient: &Recipient<'_>,
        delivery: &Delivery<'_>,
        shared: &mut SharedHeaders,
    ) {
        let &Recipient { session, label, number, settles } = recipient;
        if session != SessionId::FIRST {
            out.extend_from_slice(format!("{}/", session.0).as_bytes());
        }
        out.extend_from_slice(label);
        out.extend_from_slice(format!("#{number}{}", if settles { "?" } else { "" }).as_bytes());
        shared.append(KINDS.kind(self.kind), out, |out| {
            self.headers.fetch_add(1, Ordering::Relaxed);
            out.push(b':');
        });
        out.extend_from_slice(delivery.message.body);
        out.push(b';');
    }

    fn confirmed(&mut self, out: &mut Vec<u8>, confirmed: Confirmed) {
        let Confirmed { session, first, last, is_in_order, is_refused } = confirmed;
        let sign = if is_refused { "-" } else { "+" };
        let to = if first < last { ".." } else { "" };
        let numbers = if is_in_order { last..=last } else { first..=last };
        for number in numbers {
            let to = if is_in_order { to } else { "" };
            out.extend_from_slice(format!("{}{sign}{to}{number};", session.0).as_bytes());
        }
    }

    /// Encodes deliveries in parts: each `|` in a body ends a frame.
    fn next_frame(&self, written: &[u8]) -> FramePart {
        let end = written.iter().position(|byte| b"|;".contains(byte)).map_or(written.len(), |at| at + 1);
        FramePart { bytes: end, is_counted: !written.starts_with(b"drained") }
    }

    fn drained(&mut self, out: &mut Vec<u8>, drained: &Drained<'_>) {
        let (label, used) = (String::from_utf8_lossy(drained.label), drained.used);
        out.extend_from_slice(format!("drained {label} {used} {};", drained.frames.next).as_bytes());
    }

    fn cancelled(&mut self, out: &mut Vec<u8>, label: &[u8], queue: &Name) -> AfterCancel {
        out.extend_from_slice(format!("cancelled {} {queue};", String::from_utf8_lossy(label)).as_bytes());
        self.after_cancel
    }

    fn taken_over(&mut self, out: &mut Vec<u8>, label: &[u8]) {
        out.extend_from_slice(format!("taken over {};", String::from_utf8_lossy(label)).as_bytes());
    }

    fn cut(&mut self, out: &mut Vec<u8>, reason: &CutReason) {
        let text = match reason {
            CutReason::TooSlow { .. } => "too slow",
            _ => "cut",
        };
        out.extend_from_slice(format!("{text};").as_bytes());
    }
}

/// A connection that only the test reads.
pub(super) struct Stage {
    pub(super) outbound: Outbound,
    pub(super) gauge: Gauge,
    pub(super) headers: Arc<AtomicUsize>,
    pub(super) address: Arc<Address>,
    pub(super) properties: Properties,
}

impl Stage {
    pub(super) fn new() -> Stage {
        Stage::of_kind(1, AfterCancel::GoOn)
    }

    pub(super) fn of_kind(kind: u8, after_cancel: AfterCancel) -> Stage {
        let (gauge, headers) = (Gauge::default(), Arc::new(AtomicUsize::new(0)));
        let encoder = Box::new(Plain { kind, after_cancel, headers: Arc::clone(&headers) });
        let limits = OutboundLimits {
            feed_bytes: FEED_BYTES,
            unsent_bytes_max: UNSENT_BYTES_MAX,
            inboxes_max: 2,
            sessions_max: SESSIONS_MAX,
        };
        Stage {
            outbound: Outbound::new(ME, encoder, limits, gauge.clone()),
            gauge,
            headers,
            address: Arc::new(Address::new(b"", b"q")),
            properties: Properties::new(OriginId::BROKER),
        }
    }

    pub(super) fn consume(&mut self, label: &str, queue: QueueId, settles: bool, credit: Credit) -> ReaderId {
        self.consume_in(SessionId::FIRST, label, queue, settles, credit)
    }

    pub(super) fn consume_in(
        &mut self,
        session: SessionId,
        label: &str,
        queue: QueueId,
        settles: bool,
        credit: Credit,
    ) -> ReaderId {
        let (label, source) = (label.as_bytes().into(), Source::Queue(queue));
        self.outbound.add_reader(ReaderSpec { session, label, source, settles, credit, name: None }).unwrap()
    }

    pub(super) fn subscribe(&mut self, label: &str) -> ReaderId {
        self.subscribe_in(SessionId::FIRST, label)
    }

    pub(super) fn subscribe_in(&mut self, session: SessionId, label: &str) -> ReaderId {
        let key = BindingKey::new(Syntax::Amqp, b"a");
        let subscription = Subscription { exchange: Name::from("amq.topic"), key, group: None };
        let spec = ReaderSpec {
            session,
            label: label.as_bytes().into(),
            source: Source::Live(Box::new(subscription)),
            settles: false,
            credit: Credit::Unlimited,
            name: None,
        };
        self.outbound.add_reader(spec).unwrap()
    }

    pub(super) fn offer(&mut self, reader: ReaderId, sequence: u64, body: &str) -> Taken {
        let publication = Publication::new(&self.properties, b"", body.as_bytes());
        let address = AddressView::new(&self.address);
        let delivery = Delivery { sequence, ..delivery(&publication, &address) };
        self.outbound.offer(reader, QUEUE, &delivery, &mut SharedHeaders::for_receivers(1))
    }

    pub(super) fn send(&mut self, reader: ReaderId, body: &str) -> Live {
        self.send_with(reader, body, &mut SharedHeaders::for_receivers(1))
    }

    pub(super) fn send_with(&mut self, reader: ReaderId, body: &str, shared: &mut SharedHeaders) -> Live {
        let publication = Publication::new(&self.properties, b"", body.as_bytes());
        let about = About { address: &AddressView::new(&self.address), deaths: None };
        self.outbound.send(reader, slice::from_ref(&publication), about, shared)
    }

    pub(super) fn send_run(
        &mut self,
        reader: ReaderId,
        bodies: &[&'static str],
        shared: &mut SharedHeaders,
    ) -> Live {
        let publication = |body: &&'static str| Publication::new(&self.properties, b"", body.as_bytes());
        let run: Vec<Publication<'_>> = bodies.iter().map(publication).collect();
        let about = About { address: &AddressView::new(&self.address), deaths: None };
        self.outbound.send(reader, &run, about, shared)
    }

    pub(super) fn reply(&mut self, to: &InboxAddress, body: &str) -> Reply {
        self.outbound.reply(to, &Publication::new(&self.properties, b"", body.as_bytes()))
    }

    pub(super) fn answer(&mut self, confirm: Confirm, text: &str) {
        self.outbound.answer(SessionId::FIRST, confirm, |out| out.extend_from_slice(text.as_bytes()));
    }

    pub(super) fn settle(&mut self, numbers: Numbers) -> (Vec<u64>, Vec<ReaderId>) {
        self.settle_in(SessionId::FIRST, numbers)
    }

    pub(super) fn settle_in(&mut self, session: SessionId, numbers: Numbers) -> (Vec<u64>, Vec<ReaderId>) {
        let Settled { deliveries, wakes, .. } =
            self.outbound.settle(session, numbers, usize::MAX, Outcome::Accept);
        let numbers = deliveries.into_iter().map(|unsettled| unsettled.number).collect();
        (numbers, wakes.into_iter().map(|wake| wake.reader).collect())
    }

    /// Lets the writer write all unsent bytes; returns them as text.
    pub(super) fn written(&mut self) -> String {
        let mut text = Vec::new();
        while let Some((bytes, written)) = self.outbound.take_unsent() {
            text.extend_from_slice(&bytes[written..]);
            let len = bytes.len();
            self.outbound.put_back(bytes, len);
        }
        String::from_utf8(text).unwrap()
    }

    pub(super) fn wakes(&mut self) -> Vec<ReaderId> {
        self.outbound.written().0.into_iter().map(|wake| wake.reader).collect()
    }
}

fn delivery<'a>(publication: &'a Publication<'_>, address: &'a AddressView<'a>) -> Delivery<'a> {
    Delivery {
        message: publication.view(),
        shared_body: None,
        address,
        deaths: None,
        sequence: 0,
        failures: 0,
        is_redelivered: false,
        is_last: true,
        is_of_stream: false,
    }
}

/// A body that fills the room of the connection by itself.
pub(super) fn long(letter: &str) -> String {
    letter.repeat(FEED_BYTES)
}

pub(super) fn synced(lsn: u64) -> Progress {
    Progress { written: Lsn(lsn), synced: Lsn(lsn) }
}
