//! AMQP 1.0.
//!
//! A destination is a plain name; a capability tells queues from topics. Requests and messages use a link of
//! their own, replies an anonymous one. They arrive on a dynamic node, or on a queue per requester.

use anyhow::{Result, bail, ensure};
use imori_amqp10::codec::composites::{Header, Properties, Transfer};
use imori_amqp10::codec::field::Field as _;
use imori_amqp10::codec::map::MapBuf;
use imori_amqp10::codec::push::{push_binary_head, push_map_of};
use imori_amqp10::codec::restricted::MessageId;
use imori_amqp10::codec::sections::SectionKind;
use imori_amqp10::codec::value::Value;
use imori_client::amqp10::{push_accept, push_message};

use crate::options::{AckMode, ReplyKind};
use crate::protocol::amqp10_reader::Amqp10Reader;
use crate::protocol::amqp10_set_up::{
    CHANNEL, DYNAMIC, PART_BYTES, Purpose, address, credit_of, push_login, push_receiver, push_sender,
};
use crate::protocol::driver::{
    CallTerms, ConfirmMode, Delivery, Destination, Driver, Manner, Queue, Reader, Replies, Terms, comparisons,
};
use crate::protocol::template::{CORRELATION_BYTES, Correlation, MessageTemplate, RequestTemplate};
use crate::stamp::STAMP_BYTES;
use crate::url::Url;

/// Placeholder for the delivery's number, which is found by its value; it must encode to four bytes.
const NUMBER: u32 = 0xf0e1_d2c3;

/// AMQP 1.0.
#[derive(Debug)]
pub(crate) struct Amqp10;

impl Driver for Amqp10 {
    fn name(&self) -> &'static str {
        "amqp10"
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::new(Amqp10Reader::default())
    }

    fn log_in(&self, url: &Url, out: &mut Vec<u8>) {
        push_login(out, url);
    }

    fn subscribe(&self, destination: &Destination, terms: Terms, confirm: ConfirmMode, out: &mut Vec<u8>) {
        if let Destination::Service(_) = destination {
            push_receiver(out, Purpose::Serve, destination, terms);
            return push_sender(out, Purpose::Reply, None);
        }
        let is_awaited = confirm == ConfirmMode::Each;
        let purpose = Purpose::Consume { credit: credit_of(terms.prefetch), is_awaited };
        push_receiver(out, purpose, destination, terms);
    }

    /// The first credit of the link is the confirm.
    fn prepare(&self, destination: &Destination, _: ConfirmMode, out: &mut Vec<u8>) {
        push_sender(out, Purpose::Publish, Some(destination));
    }

    fn replies(&self, kind: ReplyKind, name: &str, requester: Correlation) -> Result<Replies> {
        let address = match kind {
            ReplyKind::TempQueue => DYNAMIC.to_owned(),
            ReplyKind::Named => format!("{name}-reply-{}", requester.requester),
        };
        let source = Some(Destination::Queue(Queue::named(&address)));
        Ok(Replies { address, source })
    }

    fn request(
        &self,
        service: &Destination,
        replies: &Replies,
        size: usize,
        first: Correlation,
    ) -> RequestTemplate {
        let correlation = first.to_string();
        let properties = Properties {
            to: Some(address(service)),
            reply_to: Some(&replies.address),
            correlation_id: Some(MessageId::String(&correlation)),
            ..Properties::default()
        };
        let sections = Sections { properties, ..Sections::default() };
        let mut bytes = Vec::new();
        let places = sections.push(&mut bytes, Purpose::Publish, NUMBER, true, &vec![b' '; size]);
        let ends = position(&bytes, correlation.as_bytes()).unwrap_or_default() + CORRELATION_BYTES;
        let numbers_at = numbers_at(&bytes);
        RequestTemplate::encoded(bytes, ends, places.body_at, places.message_bytes)
            .with_delivery_numbers(numbers_at)
    }

    fn message(&self, destination: &Destination, filler: &[u8], manner: Manner) -> MessageTemplate {
        let header = Header {
            durable: manner.is_persistent,
            priority: manner.priorities.map_or(Header::default().priority, |_| 0),
            ttl: manner.expiration.map(|lives| lives.as_millis() as u32),
            ..Header::default()
        };
        let properties = Properties { to: Some(address(destination)), ..Properties::default() };
        let sections = Sections { header: Some(header), properties, comparisons: manner.comparisons };
        let is_settled = manner.confirm == ConfirmMode::None;
        let body = [&[0; STAMP_BYTES], filler].concat();
        let mut bytes = Vec::new();
        let places = sections.push(&mut bytes, Purpose::Publish, NUMBER, is_settled, &body);
        let numbers_at = numbers_at(&bytes);
        let template = MessageTemplate::encoded(bytes, places.body_at, places.message_bytes)
            .with_delivery_numbers(numbers_at);
        match manner.priorities {
            Some(priorities) => template.with_priorities_at(places.priority_at, priorities),
            None => template,
        }
    }

    /// The request's number is reused, because each request has one reply.
    fn reply(&self, request: &Delivery<'_>, out: &mut Vec<u8>) -> usize {
        let number = request.ack.first_chunk().map_or(0, |number| u32::from_be_bytes(*number));
        let properties = Properties {
            to: str::from_utf8(request.reply_to).ok(),
            correlation_id: str::from_utf8(request.correlation).ok().map(MessageId::String),
            ..Properties::default()
        };
        let sections = Sections { properties, ..Sections::default() };
        let begin = out.len();
        begin + sections.push(out, Purpose::Reply, number, true, request.body).body_at
    }

    fn acknowledge(&self, token: &[u8], _: AckMode, out: &mut Vec<u8>) {
        let number = token.first_chunk().map_or(0, |number| u32::from_be_bytes(*number));
        push_accept(out, CHANNEL, number, number);
    }

    fn check(&self, terms: Terms) -> Result<()> {
        ensure!(
            terms.ack != AckMode::Client,
            "AMQP 1.0 acknowledges each delivery; use `--ack client-individual`"
        );
        Ok(())
    }

    fn check_calls(&self, calls: CallTerms<'_>) -> Result<()> {
        if calls.reconnects && calls.reply == ReplyKind::TempQueue {
            bail!("the broker names a queue for replies anew on each connection; use `--reply named`");
        }
        Ok(())
    }
}

