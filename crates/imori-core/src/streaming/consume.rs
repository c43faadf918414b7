//! What a stream sends: answers to publishers, messages that were asked for, and the deliveries of its consumers.
//!
//! It all happens under the lock of the queue, so that a reader gets the messages in the order of the stream.

use crate::entries::PageId;
use crate::message::Receipt;
use crate::queue::{Effects, Queue};
use crate::stream::{
    AckPolicy, Advisory, Answer, Answered, ConsumerDelivery, FlowRequest, Happening, Position, PullEnd,
    Republished, RequestPolicy, Retention, Start, Stream, StreamConsumer, StreamMessage, Turn,
};
use crate::time::Time;

use super::outlet::{Outlet, Sent};
use super::remove::Whereabouts;
use super::requests::{choose, end, end_impatient, end_requests, has_request};

/// Messages that a stream sends before others have its cell.
const SENT_AT_ONCE: usize = 512;

/// Time after which a consumer looks again at a reader that was behind.
const HELD_FOR: std::time::Duration = std::time::Duration::from_millis(2);

/// Time after which a consumer that pushes looks again for a reader of its subject.
const LOOK_AGAIN: std::time::Duration = std::time::Duration::from_millis(250);

/// Bytes of a delivery besides subject, headers and body, as a request's limit of bytes counts them.
const DELIVERY_BYTES: usize = 64;

/// How far a consumer got.
enum Progress {
    /// It has nothing to do now.
    Idle,
    /// No message is left for it.
    AtEnd,
    /// It waits for a page.
    OnDisk(PageId),
    /// It has used up its turn.
    Busy,
}

impl Queue {
    /// Sends what can be sent now.
    pub(crate) fn send_from_stream(&mut self, now: Time, outlet: &mut impl Outlet, effects: &mut Effects) {
        let Some(mut stream) = self.stream.take() else { return };
        stream.is_busy = false;
        let level = self.level();
        for Answer { to, what } in std::mem::take(&mut stream.answers) {
            let published = |sequence, is_duplicate, receipt| StreamMessage::Published {
                stream: &self.name,
                sequence,
                is_duplicate,
                level,
                receipt,
            };
            let message = match &what {
                Answered::Published(sequence) => published(*sequence, false, Receipt::Plain),
                Answered::Counted(sequence, value) => published(*sequence, false, Receipt::Count(value)),
                Answered::Committed(last, id, count) => published(*last, false, Receipt::Batch(id, *count)),
                Answered::Duplicate(sequence) => published(*sequence, true, Receipt::Plain),
                Answered::Staged => StreamMessage::Staged,
                Answered::Refused(refusal) => StreamMessage::Refused { stream: &self.name, refusal },
                Answered::Acked => StreamMessage::Acked,
                Answered::Form(form) => StreamMessage::Answer(form),
            };
            outlet.send(&to, &message);
        }
        self.republish(&mut stream, outlet);
        stream.batches.drop_idle(now);
        self.send_gets(&mut stream, outlet);
        let mut done = Vec::new();
        let mut consumers = std::mem::take(&mut stream.consumers);
        for consumer in consumers.values_mut() {
            consumer.return_due(now);
            if consumer.unpin_idle(now) {
                let configuration = &consumer.settings.configuration;
                let what = Happening::Unpinned { is_by_operator: false, configuration };
                stream.outbox.extend(outlet.advise(&self.advisory(consumer, what, now)));
            }
            end_requests(consumer, now, outlet);
            match self.send_to_consumer(&mut stream, consumer, now, outlet, &mut done) {
                Progress::Idle => {}
                Progress::AtEnd => end_impatient(consumer, outlet),
                Progress::OnDisk(page) => self.sought.push((0, page)),
                Progress::Busy => stream.is_busy = true,
            }
            self.beat(consumer, now, outlet);
        }
        stream.consumers = consumers;
        self.stream = Some(stream);
        self.retain_wanted(done, effects);
    }

