//! What a stream sends: answers to publishers, messages that were asked for, and the deliveries of its consumers.
//!
//! It all happens under the lock of the queue, so that a reader gets the messages in the order of the stream.

use super::outlet::{Outlet, Sent};
use super::requests::{choose, drop_abandoned, end, end_impatient, end_requests};
use super::step::{Offer, Progress, Recipient, Step};
use crate::message::Receipt;
use crate::name::Name;
use crate::queue::{Effects, Queue};
use crate::stream::{
    AckPolicy, Advisory, AdvisoryKind, Answer, Answered, ConsumerDelivery, FlowRequest, Position, PullEnd,
    Republished, Retention, Stream, StreamConsumer, StreamMessage,
};
use crate::time::Time;

/// Messages that a stream sends before others have its cell.
const SENT_AT_ONCE: usize = 512;

/// Time after which a consumer looks again at a reader that was behind.
const HELD_FOR: std::time::Duration = std::time::Duration::from_millis(2);

/// Time after which a consumer that pushes looks again for a reader of its subject.
const LOOK_AGAIN: std::time::Duration = std::time::Duration::from_millis(250);

/// One round of a stream through its consumers.
struct Round<'a, O> {
    stream: &'a mut Stream,
    outlet: &'a mut O,
    now: Time,
    /// Messages that a consumer without acknowledgements was given.
    done: Vec<u64>,
}

impl<O: Outlet> Round<'_, O> {
    /// Sends an advisory now, and again to queues and streams once the stream is unlocked.
    fn advise(&mut self, advisory: &Advisory<'_>) {
        self.stream.outbox.extend(self.outlet.advise(advisory));
    }
}