#[derive(Default)]
struct Sections<'a> {
    header: Option<Header>,
    properties: Properties<'a>,
    /// Number of application properties for selectors.
    comparisons: u8,
}

/// Where the parts of a message stand, counted from its first frame.
struct Places {
    /// Offset of the body.
    body_at: usize,
    /// Offset of the priority, if the header has one.
    priority_at: usize,
    /// Bytes of the message in all its transfers.
    message_bytes: usize,
}

impl Sections<'_> {
    /// Appends a message with this body, in as many transfers as needed.
    fn push(
        &self,
        out: &mut Vec<u8>,
        purpose: Purpose,
        number: u32,
        is_settled: bool,
        body: &[u8],
    ) -> Places {
        let mut message = Vec::with_capacity(128 + body.len());
        let mut priority_at = 0;
        if let Some(header) = &self.header {
            header.push(&mut message);
            priority_at = position(&message, &[0x50, header.priority]).map_or(0, |at| at + 1);
        }
        self.properties.push(&mut message);
        push_compared(&mut message, self.comparisons);
        SectionKind::Data.push(&mut message);
        push_binary_head(&mut message, body.len());
        let body_at = message.len();
        message.extend_from_slice(body);
        let first = Transfer {
            handle: purpose.handle(),
            delivery_id: Some(number),
            delivery_tag: Some(&number.to_be_bytes()),
            message_format: Some(0),
            settled: Some(is_settled),
            ..Transfer::default()
        };
        let message_at = push_message(out, CHANNEL, &first, &message, PART_BYTES);
        Places {
            body_at: message_at + body_at,
            priority_at: message_at + priority_at,
            message_bytes: message.len(),
        }
    }
}

/// Offsets of the delivery-id and the delivery-tag of the first transfer, which has [`NUMBER`] as both.
fn numbers_at(bytes: &[u8]) -> [usize; 2] {
    let tag = NUMBER.to_be_bytes();
    let first = position(bytes, &tag).unwrap_or_default();
    let second = position(bytes.get(first + tag.len()..).unwrap_or_default(), &tag).unwrap_or_default();
    [first, first + tag.len() + second]
}

/// Appends the application properties for selectors; no section if there are none.
fn push_compared(out: &mut Vec<u8>, count: u8) {
    let mut map = MapBuf::new();
    for (name, value) in comparisons(count) {
        map.push(Value::String(&name), Value::Int(value));
    }
    if !map.is_empty() {
        SectionKind::ApplicationProperties.push(out);
        push_map_of(out, map.map());
    }
}

fn position(bytes: &[u8], searched: &[u8]) -> Option<usize> {
    bytes.windows(searched.len()).position(|window| window == searched)
}

