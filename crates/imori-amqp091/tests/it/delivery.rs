//! Deliveries, confirms and goodbyes as frames.

use std::sync::Arc;

use imori_amqp091::SOLE_ORIGINS;
use imori_amqp091::codec::frame::{Step, decode};
use imori_amqp091::codec::methods::{Method, basic};
use imori_amqp091::codec::properties::{BasicProperties, ContentHeader, TextProperty};
use imori_amqp091::codec::push::push_field;
use imori_amqp091::codec::table::{FieldValue, Table};
use imori_amqp091::delivery::{DeliveryEncoder, consumer_label};
use imori_amqp091::for_tests::BASIC;
use imori_amqp091::settings::Settings;
use imori_core::delivery::{About, Delivery};
use imori_core::message::{
    Address, AddressView, DeathReason, Deaths, MessageView, OriginId, Properties, Property, Span,
};
use imori_core::name::Name;
use imori_core::outbound::{AfterCancel, Confirmed, CutReason, Encoder, Recipient, SessionId, SharedHeaders};
use imori_core::time::Time;

fn encoder() -> DeliveryEncoder {
    DeliveryEncoder::new(4096, true, &Settings::default())
}

/// Splits a delivery into frames; returns channel and payload of each.
fn frames(mut bytes: &[u8]) -> Vec<(u16, &[u8])> {
    let mut frames = Vec::new();
    while let Ok(Step::Frame(frame)) = decode(bytes, 4096) {
        frames.push((frame.channel, frame.payload));
        bytes = &bytes[frame.len()..];
    }
    assert_eq!(bytes, b"", "all frames are whole");
    frames
}

fn delivered(message: MessageView<'_>, address: &Arc<Address>, deaths: Option<&Arc<Deaths>>) -> Vec<u8> {
    let address = AddressView::new(address);
    let delivery =
        Delivery { is_redelivered: true, sequence: 1, ..About { address: &address, deaths }.fresh(message) };
    let label = consumer_label(7, "tag");
    let recipient = Recipient { session: SessionId(7), label: &label, number: 5, settles: true };
    let mut alone = Vec::new();
    encoder().deliver(&mut alone, &recipient, &delivery, &mut SharedHeaders::for_receivers(1));
    // The shared part must fit every channel.
    let mut shared = SharedHeaders::for_receivers(2);
    let other = Recipient { session: SessionId(9), ..recipient };
    encoder().deliver(&mut Vec::new(), &other, &delivery, &mut shared);
    let mut again = Vec::new();
    encoder().deliver(&mut again, &recipient, &delivery, &mut shared);
    assert_eq!(again, alone);
    alone
}

#[test]
fn the_block_of_an_amqp_client_goes_on_as_it_is() {
    let properties = Properties::new(SOLE_ORIGINS.origin(BASIC));
    let text = b"\x80\x00\x02ct";
    let body = vec![b'x'; 5000];
    let address = Arc::new(Address::new(b"exchange", b"key"));
    let bytes = delivered(MessageView { properties: &properties, text, body: &body }, &address, None);
    let frames = frames(&bytes);
    assert!(frames.iter().all(|(channel, _)| *channel == 7));
    let expected = basic::Deliver {
        consumer_tag: "tag",
        delivery_tag: 5,
        redelivered: true,
        exchange: "exchange",
        routing_key: "key",
    };
    assert_eq!(Method::decode(frames[0].1), Ok(Method::BasicDeliver(expected)));
    assert_eq!(ContentHeader::decode(frames[1].1), Ok(ContentHeader { body_len: 5000, properties: text }));
    assert_eq!(frames[2..].iter().map(|(_, part)| part.len()).collect::<Vec<_>>(), [4088, 912]);
}

#[test]
fn a_message_of_another_protocol_is_written_anew() {
    let mut properties = Properties::new(OriginId::BROKER);
    let text = [b"text/plain".to_vec(), vec![b'c'; 300]].concat();
    properties.set(Property::ContentType, Span::new(0, 10).unwrap());
    properties.set(Property::CorrelationId, Span::new(10, 300).unwrap());
    properties.is_persistent = true;
    properties.expiration_ms = Some(5000);
    let address = Arc::new(Address::new(b"amq.topic", &[b'k'; 300]));
    let bytes = delivered(MessageView { properties: &properties, text: &text, body: b"" }, &address, None);
    let frames = frames(&bytes);
    let header = ContentHeader::decode(frames[1].1).unwrap();
    let basic = BasicProperties::read(header.properties).unwrap();
    assert_eq!(basic.content_type.map(|text| text.bytes), Some(&b"text/plain"[..]));
    assert_eq!((basic.correlation_id, basic.delivery_mode), (None, Some(2)));
    assert_eq!(basic.expiration.map(|text| text.bytes), Some(&b"5000"[..]));
    let headers = basic.headers.unwrap();
    assert_eq!(headers.find("correlation-id"), Some(FieldValue::Text(&[b'c'; 300])));
    assert_eq!(headers.find("x-imori-subject"), Some(FieldValue::Text(&[b'k'; 300])));
    let Ok(Method::BasicDeliver(deliver)) = Method::decode(frames[0].1) else { panic!("{frames:?}") };
    assert_eq!(deliver.routing_key.len(), 255);
}

