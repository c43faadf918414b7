//! Every method in the table is read and written correctly.

use imori_amqp091::codec::error::DecodeError;
use imori_amqp091::codec::fields::FieldError;
use imori_amqp091::codec::method::MethodId;
use imori_amqp091::codec::methods::Method;
use proptest::prelude::*;

use crate::spec::{payload, table};

#[test]
fn every_method_of_the_table_is_there_and_has_its_name() {
    let table = table();
    assert_eq!(table.len(), 64);
    for (id, name, fields) in table {
        assert_eq!(id.name(), name);
        let payload = payload(id, &fields, &[1]);
        let method = Method::decode(&payload).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(method.id(), id);
    }
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
    // The table has seven bytes, but its length says six.
    assert!(Method::decode(payload).is_err());
    let payload = b"\x00\x32\x00\x0a\x00\x00\x01q\x06\x00\x00\x00\x07\x01xI\x00\x00\x00\x07";
    let Ok(Method::QueueDeclare(declare)) = Method::decode(payload) else { panic!("{payload:?}") };
    assert_eq!((declare.queue, declare.passive, declare.durable), ("q", false, true));
    assert_eq!((declare.exclusive, declare.auto_delete, declare.no_wait), (true, false, false));
    assert_eq!(format!("{:?}", declare.arguments), r#"{"x": I32(7)}"#);
}

proptest! {
    #[test]
    fn what_is_read_is_written_byte_for_byte(
        method in any::<prop::sample::Index>(),
        bytes in prop::collection::vec(any::<u8>(), 1..64),
    ) {
        let table = table();
        let (id, name, fields) = &table[method.index(table.len())];
        let payload = payload(*id, fields, &bytes);
        let method = Method::decode(&payload).unwrap();
        let mut written = payload[..4].to_vec();
        method.push_fields(&mut written);
        prop_assert_eq!(&written, &payload, "{}", name);
        for len in 4..payload.len() {
            let error = FieldError::TooShort;
            prop_assert_eq!(Method::decode(&payload[..len]), Err(DecodeError::Method { id: *id, error }));
        }
        let longer = [&payload[..], &[0]].concat();
        let error = FieldError::TooLong;
        prop_assert_eq!(Method::decode(&longer), Err(DecodeError::Method { id: *id, error }));
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
