//! What clients of streams do, one action at a time, chosen at random.

use std::collections::BTreeMap;
use std::time::Duration;

use super::client::{Delivery, Reader, Request, Role, StreamClient};
use super::ledger::Ledger;
use super::records::{Answer, Purge, Sent, Stage};
use crate::machine::Shared;
use crate::message_text::{body, shared_name};
use crate::workload::{KEYS, Workload};

/// The latest messages with an id, of which one is repeated.
const REPEATED_OF: usize = 8;

/// Bytes of a message in the files of nats-server besides subject, headers and body.
const FRAME_BYTES: usize = 30;

/// Bytes of the length of the headers there.
const HEADER_LEN_BYTES: usize = 4;

/// The time that a client waits for messages to drain a consumer: longer than any wait for an acknowledgement.
const DRAINED_AFTER_NANOS: u64 = 40_000_000_000;

/// The time after which a client looks again for the answer that its next action needs.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

impl StreamClient {
    /// Does one action.
    pub(crate) fn act(&mut self, shared: &Shared, ledger: &mut Ledger, workload: &Workload) {
        let random = &shared.random;
        self.actions_left -= 1;
        self.next_at = shared.clock.get().after(workload.pause(random));
        if !self.is_reading {
            self.is_reading = random.chance(1, 6);
        }
        let is_change = |request: &Request| {
            matches!(
                request,
                Request::MakeStream(_)
                    | Request::DeleteStream(_)
                    | Request::MakeConsumer(..)
                    | Request::DeleteConsumer(..)
            )
        };
        if self.role != Role::Any && self.requests.values().any(is_change) {
            self.actions_left += 1;
            self.next_at = shared.clock.get().after(LOOK_AGAIN);
            return;
        }
        match self.role {
            Role::Any => self.do_anything(shared, ledger, workload),
            Role::Drain => self.go_on_draining(shared, ledger, workload),
            Role::Remove => self.go_on_removing(shared, ledger),
        }
    }

    fn do_anything(&mut self, shared: &Shared, ledger: &mut Ledger, workload: &Workload) {
        let random = &shared.random;
        let stream = random.below(ledger.streams.len());
        if ledger.stream(stream).stage != Stage::There {
            return self.drive_stream(shared, ledger, stream);
        }
        match random.below(64) {
            0..24 => {
                for _ in 0..random.between(1, workload.burst_max) {
                    self.publish_some(shared, ledger, workload, stream);
                }
            }
            24..36 => self.read_some(shared, ledger, stream),
            36..48 => self.settle_some(shared, ledger),
            48..52 => self.get_some(shared, ledger, stream),
            52..54 => self.delete_some(shared, ledger, stream),
            54..56 => self.purge_some(shared, ledger, stream),
            56..59 => {
                let consumer = random.below(ledger.stream(stream).consumers.len());
                if ledger.stream(stream).consumers.get(consumer).is_some_and(|it| it.stage != Stage::There)
                    || random.chance(1, 6)
                {
                    self.drive_consumer(shared, ledger, stream, consumer);
                }
            }
            59 => self.drive_stream(shared, ledger, stream),
            60 => self.is_reading = false,
            61 => self.die(shared),
            62 => self.close(shared),
            _ => {}
        }
    }

