//! What a stream sends: answers to publishers, messages that were asked for, and the deliveries of its consumers.
//!
//! It all happens under the lock of the queue, so that a reader gets the messages in the order of the stream.

use crate::entries::PageId;
use crate::name::Name;
use crate::queue::{Effects, Queue};
use crate::stream::{
    AckPolicy, Advisory, Answer, Answered, ConsumerDelivery, Position, PullEnd, PullRequest, Retention,
    Start, Stream, StreamConsumer, StreamMessage, Turn,
};
use crate::time::Time;

use super::remove::Whereabouts;

/// Messages that a stream sends before others have its cell.
const SENT_AT_ONCE: usize = 512;

/// Time after which a consumer looks again at a reader that was behind.
const HELD_FOR: std::time::Duration = std::time::Duration::from_millis(2);

/// Time after which a consumer that pushes looks again for a reader of its subject.
const LOOK_AGAIN: std::time::Duration = std::time::Duration::from_millis(250);

/// Bytes of a delivery besides subject, headers and body, as a request's limit of bytes counts them.
const DELIVERY_BYTES: usize = 64;

/// The result of sending a message to a subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sent {
    /// A reader has it.
    Taken,
    /// A reader has it, and is behind.
    SlowReader,
    /// Nobody reads the subject.
    Nobody,
}

/// The readers of subjects.
pub(crate) trait Outlet {
    /// Whether a subject has a subscription; with a group, whether that queue group has a member.
    fn has_readers(&mut self, subject: &Name, group: Option<&Name>) -> bool;

    /// Publishes an advisory.
    fn advise(&mut self, advisory: &Advisory<'_>);

    /// Sends a message to the readers of a subject.
    fn send(&mut self, subject: &Name, message: &StreamMessage<'_>) -> Sent;
}

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
        self.expire_in_stream(now, effects);
        let Some(mut stream) = self.stream.take() else { return };
        stream.is_busy = false;
        let level = self.durability.map_or(crate::confirm::Level::Memory, |durability| durability.level);
        for Answer { to, what } in std::mem::take(&mut stream.answers) {
            let published = |sequence, is_duplicate| StreamMessage::Published {
                stream: &self.name,
                sequence,
                is_duplicate,
                level,
            };
            let message = match &what {
                Answered::Published(sequence) => published(*sequence, false),
                Answered::Duplicate(sequence) => published(*sequence, true),
                Answered::Refused(refusal) => StreamMessage::Refused { stream: &self.name, refusal },
                Answered::Acked => StreamMessage::Acked,
                Answered::Form(form) => StreamMessage::Answer(form),
            };
            outlet.send(&to, &message);
        }
        self.send_gets(&mut stream, outlet);
        let mut done = Vec::new();
        let mut consumers = std::mem::take(&mut stream.consumers);
        for consumer in consumers.values_mut() {
            consumer.return_due(now);
            self.end_requests(consumer, now, outlet);
            match self.send_to_consumer(&mut stream, consumer, now, outlet, &mut done) {
                Progress::Idle => {}
                Progress::AtEnd => self.end_impatient(consumer, outlet),
                Progress::OnDisk(page) => self.sought.push((0, page)),
                Progress::Busy => stream.is_busy = true,
            }
            beat(consumer, now, outlet);
        }
        stream.consumers = consumers;
        self.stream = Some(stream);
        self.retain_wanted(done, effects);
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
            if !consumer.is_active || consumer.held_until.is_some() {
                let waits = consumer.held_until.is_none() && consumer.unread > 0;
                consumer.held_until = consumer.held_until.or(waits.then(|| now.after(LOOK_AGAIN)));
                return Progress::Idle;
            }
            consumer.last_interest = now;
        }
        for _ in 0..SENT_AT_ONCE {
            if !has_push && !self.has_request(consumer, outlet) {
                return Progress::Idle;
            }
            let Some(turn) = consumer.turn() else { return Progress::Idle };
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
                outlet.advise(&Advisory {
                    stream: &self.name,
                    consumer: &consumer.name,
                    sequence,
                    deliveries,
                    time: now,
                });
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
            let to = match (&consumer.settings.push, consumer.requests.front()) {
                (Some(push), _) => push.subject.clone(),
                (None, Some(request)) => request.reply.clone(),
                (None, None) => return Progress::Idle,
            };
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
                    time: entry.envelope.since,
                    unread: consumer.unread,
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

    /// Whether a request waits whose reader is still there. Requests without one are dropped.
    fn has_request(&self, consumer: &mut StreamConsumer, outlet: &mut impl Outlet) -> bool {
        while let Some(request) = consumer.requests.front() {
            if outlet.has_readers(&request.reply, None) {
                return true;
            }
            consumer.requests.take_front();
        }
        false
    }

    /// Ends the requests whose time is over, and tells the others that they are not forgotten.
    fn end_requests(&self, consumer: &mut StreamConsumer, now: Time, outlet: &mut impl Outlet) {
        let is_over = |request: &PullRequest| request.expires.is_some_and(|expires| expires <= now);
        for request in consumer.requests.take_if(is_over) {
            end(&request, PullEnd::Timeout, outlet);
        }
        let delivered = consumer.delivered;
        for reply in consumer.requests.beat(now) {
            outlet.send(&reply, &StreamMessage::Heartbeat { delivered });
        }
    }

    /// Ends the requests that do not wait for messages.
    fn end_impatient(&self, consumer: &mut StreamConsumer, outlet: &mut impl Outlet) {
        let ends =
            |request: &PullRequest| request.is_impatient && (request.got > 0 || request.expires.is_none());
        for request in consumer.requests.take_if(ends) {
            let why = if request.expires.is_some() { PullEnd::Timeout } else { PullEnd::NoMessages };
            end(&request, why, outlet);
        }
    }
}

/// Tells a reader that its request ended.
pub(super) fn end(request: &PullRequest, end: PullEnd, outlet: &mut impl Outlet) {
    let (left, bytes_left) = (request.left, request.bytes_left.unwrap_or(0));
    outlet.send(&request.reply, &StreamMessage::PullEnded { end, left, bytes_left });
}

/// Tells the reader of a consumer that pushes that the consumer lives.
fn beat(consumer: &mut StreamConsumer, now: Time, outlet: &mut impl Outlet) {
    let Some(push) = consumer.settings.push.as_ref().filter(|_| consumer.is_active) else {
        consumer.heartbeat = None;
        return;
    };
    let Some(every) = push.heartbeat else { return };
    let due = consumer.heartbeat.get_or_insert(now.after(every));
    if *due <= now {
        *due = now.after(every);
        outlet.send(&push.subject, &StreamMessage::Heartbeat { delivered: consumer.delivered });
    }
}