/// Whether a consumer may go on after a message was offered to its readers.
enum Offered {
    GoOn,
    Held,
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
        let mut consumers = std::mem::take(&mut stream.consumers);
        let mut round = Round { stream: &mut stream, outlet, now, done: Vec::new() };
        let visible_end = round.stream.visible_end;
        for consumer in consumers.values_mut().filter(|consumer| consumer.has_turn(now, visible_end)) {
            consumer.return_due(now);
            if consumer.unpin_idle(now) {
                let what = AdvisoryKind::Unpinned { is_by_operator: false, settings: &consumer.settings };
                round.advise(&self.advisory(consumer, what, now));
            }
            end_requests(consumer, now, round.outlet);
            let progress = self.send_to_consumer(consumer, &mut round);
            self.beat(consumer, now, round.outlet);
            match progress {
                Progress::Idle => consumer.rest(visible_end),
                Progress::AtEnd => {
                    end_impatient(consumer, round.outlet);
                    consumer.rest(visible_end);
                }
                Progress::OnDisk(page) => {
                    self.sought.push((0, page));
                    consumer.rest = None;
                }
                Progress::Busy => {
                    round.stream.is_busy = true;
                    consumer.rest = None;
                }
            }
        }
        let done = round.done;
        stream.consumers = consumers;
        self.stream = Some(stream);
        self.retain_wanted(done, effects);
    }

    /// An advisory about a consumer.
    fn advisory<'a>(
        &'a self,
        consumer: &'a StreamConsumer,
        what: AdvisoryKind<'a>,
        time: Time,
    ) -> Advisory<'a> {
        Advisory { stream: &self.name, consumer: &consumer.name, what, time }
    }

    /// Publishes again what readers may see, as far as the maker of the stream has the right now.
    fn republish(&self, stream: &mut Stream, outlet: &mut impl Outlet) {
        let end = stream.visible_end;
        let is_visible = |first: &mut Republished| first.entry.envelope.sequence < end;
        while let Some(Republished { entry, to, before }) = stream.republished.pop_front_if(is_visible) {
            if self.settings.maker().is_some_and(|maker| !outlet.may_publish(maker, &to)) {
                continue;
            }
            let message = StreamMessage::Republished {
                stream: &self.name,
                entry: &entry,
                before,
                has_headers_only: stream.settings.republishes_headers,
            };
            stream.outbox.extend(outlet.publish(&to, &message));
        }
    }

    /// Sends a consumer's readers what they may have now.
    fn send_to_consumer(
        &mut self,
        consumer: &mut StreamConsumer,
        round: &mut Round<'_, impl Outlet>,
    ) -> Progress {
        consumer.settings.paused_until.take_if(|until| *until <= round.now);
        if consumer.is_paused(round.now) || !may_push(consumer, round) {
            return Progress::Idle;
        }
        for _ in 0..SENT_AT_ONCE {
            drop_abandoned(consumer, round.outlet);
            match self.next_step(round.stream, consumer) {
                Step::Stop(progress) => return progress,
                Step::AskForAcks => {
                    self.ask_for_acks(consumer, round.outlet);
                    return Progress::Idle;
                }
                Step::SkipAcknowledged(sequence) => consumer.pass_done(sequence),
                Step::Skip(next, sequence) => consumer.pass(next, sequence),
                Step::GiveUp(sequence) => self.give_up(consumer, sequence, round),
                Step::Offer(offer) => match self.offer_to_reader(consumer, &offer, round) {
                    Offered::GoOn => {}
                    Offered::Held => return Progress::Idle,
                },
            }
        }
        Progress::Busy
    }

    /// Gives up on a message that was delivered as often as it may be.
    fn give_up(&self, consumer: &mut StreamConsumer, sequence: u64, round: &mut Round<'_, impl Outlet>) {
        let deliveries = consumer.give_up(sequence);
        let what = AdvisoryKind::DeliveriesExceeded { sequence, deliveries };
        round.advise(&self.advisory(consumer, what, round.now));
    }

    /// Delivers a message to the reader whose turn it is, if that may have it now.
    fn offer_to_reader(
        &mut self,
        consumer: &mut StreamConsumer,
        offer: &Offer,
        round: &mut Round<'_, impl Outlet>,
    ) -> Offered {
        if !choose(consumer, round.outlet) {
            return Offered::Held;
        }
        match offer.recipient(consumer, round.now) {
            Recipient::Nobody => Offered::Held,
            Recipient::Later(pace_until) => {
                if let Some(pace) = &mut consumer.pace {
                    pace.held_until = Some(pace_until);
                }
                Offered::Held
            }
            Recipient::FullRequest => {
                if let Some(request) = consumer.requests.take_front() {
                    end(&request, PullEnd::TooLarge, round.outlet);
                }
                Offered::GoOn
            }
            Recipient::Readers(subject) => self.deliver_to_readers(consumer, &subject, offer, round),
        }
    }

    /// Delivers a message to the readers of a subject, and notes the delivery.
    fn deliver_to_readers(
        &mut self,
        consumer: &mut StreamConsumer,
        to: &Name,
        offer: &Offer,
        round: &mut Round<'_, impl Outlet>,
    ) -> Offered {
        let (now, sequence, bytes, stored) = (round.now, offer.sequence(), offer.bytes(), offer.stored());
        if consumer.needs_pin() {
            let id = round.outlet.new_pin();
            consumer.pin_front(id.clone(), now);
            let what = AdvisoryKind::Pinned { pin: &id, settings: &consumer.settings };
            round.advise(&self.advisory(consumer, what, now));
        }
        let (number, deliveries) = consumer.deliver(offer.next, sequence, now);
        let activity = &mut self.activity;
        match consumer.settings.acks {
            AckPolicy::None => activity.delivered_settled += 1,
            AckPolicy::All | AckPolicy::Explicit => activity.delivered_unsettled += 1,
        }
        activity.redelivered += u64::from(deliveries > 1);
        let message = StreamMessage::Delivery {
            entry: &offer.entry,
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
        let sent = round.outlet.send(to, &message);
        match &consumer.settings.push {
            Some(push) => consumer.heartbeat = push.heartbeat.map(|every| now.after(every)),
            None => consumer.requests.served(bytes, now),
        }
        if let Some(pace) = &mut consumer.pace
            && let Some(number) = pace.delivered(sequence, bytes, stored, now)
        {
            self.ask_reader(consumer, number, round.outlet);
        }
        if consumer.settings.acks == AckPolicy::None && round.stream.settings.retention != Retention::Limits {
            round.done.push(sequence);
        }
        if sent == Sent::SlowReader && consumer.settings.push.is_some() {
            consumer.held_until = Some(now.after(HELD_FOR));
            return Offered::Held;
        }
        Offered::GoOn
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

/// Whether the readers of a consumer's deliver subject may get messages; so may those of a consumer without one.
fn may_push(consumer: &mut StreamConsumer, round: &mut Round<'_, impl Outlet>) -> bool {
    let Some(push) = &consumer.settings.push else { return true };
    let was_active = consumer.is_active;
    consumer.is_active = round.outlet.has_readers(&push.subject, push.group.as_ref());
    if consumer.is_active && !was_active {
        // It was held because nobody read the subject.
        consumer.held_until = None;
    }
    consumer.held_until.take_if(|until| *until <= round.now);
    if !consumer.is_active
        && let Some(pace) = &mut consumer.pace
    {
        pace.reader_is_gone();
    }
    if !consumer.is_active || consumer.held_until.is_some() {
        let waits = consumer.held_until.is_none() && consumer.unread > 0;
        consumer.held_until = consumer.held_until.or(waits.then(|| round.now.after(LOOK_AGAIN)));
        return false;
    }
    consumer.last_interest = round.now;
    true
}
