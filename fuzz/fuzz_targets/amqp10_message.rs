//! Any bytes as a message of AMQP 1.0, read as one that comes in and written as one that goes out.
//!
//! Held: all from the message annotations on goes out as the same bytes, in frames of any size; of a dead letter all
//! behind them does. The header keeps what the publisher says in it. Properties have the texts of their section. A
//! message that was written reads the same.
//! The first byte of the input decides the size of frames, and whether the message died.

use std::sync::Arc;

use imori_amqp10::codec::composites::{Header, Performative, Properties as OwnProperties};
use imori_amqp10::codec::frame::{Step, decode};
use imori_amqp10::codec::restricted::MessageId;
use imori_amqp10::codec::sections::{Section, Sections};
use imori_amqp10::delivery::DeliveryEncoder;
use imori_amqp10::message::{Incoming, read};
use imori_amqp10::settings::Settings;
use imori_amqp10::{SOLE_ORIGINS, header_reader};
use imori_core::delivery::Delivery;
use imori_core::message::{Address, AddressView, DeathReason, Deaths, MessageView, Property};
use imori_core::name::Name;
use imori_core::outbound::{Encoder, Recipient, SessionId, SharedHeaders};
use imori_core::time::Time;

use crate::planted::fail_if_planted;

const USER: &[u8] = b"guest";

/// Runs one input.
pub(crate) fn test_one_input(data: &[u8]) {
    let [choice, payload @ ..] = data else { return };
    let incoming = match read(payload, SOLE_ORIGINS, USER) {
        Ok(incoming) => incoming,
        Err(error) => {
            assert!(!error.text().contains(char::is_control), "it is one line");
            return;
        }
    };
    let came = Parts::of(payload);
    planted(came.properties.message_id.is_some());
    look_at_properties(&incoming, &came.properties);
    let frame_bytes_max = 512 << (choice % 4);
    let went = written(&incoming, frame_bytes_max, None);
    let gone = Parts::of(&went);
    assert_eq!(gone.kept, came.kept, "the sections that are the message's own are the same bytes");
    assert_eq!(
        gone.header,
        Header {
            first_acquirer: Some(came.header.first_acquirer != Some(false)),
            delivery_count: 0,
            ..came.header
        },
        "the header is the publisher's, but for what the broker counts"
    );
    let again = read(&went, SOLE_ORIGINS, USER).expect("a message that was written can be read");
    assert_eq!((&again.text, again.body, again.to), (&incoming.text, incoming.body, incoming.to));
    assert_eq!(again.properties, incoming.properties);
    if choice & 4 != 0 {
        let address = Arc::new(Address::new(b"", b"q"));
        let deaths = Deaths::default().and(&Name::from("q"), DeathReason::Expired, &address, Time(7));
        let dead = written(&incoming, frame_bytes_max, Some(&Arc::new(deaths)));
        let dead = Parts::of(&dead);
        assert_eq!(dead.bare, came.bare, "the bare message of a dead letter is the same bytes");
        assert_eq!(dead.header.ttl, None, "a message that died does not expire again");
    }
}

/// A payload by what its sections are for.
struct Parts<'a> {
    header: Header,
    properties: OwnProperties<'a>,
    /// All from the message annotations on.
    kept: &'a [u8],
    /// All behind the message annotations.
    bare: &'a [u8],
}

impl<'a> Parts<'a> {
    fn of(payload: &'a [u8]) -> Parts<'a> {
        let mut parts = Parts {
            header: Header::default(),
            properties: OwnProperties::default(),
            kept: payload,
            bare: payload,
        };
        let mut sections = Sections::new(payload);
        while let Some(section) = sections.next_section().expect("its sections are right") {
            match section {
                Section::Header(header) => parts.header = header,
                Section::DeliveryAnnotations(_) => {}
                Section::MessageAnnotations(_) => {
                    parts.bare = sections.rest();
                    continue;
                }
                Section::Properties(properties) => {
                    parts.properties = properties;
                    continue;
                }
                _ => continue,
            }
            (parts.kept, parts.bare) = (sections.rest(), sections.rest());
        }
        parts
    }
}

/// The broker sees the texts that stand in the section.
fn look_at_properties(incoming: &Incoming<'_>, own: &OwnProperties<'_>) {
    let Incoming { properties, text, body, .. } = incoming;
    let view = MessageView { properties, text, body };
    let text_of = |id: Option<MessageId<'_>>| match id {
        Some(MessageId::String(text)) => Some(text.as_bytes().to_vec()),
        Some(MessageId::Binary(bytes)) => Some(bytes.to_vec()),
        Some(MessageId::Ulong(number)) => Some(number.to_string().into_bytes()),
        // Its text begins with a prefix, which is not looked at here.
        Some(MessageId::Uuid(_)) => None,
        None => Some(Vec::new()),
    };
    let plain = |text: Option<&str>| Some(text.unwrap_or_default().as_bytes().to_vec());
    for (property, expected) in [
        (Property::MessageId, text_of(own.message_id)),
        (Property::CorrelationId, text_of(own.correlation_id)),
        (Property::UserId, Some(own.user_id.unwrap_or_default().to_vec())),
        (Property::Type, plain(own.subject)),
        (Property::ReplyTo, plain(own.reply_to)),
        (Property::ContentType, plain(own.content_type.map(|symbol| symbol.0))),
        (Property::ContentEncoding, plain(own.content_encoding.map(|symbol| symbol.0))),
        (Property::GroupId, plain(own.group_id)),
    ] {
        let found = view.property(property).unwrap_or_default();
        assert!(expected.is_none_or(|expected| expected == found), "{property:?}");
    }
}

/// The payload of a delivery, put together from its transfers.
fn written(incoming: &Incoming<'_>, frame_bytes_max: u32, deaths: Option<&Arc<Deaths>>) -> Vec<u8> {
    let Incoming { properties, text, body, .. } = incoming;
    let address = Arc::new(Address::new(b"", b"q"));
    let delivery = Delivery {
        shared_body: None,
        message: MessageView { properties, text, body },
        address: &AddressView::new(&address),
        deaths,
        sequence: 1,
        failures: 0,
        is_redelivered: false,
        is_last: true,
        is_of_stream: false,
    };
    let settings = Settings { header_readers: header_reader, ..Settings::default() };
    let recipient = Recipient { session: SessionId(1), label: &[0; 6], number: 1, settles: true };
    let (mut out, mut payload) = (Vec::new(), Vec::new());
    let mut encoder = DeliveryEncoder::new(frame_bytes_max, &settings);
    encoder.deliver(&mut out, &recipient, &delivery, &mut SharedHeaders::for_receivers(1));
    let mut rest = &out[..];
    while !rest.is_empty() {
        let Ok(Step::Frame(frame)) = decode(rest, frame_bytes_max as usize) else {
            panic!("no frame: {}", rest.escape_ascii())
        };
        rest = &rest[frame.len..];
        let Ok((Performative::Transfer(transfer), part)) = Performative::decode(frame.body) else {
            panic!("no transfer: {}", frame.body.escape_ascii())
        };
        assert_eq!(transfer.more, !rest.is_empty(), "the last transfer says so");
        payload.extend_from_slice(part);
    }
    payload
}

/// Does nothing unless a fault is planted: then a message with an id is one too many.
fn planted(is_found: bool) {
    fail_if_planted(is_found);
}
