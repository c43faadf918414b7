//! Another codec, the crate `amq-protocol`, reads and writes the same bytes.

use amq_protocol::frame::{AMQPFrame, WriteContext, gen_frame, parse_frame};
use imori_amqp091::codec::frame::{
    self, FrameType, Step, push_body, push_content_header, push_frame, push_heartbeat,
};
use imori_amqp091::codec::methods::Method;
use imori_amqp091::codec::properties::{BasicProperties, ContentHeader, TextProperty};
use imori_amqp091::codec::table::Table;
use imori_amqp091::limits::FRAME_BYTES_MAX;
use proptest::prelude::*;

use crate::spec::{ALL_TYPES, payload, table};

/// A frame as the other codec reads it, and its bytes as that writes it again.
fn other(bytes: &[u8]) -> (AMQPFrame, Vec<u8>) {
    let (rest, frame) =
        parse_frame(bytes).unwrap_or_else(|error| panic!("{error:?} in {}", bytes.escape_ascii()));
    assert_eq!(rest, b"");
    let written = gen_frame(&frame)(WriteContext::from(Vec::new())).unwrap();
    (frame, written.into_inner().0)
}

/// The payload of a frame as this codec reads it.
fn own(bytes: &[u8]) -> &[u8] {
    match frame::decode(bytes, FRAME_BYTES_MAX as usize) {
        Ok(Step::Frame(frame)) => frame.payload,
        other => panic!("{other:?}"),
    }
}

proptest! {
    #[test]
    fn methods_are_equal(channel in any::<u16>(), bytes in prop::collection::vec(any::<u8>(), 1..64)) {
        for (id, name, fields) in table() {
            let mut payload = payload(id, &fields, &bytes);
            if name == "basic.qos" {
                // The other codec has no `prefetch-size`, as no broker has it.
                payload[4..8].fill(0);
            }
            let mut sent = Vec::new();
            push_frame(&mut sent, FrameType::Method, channel, |out| {
                let method = Method::decode(&payload).unwrap();
                out.extend([id.class.to_be_bytes(), id.method.to_be_bytes()].concat());
                method.push_fields(out);
            });
            let (_, again) = other(&sent);
            prop_assert_eq!(again.escape_ascii().to_string(), sent.escape_ascii().to_string(), "{}", name);
            prop_assert_eq!(Method::decode(own(&again)), Method::decode(&payload));
        }
    }

    #[test]
    fn contents_are_equal(
        texts in prop::collection::vec(prop::option::of("[a-z/]{0,9}"), 9),
        numbers in any::<(Option<u8>, Option<u8>, Option<u64>, bool, u64)>(),
        channel in 1..u16::MAX,
        body in prop::collection::vec(any::<u8>(), 1..100),
    ) {
        let text = |at: usize| texts[at].as_ref().map(|text: &String| TextProperty::new(text.as_bytes()));
        let properties = BasicProperties {
            content_type: text(0),
            content_encoding: text(1),
            headers: numbers.3.then(|| Table::new(ALL_TYPES).unwrap()),
            delivery_mode: numbers.0,
            priority: numbers.1,
            correlation_id: text(2),
            reply_to: text(3),
            expiration: text(4),
            message_id: text(5),
            timestamp: numbers.2,
            kind: text(6),
            user_id: text(7),
            app_id: text(8),
            cluster_id: None,
        };
        let mut written = Vec::new();
        properties.push(&mut written);
        let mut header = Vec::new();
        push_content_header(&mut header, channel, body.len(), &written);
        let (frame, again) = other(&header);
        prop_assert_eq!(again.escape_ascii().to_string(), header.escape_ascii().to_string());
        let AMQPFrame::Header(_, read) = frame else { panic!("it is no header") };
        prop_assert_eq!(read.body_size, body.len() as u64);
        let own = ContentHeader::decode(own(&again)).unwrap();
        prop_assert_eq!(own.properties, &written[..]);
        let of_other = read.properties.correlation_id().as_ref().map(|text| text.as_str().to_owned());
        prop_assert_eq!(of_other, texts[2].clone());
        let mut out = Vec::new();
        push_body(&mut out, channel, &body, 1000);
        prop_assert_eq!(other(&out), (AMQPFrame::Body(channel, body), out));
    }
}

#[test]
fn a_heartbeat_is_equal() {
    let mut out = Vec::new();
    push_heartbeat(&mut out);
    assert_eq!(other(&out), (AMQPFrame::Heartbeat, out));
}