#[test]
fn a_dead_letter_tells_its_history() {
    let properties = Properties::new(SOLE_ORIGINS.origin(BASIC));
    let mut own = Vec::new();
    push_field(&mut own, b"mine", FieldValue::Bool(true));
    push_field(&mut own, b"x-death", FieldValue::Text(b"forged"));
    let mut text = Vec::new();
    let basic = BasicProperties {
        headers: Table::new(&own).ok(),
        expiration: Some(TextProperty::new(b"1")),
        ..BasicProperties::default()
    };
    basic.push(&mut text);
    let address = Arc::new(Address::new(b"x", b"k"));
    let reason = DeathReason::Expired;
    let deaths = Deaths::default().and(&Name::from("q"), reason, &address, Time(7_000_000));
    let message = MessageView { properties: &properties, text: &text, body: b"" };
    let bytes = delivered(message, &address, Some(&Arc::new(deaths)));
    let header = ContentHeader::decode(frames(&bytes)[1].1).unwrap();
    let read = BasicProperties::read(header.properties).unwrap();
    assert_eq!(read.expiration, None);
    let headers = read.headers.unwrap();
    assert_eq!(headers.find("mine"), Some(FieldValue::Bool(true)));
    assert_eq!(headers.find("x-first-death-queue"), Some(FieldValue::Text(b"q")));
    assert_eq!(headers.find("x-last-death-reason"), Some(FieldValue::Text(b"expired")));
    let Some(FieldValue::Array(list)) = headers.find("x-death") else { panic!("{headers:?}") };
    let Some(FieldValue::Table(death)) = list.iter().next() else { panic!("{list:?}") };
    assert_eq!(death.find("count"), Some(FieldValue::I64(1)));
    assert_eq!(death.find("time"), Some(FieldValue::Timestamp(7)));
    assert_eq!(death.find("exchange"), Some(FieldValue::Text(b"x")));
}

#[test]
fn confirms_and_goodbyes_are_methods() {
    let mut out = Vec::new();
    let confirmed =
        Confirmed { session: SessionId(3), first: 7, last: 9, is_in_order: true, is_refused: false };
    encoder().confirmed(&mut out, confirmed);
    encoder().confirmed(&mut out, Confirmed { is_refused: true, ..confirmed });
    assert_eq!(encoder().cancelled(&mut out, &consumer_label(4, "tag"), &Name::from("q")), AfterCancel::GoOn);
    encoder().cut(&mut out, &CutReason::ShuttingDown);
    let frames = frames(&out);
    let methods: Vec<_> =
        frames.iter().map(|(channel, payload)| (*channel, Method::decode(payload).unwrap())).collect();
    assert_eq!(
        methods[..3],
        [
            (3, Method::BasicAck(basic::Ack { delivery_tag: 9, multiple: true })),
            (3, Method::BasicNack(basic::Nack { delivery_tag: 9, multiple: true, requeue: false })),
            (4, Method::BasicCancel(basic::Cancel { consumer_tag: "tag", no_wait: true })),
        ]
    );
    let Method::ConnectionClose(close) = methods[3].1 else { panic!("{methods:?}") };
    assert_eq!((close.reply_code, &close.reply_text[..20]), (320, "CONNECTION_FORCED - "));
    let mut out = Vec::new();
    let reason = "reason ".repeat(99).into();
    encoder().cut(&mut out, &CutReason::ClosedByOperator { reason });
    let Ok(Method::ConnectionClose(close)) = Method::decode(&out[7..out.len() - 1]) else {
        panic!("{out:?}")
    };
    assert_eq!((close.reply_code, close.reply_text.len()), (320, 255), "as much as a short string holds");
    assert!(close.reply_text.starts_with("CONNECTION_FORCED - reason reason"), "{}", close.reply_text);
    let mut silent = Vec::new();
    let unaware = DeliveryEncoder::new(4096, false, &Settings::default());
    { unaware }.cancelled(&mut silent, &consumer_label(4, "tag"), &Name::from("q"));
    assert_eq!(silent, b"", "who does not know of it is not told");
}
