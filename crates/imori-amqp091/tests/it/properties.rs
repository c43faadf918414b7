//! The properties of a content.

use imori_amqp091::codec::error::DecodeError;
use imori_amqp091::codec::fields::FieldError;
use imori_amqp091::codec::properties::{BasicProperties, ContentHeader, TextProperty};
use imori_amqp091::codec::table::Table;
use proptest::prelude::*;

fn text(bytes: &Option<Vec<u8>>) -> Option<TextProperty<'_>> {
    bytes.as_deref().map(TextProperty::new)
}

/// Properties without the places where their texts stand.
fn values<'a>(properties: &BasicProperties<'a>) -> BasicProperties<'a> {
    let moved = |text: Option<TextProperty<'a>>| text.map(|text| TextProperty::new(text.bytes));
    BasicProperties {
        content_type: moved(properties.content_type),
        content_encoding: moved(properties.content_encoding),
        correlation_id: moved(properties.correlation_id),
        reply_to: moved(properties.reply_to),
        expiration: moved(properties.expiration),
        message_id: moved(properties.message_id),
        kind: moved(properties.kind),
        user_id: moved(properties.user_id),
        app_id: moved(properties.app_id),
        cluster_id: moved(properties.cluster_id),
        ..*properties
    }
}

fn all_texts<'a>(properties: &BasicProperties<'a>) -> impl Iterator<Item = TextProperty<'a>> {
    let texts = [
        properties.content_type,
        properties.content_encoding,
        properties.correlation_id,
        properties.reply_to,
        properties.expiration,
        properties.message_id,
        properties.kind,
        properties.user_id,
        properties.app_id,
        properties.cluster_id,
    ];
    texts.into_iter().flatten()
}

#[test]
fn properties_stand_in_the_order_of_their_flags() {
    let bytes = b"\xf8\x00\x02ct\x02ce\x00\x00\x00\x03\x01kV\x02\x09";
    let properties = BasicProperties::read(bytes).unwrap();
    assert_eq!(properties.content_type, Some(TextProperty { start: 3, bytes: b"ct" }));
    assert_eq!(properties.content_encoding, Some(TextProperty { start: 6, bytes: b"ce" }));
    assert_eq!(properties.headers.map(|headers| headers.iter().count()), Some(1));
    assert_eq!((properties.delivery_mode, properties.priority), (Some(2), Some(9)));
    let bytes = b"\x07\xfc\x01c\x01r\x01e\x01m\x00\x00\x00\x00\x00\x00\x00\x07\x01t\x01u\x01a\x01x";
    let properties = BasicProperties::read(bytes).unwrap();
    let texts: Vec<u8> = all_texts(&properties).map(|text| text.bytes[0]).collect();
    assert_eq!((texts, properties.timestamp), (b"cremtuax".to_vec(), Some(7)));
}

#[test]
fn what_are_no_properties_is_refused() {
    let content = DecodeError::Content;
    for (bytes, expected) in [
        (&b""[..], content(FieldError::TooShort)),
        (b"\x00", content(FieldError::TooShort)),
        (b"\x80\x00", content(FieldError::TooShort)),
        (b"\x80\x00\x02a", content(FieldError::TooShort)),
        (b"\x00\x00\x00", content(FieldError::TooLong)),
        (b"\x00\x01", DecodeError::PropertyFlags { flags: 1 }),
        (b"\x00\x02", DecodeError::PropertyFlags { flags: 2 }),
        (b"\x20\x00\x00\x00\x00\x02\x00U", content(FieldError::UnknownType { octet: b'U' })),
    ] {
        assert_eq!(BasicProperties::read(bytes), Err(expected), "{bytes:?}");
    }
    assert_eq!(BasicProperties::read(b"\0\0"), Ok(BasicProperties::default()));
}

#[test]
fn a_content_header_is_cut_off_and_no_more() {
    let payload = b"\x00\x3c\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff\x80\x00\x01a";
    let header = ContentHeader::decode(payload).unwrap();
    assert_eq!(header, ContentHeader { body_len: u64::MAX, properties: b"\x80\x00\x01a" });
    for len in 0..12 {
        assert_eq!(ContentHeader::decode(&payload[..len]), Err(DecodeError::Content(FieldError::TooShort)));
    }
    let other = b"\x00\x0a\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00";
    assert_eq!(ContentHeader::decode(other), Err(DecodeError::ContentClass { class: 10 }));
}

proptest! {
    #[test]
    fn properties_read_as_they_were_written(
        texts in prop::collection::vec(prop::option::of(prop::collection::vec(any::<u8>(), 0..256)), 10),
        numbers in any::<(Option<u8>, Option<u8>, Option<u64>, bool)>(),
    ) {
        let headers = Table::new(b"\x01ks\x00\x01\x01oV").unwrap();
        let properties = BasicProperties {
            content_type: text(&texts[0]),
            content_encoding: text(&texts[1]),
            headers: numbers.3.then_some(headers),
            delivery_mode: numbers.0,
            priority: numbers.1,
            correlation_id: text(&texts[2]),
            reply_to: text(&texts[3]),
            expiration: text(&texts[4]),
            message_id: text(&texts[5]),
            timestamp: numbers.2,
            kind: text(&texts[6]),
            user_id: text(&texts[7]),
            app_id: text(&texts[8]),
            cluster_id: text(&texts[9]),
        };
        let mut out = Vec::new();
        properties.push(&mut out);
        let read = BasicProperties::read(&out).unwrap();
        prop_assert_eq!(values(&read), properties);
        for text in all_texts(&read) {
            prop_assert_eq!(&out[text.start..text.start + text.bytes.len()], text.bytes);
        }
        for len in 0..out.len() {
            prop_assert!(BasicProperties::read(&out[..len]).is_err());
        }
    }

    #[test]
    fn any_bytes_are_properties_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        if let Ok(properties) = BasicProperties::read(&bytes) {
            let mut out = Vec::new();
            properties.push(&mut out);
            prop_assert_eq!(out, bytes);
        }
    }
}