    /// An advisory about a consumer.
    fn advisory<'a>(&'a self, consumer: &'a StreamConsumer, what: Happening<'a>, time: Time) -> Advisory<'a> {
        Advisory { stream: &self.name, consumer: &consumer.name, what, time }
    }

    /// Publishes again what readers may see.
    fn republish(&self, stream: &mut Stream, outlet: &mut impl Outlet) {
        let end = stream.visible_end;
        let is_visible = |first: &mut Republished| first.entry.envelope.sequence < end;
        while let Some(Republished { entry, to, before }) = stream.republished.pop_front_if(is_visible) {
            let message = StreamMessage::Republished {
                stream: &self.name,
                entry: &entry,
                before,
                has_headers_only: stream.settings.republishes_headers,
            };
            stream.outbox.extend(outlet.publish(&to, &message));
        }
    }

    fn send_to_consumer(
        &mut self,
        stream: &mut Stream,
        consumer: &mut StreamConsumer,
        now: Time,
        outlet: &mut impl Outlet,
        done: &mut Vec<u64>,
    ) -> Progress {
        consumer.settings.paused_until.take_if(|until| *until <= now);
        if consumer.is_paused(now) {
            return Progress::Idle;
        }
        let has_push = consumer.settings.push.is_some();
        if let Some(push) = &consumer.settings.push {
            consumer.is_active = outlet.has_readers(&push.subject, push.group.as_ref());
            consumer.held_until.take_if(|until| *until <= now);
            if !consumer.is_active
                && let Some(pace) = &mut consumer.pace
            {
                pace.reader_is_gone();
            }
            if !consumer.is_active || consumer.held_until.is_some() {
                let waits = consumer.held_until.is_none() && consumer.unread > 0;
                consumer.held_until = consumer.held_until.or(waits.then(|| now.after(LOOK_AGAIN)));
                return Progress::Idle;
            }
            consumer.last_interest = now;
        }
        for _ in 0..SENT_AT_ONCE {
            if !has_push && !has_request(consumer, outlet) {
                return Progress::Idle;
            }
            if consumer.pace.as_ref().is_some_and(|pace| pace.is_stalled()) {
                return Progress::Idle;
            }
            let Some(turn) = consumer.turn() else {
                self.ask_for_acks(consumer, outlet);
                return Progress::Idle;
            };
            let sequence = match turn {
                Turn::Chosen(sequence) if sequence >= stream.visible_end => return Progress::AtEnd,
                Turn::Again(sequence) | Turn::Chosen(sequence) => sequence,
                Turn::From(next) => match stream.index.next(&consumer.settings.filter, next) {
                    Some(sequence) if sequence < stream.visible_end => sequence,
                    _ => return Progress::AtEnd,
                },
            };
            if consumer.is_done(sequence) {
                continue;
            }
            if matches!(turn, Turn::Again(_)) && consumer.is_spent(sequence) {
                let deliveries = consumer.give_up(sequence);
                let what = Happening::DeliveriesExceeded { sequence, deliveries };
                stream.outbox.extend(outlet.advise(&self.advisory(consumer, what, now)));
                continue;
            }
            let entry = match self.whereabouts(sequence) {
                Whereabouts::Disk(page) => return Progress::OnDisk(page),
                Whereabouts::Memory => self.in_memory(sequence),
                Whereabouts::Nowhere => None,
            };
            let Some(entry) = entry else {
                consumer.pass(turn, sequence);
                continue;
            };
            let is_too_old =
                matches!(consumer.settings.start, Start::Time(time) if entry.envelope.since < time);
            if is_too_old && matches!(turn, Turn::From(_)) {
                consumer.pass(turn, sequence);
                continue;
            }
            let has_turn =
                consumer.settings.request_policy == RequestPolicy::InTurn || choose(consumer, outlet);
            if !has_turn {
                return Progress::Idle;
            }
            let view = entry.message.view();
            let bytes = (view.text.len() + view.body.len() + DELIVERY_BYTES) as u64;
            if consumer
                .requests
                .front()
                .and_then(|request| request.bytes_left)
                .is_some_and(|left| left < bytes)
            {
                if let Some(request) = consumer.requests.take_front() {
                    end(&request, PullEnd::TooLarge, outlet);
                }
                continue;
            }
            let stored = entry.envelope.since;
            if let Some(pace) = &mut consumer.pace
                && pace.holds(sequence, bytes, stored, now)
            {
                return Progress::Idle;
            }
            let to = match (&consumer.settings.push, consumer.requests.front()) {
                (Some(push), _) => push.subject.clone(),
                (None, Some(request)) => request.reply.clone(),
                (None, None) => return Progress::Idle,
            };
            if consumer.needs_pin() {
                let id = outlet.new_pin();
                consumer.pin_front(id.clone(), now);
                let configuration = &consumer.settings.configuration;
                let what = Happening::Pinned { pin: &id, configuration };
                stream.outbox.extend(outlet.advise(&self.advisory(consumer, what, now)));
            }
            let (number, deliveries) = consumer.deliver(turn, sequence, now);
            let activity = &mut self.activity;
            match consumer.settings.acks {
                AckPolicy::None => activity.delivered_settled += 1,
                AckPolicy::All | AckPolicy::Explicit => activity.delivered_unsettled += 1,
            }
            activity.redelivered += u64::from(deliveries > 1);
            let message = StreamMessage::Delivery {
                entry: &entry,
                delivery: ConsumerDelivery {
                    stream: &self.name,
                    consumer: &consumer.name,
                    deliveries,
                    place: Position { consumer: number, stream: sequence },
                    time: stored,
                    unread: consumer.unread,
                    pin: consumer.pin.as_ref().map(|pin| &pin.id),
                },
                has_headers_only: consumer.settings.has_headers_only,
            };
            let sent = outlet.send(&to, &message);
            if !has_push {
                consumer.requests.served(bytes, now);
            }
            if let Some(push) = &consumer.settings.push {
                consumer.heartbeat = push.heartbeat.map(|every| now.after(every));
            }
            if let Some(pace) = &mut consumer.pace
                && let Some(number) = pace.delivered(sequence, bytes, stored, now)
            {
                self.ask_reader(consumer, number, outlet);
            }
            if consumer.settings.acks == AckPolicy::None && stream.settings.retention != Retention::Limits {
                done.push(sequence);
            }
            if sent == Sent::SlowReader && has_push {
                consumer.held_until = Some(now.after(HELD_FOR));
                return Progress::Idle;
            }
        }
        Progress::Busy
    }

    /// Tells the reader of a consumer that pushes that the consumer lives.
    fn beat(&self, consumer: &mut StreamConsumer, now: Time, outlet: &mut impl Outlet) {
        let Some(push) = consumer.settings.push.as_ref().filter(|_| consumer.is_active) else {
            consumer.heartbeat = None;
            return;
        };
        let Some(every) = push.heartbeat else { return };
        let due = consumer.heartbeat.get_or_insert(now.after(every));
        if *due > now {
            return;
        }
        *due = now.after(every);
        let number = consumer.pace.as_ref().and_then(|pace| pace.unanswered());
        let (stream, name) = (&self.name, &consumer.name);
        let unanswered = number.map(|number| FlowRequest { stream, consumer: name, number });
        outlet.send(&push.subject, &StreamMessage::Heartbeat { delivered: consumer.delivered, unanswered });
        self.ask_for_acks(consumer, outlet);
    }

    /// Asks a reader whose answers are acknowledgements, if it has any to give.
    fn ask_for_acks(&self, consumer: &mut StreamConsumer, outlet: &mut impl Outlet) {
        let is_acked = consumer.settings.push.as_ref().is_some_and(|push| push.is_acked_by_flow);
        if is_acked
            && !consumer.pending.is_empty()
            && let Some(number) = consumer.pace.as_mut().and_then(|pace| pace.ask(consumer.delivered.stream))
        {
            self.ask_reader(consumer, number, outlet);
        }
    }

    /// Asks the reader of a consumer that pushes to answer once it has read everything before.
    fn ask_reader(&self, consumer: &StreamConsumer, number: u64, outlet: &mut impl Outlet) {
        if let Some(push) = &consumer.settings.push {
            let request = FlowRequest { stream: &self.name, consumer: &consumer.name, number };
            outlet.send(&push.subject, &StreamMessage::FlowControl(request));
        }
    }
}
