//! Every described list in the table is read and written correctly.

use std::fmt::Debug;

use imori_amqp10::codec::composites::{
    AnyTarget, Coordination, DeliveryState, Error, Header, Performative, Properties, SaslFrame, Source,
};
use imori_amqp10::codec::error::{DecodeError, ValueError};
use imori_amqp10::codec::field::Field;
use imori_amqp10::codec::input::Input;
use proptest::prelude::*;

use crate::table::{Choice, Composite, described, mandatory_alone, sample, table};

/// Decodes a list, by the enum that contains it if there is one, and encodes it again.
pub(crate) fn again(composite: &Composite, bytes: &[u8]) -> Result<Vec<u8>, DecodeError> {
    Ok(read_and_write(composite, bytes)?.1)
}

/// The fields of a list, as `Debug` shows them.
pub(crate) fn shown(composite: &Composite, bytes: &[u8]) -> String {
    read_and_write(composite, bytes).unwrap().0
}

/// A list as `Debug` shows it, and encoded again.
fn read_and_write(composite: &Composite, bytes: &[u8]) -> Result<(String, Vec<u8>), DecodeError> {
    Ok(match composite.code {
        0x10..=0x18 => {
            let (performative, payload) = Performative::decode(bytes)?;
            assert_eq!(payload, b"");
            write(&performative)
        }
        0x40..=0x44 => write(&SaslFrame::decode(bytes)?),
        0x31 | 0x32 => write(&Coordination::decode(bytes)?),
        0x70 => write(&read::<Header>(bytes)?),
        0x73 => write(&read::<Properties<'_>>(bytes)?),
        0x1d => write(&read::<Error<'_>>(bytes)?),
        0x28 => write(&read::<Source<'_>>(bytes)?),
        0x29 | 0x30 => write(&read::<AnyTarget<'_>>(bytes)?),
        _ => write(&read::<DeliveryState<'_>>(bytes)?),
    })
}

fn read<'a, F: Field<'a>>(bytes: &'a [u8]) -> Result<F, DecodeError> {
    let (octet, rest) = bytes.split_first().ok_or(DecodeError::Value(ValueError::TooShort))?;
    F::read(*octet, &mut Input::new(rest))
}

fn write<'a, F: Field<'a> + Debug>(field: &F) -> (String, Vec<u8>) {
    let mut out = Vec::new();
    field.push(&mut out);
    (format!("{field:?}"), out)
}

#[test]
fn the_table_has_every_list_of_the_specification() {
    let table = table();
    assert_eq!(table.len(), 29);
    for composite in table {
        let name: String = composite
            .name
            .char_indices()
            .map(|(at, char)| match char.is_uppercase() {
                true if at > 0 => format!("-{}", char.to_ascii_lowercase()),
                _ => char.to_ascii_lowercase().to_string(),
            })
            .collect();
        assert_eq!(composite.symbol, format!("amqp:{name}:list"));
    }
}

#[test]
fn a_mandatory_field_that_is_null_or_left_out_is_named() {
    for composite in &table() {
        let is_mandatory = |at: &usize| composite.fields[*at].is_mandatory;
        for at in (0..composite.fields.len()).filter(is_mandatory) {
            let mut fields = mandatory_alone(composite);
            let error = DecodeError::Field {
                composite: composite.name,
                field: composite.fields[at].name,
                error: ValueError::Missing,
            };
            let left_out = described(composite.code, &fields[..at]);
            assert_eq!(again(composite, &left_out), Err(error), "{composite:?}");
            fields[at] = vec![0x40];
            let null = described(composite.code, &fields);
            assert_eq!(again(composite, &null), Err(error), "{composite:?}");
        }
    }
}

#[test]
fn a_field_of_another_type_is_named() {
    // The handle of a transfer is a string, as is the durability of a source in an `attach`.
    let rows: [(&[u8], &str); 3] = [
        (
            b"\x00\x53\x14\xc0\x04\x01\xa1\x01h",
            "field `handle` of `transfer` is wrong: it is of type `string`; send `uint`",
        ),
        (
            b"\x00\x53\x12\xc0\x12\x06\xa1\x01l\x43\x41\x40\x40\x00\x53\x28\xc0\x05\x02\x40\xa1\x01d",
            "field `durable` of `source` is wrong: it is of type `string`; send `uint`",
        ),
        (
            b"\x00\x53\x10\xc0\x08\x01\xa1\x01c\xa1\x02xy",
            "`open` is wrong: bytes are left behind the last value",
        ),
    ];
    for (bytes, text) in rows {
        assert_eq!(Performative::decode(bytes).unwrap_err().to_string(), text);
    }
}

proptest! {
    #[test]
    fn what_is_read_is_written_byte_for_byte(
        index in any::<prop::sample::Index>(),
        bytes in prop::collection::vec(any::<u8>(), 1..64),
    ) {
        let table = table();
        let composite = &table[index.index(table.len())];
        let list = sample(composite, &mut Choice::of(&bytes));
        let written = again(composite, &list);
        prop_assert_eq!(written.map(|bytes| bytes.escape_ascii().to_string()), Ok(list.escape_ascii().to_string()));
    }

    #[test]
    fn a_descriptor_may_be_a_symbol_or_a_long_number(
        index in any::<prop::sample::Index>(),
        bytes in prop::collection::vec(any::<u8>(), 1..64),
    ) {
        let table = table();
        let composite = &table[index.index(table.len())];
        let list = sample(composite, &mut Choice::of(&bytes));
        let symbol = [&[0x00, 0xa3, composite.symbol.len() as u8][..], composite.symbol.as_bytes(), &list[3..]].concat();
        let long = [&[0x00, 0x80, 0, 0, 0, 0, 0, 0, 0, composite.code][..], &list[3..]].concat();
        prop_assert_eq!(again(composite, &symbol), Ok(list.clone()));
        prop_assert_eq!(again(composite, &long), Ok(list));
    }

    #[test]
    fn a_prefix_is_an_error_and_so_is_one_field_more(
        index in any::<prop::sample::Index>(),
        bytes in prop::collection::vec(any::<u8>(), 1..64),
    ) {
        let table = table();
        let composite = &table[index.index(table.len())];
        let list = sample(composite, &mut Choice::of(&bytes));
        for len in 0..list.len() {
            prop_assert!(again(composite, &list[..len]).is_err(), "{len}");
        }
        let mut fields = mandatory_alone(composite);
        fields.push(vec![0x41]);
        let error = DecodeError::Composite { composite: composite.name, error: ValueError::TooManyFields };
        prop_assert_eq!(again(composite, &described(composite.code, &fields)), Err(error));
    }

    #[test]
    fn any_bytes_are_a_performative_or_an_error(
        code in 0x0f..0x1e_u8,
        count in 0..16_u8,
        bytes in prop::collection::vec(any::<u8>(), 0..64),
    ) {
        let body = [&[0x00, 0x53, code, 0xc0, bytes.len() as u8 + 1, count][..], &bytes].concat();
        if let Ok((performative, _)) = Performative::decode(&body) {
            let mut written = Vec::new();
            performative.encode(&mut written);
            prop_assert_eq!(Performative::decode(&written), Ok((performative, &b""[..])));
        }
    }
}