#[cfg(test)]
mod tests {
    use imori_amqp10::codec::composites::{
        Accepted, Attach, Begin, DeliveryState, Disposition, Flow, Performative, Source,
    };
    use imori_amqp10::codec::frame::{FrameKind, push_frame};
    use imori_amqp10::codec::restricted::Role;
    use imori_client::amqp10::WINDOW;

    use super::*;
    use crate::protocol::driver::{Confirmed, Heard, taken};

    const FIRST: Correlation = Correlation { run: 0xdead_beef, requester: 3, number: 0 };

    fn push(out: &mut Vec<u8>, performative: &Performative<'_>) {
        push_frame(out, FrameKind::Amqp, CHANNEL, |out| performative.encode(out));
    }

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut out = Vec::new();
        write(&mut out);
        out
    }

    /// Decodes all bytes, and passes the last item to `see`.
    fn last(reader: &mut dyn Reader, bytes: &[u8], see: impl FnOnce(&Heard<'_>)) {
        let mut at = 0;
        loop {
            let (heard, used) = reader.take(&bytes[at..]).unwrap().expect("a whole frame");
            at += used;
            if at == bytes.len() {
                return see(&heard);
            }
        }
    }

    #[test]
    fn requests_and_replies_say_which_call_they_are() {
        let replies = Replies { address: "made/7".to_owned(), source: None };
        let service = Destination::Service("rpc".to_owned());
        for size in [3, 300, PART_BYTES, PART_BYTES + 1, 3 * PART_BYTES] {
            let template = Amqp10.request(&service, &replies, size, FIRST);
            let request = written(|out| template.append(out, 0x1f, 99));
            let mut reader = Amqp10.reader();
            last(&mut *reader, &request, |heard| {
                let Heard::Delivery(request) = heard else { panic!("{heard:?}") };
                assert_eq!(Correlation::read(request.correlation), Some(Correlation { number: 31, ..FIRST }));
                assert_eq!((request.reply_to, request.body.len()), (&b"made/7"[..], size));
                assert!(request.body.starts_with(b"99 "));
                assert_eq!(request.ack, [0, 0, 0, 0x1f], "the number of the delivery is that of the call");
                let mut out = b"before".to_vec();
                let body_at = Amqp10.reply(request, &mut out);
                assert!(out[body_at..].starts_with(b"99 "));
                last(&mut *Amqp10.reader(), &out[6..], |heard| {
                    let Heard::Delivery(reply) = heard else { panic!("{heard:?}") };
                    assert_eq!((reply.correlation, reply.body), (request.correlation, request.body));
                    assert_eq!(reply.ack, request.ack);
                });
            });
        }
    }

    #[test]
    fn a_message_carries_its_stamp_filler_and_properties() {
        let manner = Manner {
            is_persistent: true,
            priorities: Some(3),
            expiration: Some(std::time::Duration::from_secs(2)),
            ..Manner::default()
        };
        for filler in [&b"fill"[..], &[b'x'; 2 * PART_BYTES]] {
            for (destination, manner) in [
                (Destination::Topic("t".to_owned()), Manner::default()),
                (Destination::Queue(Queue::named("q")), manner),
            ] {
                let template = Amqp10.message(&destination, filler, manner);
                let message = written(|out| template.append(out, 5, b"0123456789abcdef"));
                last(&mut *Amqp10.reader(), &message, |heard| {
                    let Heard::Delivery(delivery) = heard else { panic!("{heard:?}") };
                    assert_eq!(delivery.body, [b"0123456789abcdef", filler].concat());
                });
                // Header: durable, priority 2, which message 5 of a cycle of three has, and a time
                // to live of 2,000 ms.
                let header = [0x00, 0x53, 0x70, 0xc0, 9, 3, 0x41, 0x50, 2, 0x70, 0, 0, 0x07, 0xd0];
                let has_it = message.windows(header.len()).any(|bytes| bytes == header);
                assert_eq!(has_it, manner.is_persistent);
            }
        }
    }

    #[test]
    fn a_selector_compares_each_of_the_properties() {
        let terms = Terms { comparisons: 2, ..Terms::default() };
        let topic = Destination::Topic("t".to_owned());
        let attach = written(|out| Amqp10.subscribe(&topic, terms, ConfirmMode::None, out));
        let has = |bytes: &[u8], searched: &[u8]| position(bytes, searched).is_some();
        assert!(has(&attach, b"c1 >= 1 AND c2 >= 2"));
        let manner = Manner { comparisons: 2, ..Manner::default() };
        let message = written(|out| Amqp10.message(&topic, b"", manner).append(out, 0, b"0123456789abcdef"));
        // Application properties: a map of four, c1 and c2 with small integers.
        assert!(has(&message, b"\x00\x53\x74\xc1\x0d\x04\xa1\x02c1\x54\x01\xa1\x02c2\x54\x02"));
        let plain = written(|out| Amqp10.subscribe(&topic, Terms::default(), ConfirmMode::None, out));
        assert!(!has(&plain, b"jms-selector"), "no selector compares nothing");
    }

    /// The broker's frames: begin, attach, the first credit, more of it, and a disposition of a range.
    #[test]
    fn a_publisher_is_held_to_credit_and_window() {
        let mut reader = Amqp10.reader();
        let mut message = Amqp10.message(&Destination::Topic("t".to_owned()), b"", Manner::default());
        reader.feed(&mut message);
        let mut hear = |performative: Performative<'_>, room: u64| {
            let frame = written(|out| push(out, &performative));
            let (heard, _) = reader.take(&frame).unwrap().unwrap();
            let is_told = matches!(heard, Heard::Confirmed(None));
            assert_eq!(message.room(), room, "{performative:?}");
            is_told
        };
        let begin = Begin { remote_channel: Some(0), incoming_window: 3, ..Begin::default() };
        assert!(hear(Performative::Begin(begin), 0));
        let attach = Attach { name: "publish", handle: 7, ..Attach::default() };
        assert!(!hear(Performative::Attach(attach), 0));
        let flow = |next, window, count, credit| {
            Performative::Flow(Flow {
                next_incoming_id: Some(next),
                incoming_window: window,
                handle: Some(7),
                delivery_count: Some(count),
                link_credit: Some(credit),
                ..Flow::default()
            })
        };
        assert!(hear(flow(0, 3, 0, 2), 2), "the first credit is awaited");
        assert!(!hear(flow(0, 3, 0, 9), 3), "the window is shorter");
        written(|out| message.append(out, 0, &[0; STAMP_BYTES]));
        assert!(!hear(flow(1, 5, 1, 1), 1));
    }

    #[test]
    fn a_consumer_gives_credit_anew_and_hears_of_each_confirm() {
        let mut reader = Amqp10.reader();
        let attach = Attach {
            name: "consume-2",
            handle: 4,
            source: Some(Source::default()),
            initial_delivery_count: Some(9),
            ..Attach::default()
        };
        let frame = written(|out| push(out, &Performative::Attach(attach)));
        assert!(matches!(reader.take(&frame).unwrap(), Some((Heard::Confirmed(None), _))));
        let message = Amqp10.message(&Destination::Topic("t".to_owned()), b"", Manner::default());
        let delivery = written(|out| message.append(out, 0, &[0; STAMP_BYTES]));
        assert!(matches!(reader.take(&delivery).unwrap(), Some((Heard::Delivery(_), _))));
        let Some((Heard::Ping(answer), 0)) = reader.take(&[]).unwrap() else { panic!("credit is due") };
        let flow = Flow {
            next_incoming_id: Some(1),
            incoming_window: WINDOW,
            outgoing_window: WINDOW,
            handle: Some(1),
            delivery_count: Some(10),
            link_credit: Some(2),
            ..Flow::default()
        };
        assert_eq!(answer, written(|out| push(out, &Performative::Flow(flow))));
        let accepted = Disposition {
            role: Role::Receiver,
            first: 3,
            last: Some(5),
            settled: true,
            state: Some(DeliveryState::Accepted(Accepted {})),
            ..Disposition::default()
        };
        let frame = written(|out| push(out, &Performative::Disposition(accepted)));
        for (number, used) in [(3, frame.len()), (4, 0), (5, 0)] {
            let (heard, took) = reader.take(&frame).unwrap().unwrap();
            let Heard::Confirmed(Some(confirmed)) = heard else { panic!("{heard:?}") };
            assert_eq!((confirmed, took), (Confirmed { number, level: None }, used));
        }
    }

    #[test]
    fn other_protocols_are_told_apart() {
        for bytes in
            [&b"HTTP/1.1 400 Bad Request\r\n"[..], b"AMQP\0\0\x09\x01", b"INFO {\"server_id\":\"x\"}\r\n"]
        {
            assert!(Amqp10.reader().take(bytes).is_err());
        }
        taken(&Amqp10, b"AMQP\x03\x01\0\0", |heard| assert!(matches!(heard, Heard::Nothing)));
        assert!(Amqp10.check(Terms { ack: AckMode::Client, ..Terms::default() }).is_err());
    }
}
