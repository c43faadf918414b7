//! Every method of the specification's list, from bytes and to bytes.

use imori_amqp091::codec::error::DecodeError;
use imori_amqp091::codec::fields::{FieldError, Fields};
use imori_amqp091::codec::method::MethodId;
use imori_amqp091::codec::methods::Method;
use imori_amqp091::codec::table::Table;
use proptest::prelude::*;

use crate::named_fields::named_fields;
use crate::spec::{payload, table};

#[test]
fn every_method_of_the_list_is_there_and_has_its_name() {
    let table = table();
    assert_eq!(table.len(), 64);
    for (id, name, fields) in table {
        assert_eq!(id.name(), name);
        let payload = payload(id, &fields, &[1]);
        let method = Method::decode(&payload).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(method.id(), id);
    }
}

/// A method as `Debug` has to show it: the fields that are not reserved, by their names and in their order.
fn shown(method: &str, fields: &[&str], payload: &[u8]) -> String {
    let mut read = Fields::new(payload);
    MethodId::read(&mut read).unwrap();
    let (mut bits, mut bit, mut values) = (0, 8, Vec::new());
    for field in fields {
        let (kind, name) = field.split_once(':').unwrap();
        if kind == "bit" && bit == 8 {
            (bits, bit) = (read.octet().unwrap(), 0);
        }
        let value = match kind {
            "bit" => (bits >> bit & 1 == 1).to_string(),
            "octet" => read.octet().unwrap().to_string(),
            "short" => read.short().unwrap().to_string(),
            "long" => read.long().unwrap().to_string(),
            "longlong" => read.longlong().unwrap().to_string(),
            "shortstr" => format!("{:?}", read.short_str().unwrap()),
            "longstr" => format!("{:?}", read.long_str().unwrap()),
            "table" => format!("{:?}", Table::read(&mut read).unwrap()),
            other => panic!("{other}"),
        };
        bit = if kind == "bit" { bit + 1 } else { 8 };
        match name {
            "-" => {}
            // Rust reserves the word.
            "type" => values.push(format!("kind: {value}")),
            name => values.push(format!("{}: {value}", name.replace('-', "_"))),
        }
    }
    let camel = |text: &str| -> String {
        text.split('-').map(|word| word[..1].to_uppercase() + &word[1..]).collect()
    };
    let (class, method) = method.split_once('.').unwrap();
    let values = if values.is_empty() { String::new() } else { format!(" {{ {} }}", values.join(", ")) };
    format!("{}{}({}{values})", camel(class), camel(method), camel(method))
}

#[test]
fn each_field_has_the_name_and_the_place_of_the_list() {
    const VALUE_BYTES_MAX: usize = 32;
    for ((id, name, named), (_, _, fields)) in named_fields().into_iter().zip(table()) {
        // Each byte that is a value differs from all others once.
        for place in 0..VALUE_BYTES_MAX {
            let mut bytes = [0; VALUE_BYTES_MAX];
            bytes[place] = 1;
            let payload = payload(id, &fields, &bytes);
            assert_eq!(format!("{:?}", Method::decode(&payload).unwrap()), shown(&name, &named, &payload));
        }
    }
}

#[test]
fn bits_that_no_field_has_are_ignored() {
    let payload = b"\x00\x3c\x00\x78\x00\x00\x00\x00\x00\x00\x00\x07\xfe";
    let Ok(Method::BasicNack(nack)) = Method::decode(payload) else { panic!("{payload:?}") };
    assert_eq!((nack.delivery_tag, nack.multiple, nack.requeue), (7, false, true));
    let payload = b"\x00\x0a\x00\x28\x01/\x00\xff";
    let Ok(Method::ConnectionOpen(open)) = Method::decode(payload) else { panic!("{payload:?}") };
    let mut written = Vec::new();
    Method::ConnectionOpen(open).push_fields(&mut written);
    assert_eq!(written, b"\x01/\x00\x00");
}

#[test]
fn other_methods_are_unknown() {
    let known: Vec<MethodId> = table().into_iter().map(|(id, ..)| id).collect();
    for class in 0..100 {
        for method in 0..130 {
            let id = MethodId { class, method };
            if !known.contains(&id) {
                let payload = [class.to_be_bytes(), method.to_be_bytes()].concat();
                assert_eq!(Method::decode(&payload), Err(DecodeError::UnknownMethod(id)));
                assert_eq!(id.name(), "none");
            }
        }
    }
    for len in 0..4 {
        assert_eq!(Method::decode(&[0, 10, 0][..len.min(3)]), Err(DecodeError::NoMethod));
    }
}

#[test]
fn a_name_that_is_not_utf8_is_refused() {
    let id = MethodId { class: 50, method: 30 };
    let payload = b"\x00\x32\x00\x1e\x00\x00\x01\xff\x00";
    assert_eq!(Method::decode(payload), Err(DecodeError::Method { id, error: FieldError::NotUtf8 }));
}

#[test]
fn a_declaration_reads_as_it_was_sent() {
    let payload = b"\x00\x32\x00\x0a\x00\x00\x01q\x06\x00\x00\x00\x06\x01xI\x00\x00\x00\x07";
    // The table has seven bytes and says six.
    assert!(Method::decode(payload).is_err());
    let payload = b"\x00\x32\x00\x0a\x00\x00\x01q\x06\x00\x00\x00\x07\x01xI\x00\x00\x00\x07";
    let Ok(Method::QueueDeclare(declare)) = Method::decode(payload) else { panic!("{payload:?}") };
    assert_eq!((declare.queue, declare.passive, declare.durable), ("q", false, true));
    assert_eq!((declare.exclusive, declare.auto_delete, declare.no_wait), (true, false, false));
    assert_eq!(format!("{:?}", declare.arguments), r#"{"x": I32(7)}"#);
}

proptest! {
    #[test]
    fn what_is_read_is_written_byte_for_byte(bytes in prop::collection::vec(any::<u8>(), 1..64)) {
        for (id, name, fields) in table() {
            let payload = payload(id, &fields, &bytes);
            let method = Method::decode(&payload).unwrap();
            let mut written = payload[..4].to_vec();
            method.push_fields(&mut written);
            prop_assert_eq!(&written, &payload, "{}", name);
            for len in 4..payload.len() {
                let error = FieldError::TooShort;
                prop_assert_eq!(Method::decode(&payload[..len]), Err(DecodeError::Method { id, error }));
            }
            let longer = [&payload[..], &[0]].concat();
            let error = FieldError::TooLong;
            prop_assert_eq!(Method::decode(&longer), Err(DecodeError::Method { id, error }));
        }
    }

    #[test]
    fn any_bytes_are_a_method_or_an_error(
        method in any::<prop::sample::Index>(),
        bytes in prop::collection::vec(any::<u8>(), 0..64),
    ) {
        let table = table();
        let (id, ..) = &table[method.index(table.len())];
        let payload = [&id.class.to_be_bytes()[..], &id.method.to_be_bytes(), &bytes].concat();
        if let Ok(method) = Method::decode(&payload) {
            let mut written = payload[..4].to_vec();
            method.push_fields(&mut written);
            prop_assert_eq!(Method::decode(&written), Ok(method));
        }
    }
}