    /// Makes a stream that is not there, or deletes one that is, unless another client is about to change it.
    fn drive_stream(&mut self, shared: &Shared, ledger: &mut Ledger, stream: usize) {
        let is_over = |pipe: usize| shared.network.pipe(pipe).is_over;
        let state = ledger.stream(stream);
        if state.driver.is_some_and(|driver| !is_over(driver))
            || state.consumers.iter().any(|consumer| consumer.driver.is_some_and(|driver| !is_over(driver)))
        {
            return;
        }
        let (name, json) = (state.spec.name.clone(), state.spec.json());
        let stage = match state.stage {
            Stage::Absent | Stage::Making => Stage::Making,
            Stage::There | Stage::Going => Stage::Going,
        };
        if state.stage == Stage::There {
            ledger.stream_goes(stream);
        }
        let state = ledger.stream_mut(stream);
        (state.stage, state.driver) = (stage, Some(self.pipe));
        match stage {
            Stage::Making => {
                let subject = format!("$JS.API.STREAM.CREATE.{name}");
                self.request(shared, Request::MakeStream(stream), &subject, &[], json.as_bytes());
            }
            _ => {
                let subject = format!("$JS.API.STREAM.DELETE.{name}");
                self.request(shared, Request::DeleteStream(stream), &subject, &[], b"");
            }
        }
    }

    /// Makes a consumer that is not there, or deletes one that is.
    fn drive_consumer(&mut self, shared: &Shared, ledger: &mut Ledger, stream: usize, consumer: usize) {
        let pipe = self.pipe;
        let state = ledger.stream_mut(stream);
        let spec = state.spec.clone();
        let Some(own) = state.consumers.get_mut(consumer) else { return };
        if own.driver.is_some_and(|driver| !shared.network.pipe(driver).is_over) {
            return;
        }
        own.driver = Some(pipe);
        own.stage = match own.stage {
            Stage::Absent | Stage::Making => Stage::Making,
            Stage::There | Stage::Going => Stage::Going,
        };
        let (name, json) = (own.spec.name.clone(), own.spec.json(&spec));
        if own.stage == Stage::Making {
            let subject = format!("$JS.API.CONSUMER.DURABLE.CREATE.{}.{name}", spec.name);
            let request = Request::MakeConsumer(stream, consumer);
            self.request(shared, request, &subject, &[], json.as_bytes());
        } else {
            let subject = format!("$JS.API.CONSUMER.DELETE.{}.{name}", spec.name);
            self.request(shared, Request::DeleteConsumer(stream, consumer), &subject, &[], b"");
        }
    }

    /// Publishes a message, perhaps with an id, perhaps behind a certain message of its subject.
    fn publish_some(&mut self, shared: &Shared, ledger: &mut Ledger, workload: &Workload, stream: usize) {
        let random = &shared.random;
        let message = ledger.messages.len();
        let state = ledger.stream(stream);
        let key = random.below(KEYS);
        let size = random.between(8, workload.body_bytes_max);
        let once = random.chance(1, 4).then(|| {
            let has_id = |(_, sent): &(usize, &Sent)| sent.stream == stream && sent.once.is_some();
            let known = ledger.messages.iter().enumerate().rev().filter(has_id).take(REPEATED_OF);
            let known: Vec<usize> = known.filter_map(|(_, sent)| sent.once).collect();
            if known.is_empty() || random.chance(1, 2) { message } else { *random.pick(&known) }
        });
        let expected = random.chance(1, 4).then(|| {
            let of_key = |message: &usize| ledger.message(*message).key == key;
            let last = state.at.iter().rev().find(|(_, message)| of_key(message));
            last.map_or(0, |(sequence, _)| *sequence).saturating_sub(u64::from(random.chance(1, 8)))
        });
        let (id, last) = (once.map(shared_name), expected.map(|expected| expected.to_string()));
        let headers =
            [("Nats-Msg-Id", id.as_deref()), ("Nats-Expected-Last-Subject-Sequence", last.as_deref())];
        let headers: Vec<(&str, &str)> =
            headers.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
        let subject = state.spec.subject(key);
        let block = imori_client::nats::header_block(headers.iter().copied()).unwrap_or_default();
        let head = if headers.is_empty() { 0 } else { block.len() + HEADER_LEN_BYTES };
        let bytes = (FRAME_BYTES + subject.len() + head + size) as u64;
        let sent = Sent {
            stream,
            life: Some(state.life),
            key,
            size,
            bytes,
            once,
            expected,
            at: shared.step.get(),
            time: shared.clock.get(),
            answer: Answer::Missing,
            sequence: None,
        };
        ledger.messages.push(sent);
        self.request(shared, Request::Publish(message), &subject, &headers, &body(message, size));
    }

    /// Asks a consumer for messages, or subscribes to those that it sends.
    fn read_some(&mut self, shared: &Shared, ledger: &Ledger, stream: usize) {
        let random = &shared.random;
        let consumer = random.below(ledger.stream(stream).consumers.len());
        let batch = random.between(1, 8) as u64;
        let wait = *random.pick(&[0, 50_000_000, 1_000_000_000]);
        self.read(shared, ledger, stream, consumer, batch, wait);
    }

    fn read(
        &mut self,
        shared: &Shared,
        ledger: &Ledger,
        stream: usize,
        consumer: usize,
        batch: u64,
        nanos: u64,
    ) {
        let state = ledger.stream(stream);
        let Some(own) = state.consumers.get(consumer).filter(|own| own.stage == Stage::There) else { return };
        let (session, sid) = (self.session, format!("{stream}.{consumer}"));
        let subject = own.spec.push.clone().unwrap_or(format!("read.{session}.{sid}"));
        if !self.readers.contains_key(&(stream, consumer)) {
            self.subscribe(shared, &subject, &sid);
        }
        let reader =
            self.readers.entry((stream, consumer)).or_insert(Reader { life: own.life, ..Reader::default() });
        if own.spec.push.is_some() {
            return;
        }
        if reader.asked == reader.got {
            reader.life = own.life;
        }
        reader.asked += batch;
        let to = format!("$JS.API.CONSUMER.MSG.NEXT.{}.{}", state.spec.name, own.spec.name);
        let body = match nanos {
            0 => format!(r#"{{"batch":{batch},"no_wait":true}}"#),
            nanos => format!(r#"{{"batch":{batch},"expires":{nanos}}}"#),
        };
        self.publish(shared, &to, Some(&subject), &[], body.as_bytes());
    }

    fn settle_some(&mut self, shared: &Shared, ledger: &mut Ledger) {
        if self.unsettled.is_empty() {
            return;
        }
        let delivery = *shared.random.pick(&self.unsettled);
        let (payload, is_final) = *shared.random.pick(&[
            ("+ACK", true),
            ("+ACK", true),
            ("+ACK", true),
            ("+TERM", true),
            ("-NAK", false),
            ("+WPI", false),
        ]);
        self.settle(shared, ledger, delivery, payload, is_final, shared.random.chance(1, 2));
    }

    /// Settles a delivery, and waits for the answer if there is to be one.
    pub(super) fn settle(
        &mut self,
        shared: &Shared,
        ledger: &mut Ledger,
        delivery: Delivery,
        payload: &str,
        is_final: bool,
        has_answer: bool,
    ) {
        let state = ledger.stream_mut(delivery.stream);
        let Some(own) = state.consumers.get_mut(delivery.consumer) else { return };
        let Delivery { sequence, deliveries, number, .. } = delivery;
        let subject =
            format!("$JS.ACK.{}.{}.{deliveries}.{sequence}.{number}.0.0", state.spec.name, own.spec.name);
        if is_final {
            state.acked.insert(sequence);
            own.acks.entry(sequence).or_default();
            self.unsettled.retain(|other| *other != delivery);
        }
        match is_final && has_answer {
            true => self.request(shared, Request::Ack(delivery), &subject, &[], payload.as_bytes()),
            false => self.publish(shared, &subject, None, &[], payload.as_bytes()),
        }
    }

    /// Gets the last message with a key, or the one with a number.
    fn get_some(&mut self, shared: &Shared, ledger: &Ledger, stream: usize) {
        let random = &shared.random;
        let state = ledger.stream(stream);
        let (name, life, at) = (&state.spec.name, state.life, shared.step.get());
        if random.chance(1, 2) {
            let key = random.below(KEYS);
            let subject = format!("$JS.API.DIRECT.GET.{name}.{}", state.spec.subject(key));
            return self.request(shared, Request::GetLast { stream, life, key, at }, &subject, &[], b"");
        }
        let Some(sequence) = self.some_number(shared, &state.at) else { return };
        let body = format!(r#"{{"seq":{sequence}}}"#);
        let subject = format!("$JS.API.DIRECT.GET.{name}");
        self.request(shared, Request::Get { stream, life, sequence, at }, &subject, &[], body.as_bytes());
    }

    fn delete_some(&mut self, shared: &Shared, ledger: &mut Ledger, stream: usize) {
        let state = ledger.stream_mut(stream);
        let Some(sequence) = self.some_number(shared, &state.at) else { return };
        state.deletions.entry(sequence).or_default();
        let (subject, life) = (format!("$JS.API.STREAM.MSG.DELETE.{}", state.spec.name), state.life);
        let body = format!(r#"{{"seq":{sequence}}}"#);
        self.request(shared, Request::Delete { stream, life, sequence }, &subject, &[], body.as_bytes());
    }

    fn some_number(&self, shared: &Shared, at: &BTreeMap<u64, usize>) -> Option<u64> {
        let index = shared.random.below(at.len());
        at.keys().nth(index).copied()
    }

    fn purge_some(&mut self, shared: &Shared, ledger: &mut Ledger, stream: usize) {
        let random = &shared.random;
        let state = ledger.stream_mut(stream);
        let key = random.chance(1, 2).then(|| random.below(KEYS));
        let end = self.some_number(shared, &state.at).filter(|_| random.chance(1, 3));
        let keep = if end.is_none() && random.chance(1, 3) { random.between(1, 3) as u64 } else { 0 };
        let mut fields = Vec::new();
        fields.extend(key.map(|key| format!(r#""filter":"{}""#, state.spec.subject(key))));
        fields.extend(end.map(|end| format!(r#""seq":{end}"#)));
        fields.extend((keep > 0).then(|| format!(r#""keep":{keep}"#)));
        let (subject, life) = (format!("$JS.API.STREAM.PURGE.{}", state.spec.name), state.life);
        let request = Request::Purge { stream, life, purge: state.purges.len() };
        state.purges.push(Purge { key, end, keep, at: shared.step.get(), answered_at: None });
        let body = format!("{{{}}}", fields.join(","));
        self.request(shared, request, &subject, &[], body.as_bytes());
    }

    /// Makes all streams and consumers, publishes to each stream, and reads each consumer to its end.
    fn go_on_draining(&mut self, shared: &Shared, ledger: &mut Ledger, workload: &Workload) {
        for stream in 0..ledger.streams.len() {
            if ledger.stream(stream).stage != Stage::There {
                return self.drive_stream(shared, ledger, stream);
            }
            for consumer in 0..ledger.stream(stream).consumers.len() {
                let own = ledger.stream(stream).consumers.get(consumer);
                if own.is_some_and(|own| own.stage != Stage::There) {
                    return self.drive_consumer(shared, ledger, stream, consumer);
                }
            }
        }
        if let Some(stream) = ledger.streams.get(self.agenda).map(|_| self.agenda) {
            self.publish_some(shared, ledger, workload, stream);
            for consumer in 0..ledger.stream(stream).consumers.len() {
                self.read(shared, ledger, stream, consumer, 1_000, DRAINED_AFTER_NANOS);
            }
            self.agenda += 1;
        }
    }

    /// Deletes all streams.
    fn go_on_removing(&mut self, shared: &Shared, ledger: &mut Ledger) {
        let rest = (0..ledger.streams.len()).find(|stream| ledger.stream(*stream).stage != Stage::Absent);
        if let Some(stream) = rest {
            self.drive_stream(shared, ledger, stream);
        }
    }
}
