//! Field tables and the values in them.

use imori_amqp091::codec::fields::FieldError;
use imori_amqp091::codec::push::{
    push_array_field, push_array_value, push_field, push_table_field, push_table_value, push_value,
};
use imori_amqp091::codec::table::{Array, FieldValue, Table};
use imori_amqp091::limits::NESTING_MAX;
use proptest::prelude::*;

/// A value that owns what is in it.
#[derive(Debug, Clone, PartialEq)]
enum Tree {
    Leaf(Leaf),
    Array(Vec<Tree>),
    Table(Vec<(Vec<u8>, Tree)>),
}

#[derive(Debug, Clone, PartialEq)]
enum Leaf {
    Number(u8, u64),
    Text(Vec<u8>),
    Bytes(Vec<u8>),
}

impl Leaf {
    fn value(&self) -> FieldValue<'_> {
        match self {
            Leaf::Text(bytes) => FieldValue::Text(bytes),
            Leaf::Bytes(bytes) => FieldValue::Bytes(bytes),
            Leaf::Number(kind, number) => match kind % 14 {
                0 => FieldValue::Bool(number % 2 == 1),
                1 => FieldValue::I8(*number as i8),
                2 => FieldValue::U8(*number as u8),
                3 => FieldValue::I16(*number as i16),
                4 => FieldValue::U16(*number as u16),
                5 => FieldValue::I32(*number as i32),
                6 => FieldValue::U32(*number as u32),
                7 => FieldValue::I64(*number as i64),
                8 => FieldValue::F32(*number as f32 / 3.0),
                9 => FieldValue::F64(*number as f64 / 3.0),
                10 => FieldValue::Decimal { scale: *number as u8, number: *number as u32 },
                11 => FieldValue::Timestamp(*number),
                _ => FieldValue::Void,
            },
        }
    }
}

impl Tree {
    fn push_as_value(&self, out: &mut Vec<u8>) {
        match self {
            Tree::Leaf(leaf) => push_value(out, leaf.value()),
            Tree::Array(values) => push_array_value(out, |out| push_values(out, values)),
            Tree::Table(fields) => push_table_value(out, |out| push_all(out, fields)),
        }
    }

    fn is(&self, value: FieldValue<'_>) -> bool {
        match (self, value) {
            (Tree::Leaf(leaf), value) => leaf.value() == value,
            (Tree::Array(values), FieldValue::Array(array)) => {
                array.iter().count() == values.len()
                    && values.iter().zip(array.iter()).all(|(tree, value)| tree.is(value))
            }
            (Tree::Table(fields), FieldValue::Table(table)) => is_all(fields, table),
            _ => false,
        }
    }
}

fn push_values(out: &mut Vec<u8>, values: &[Tree]) {
    values.iter().for_each(|value| value.push_as_value(out));
}

fn push_all(out: &mut Vec<u8>, fields: &[(Vec<u8>, Tree)]) {
    for (name, value) in fields {
        match value {
            Tree::Leaf(leaf) => push_field(out, name, leaf.value()),
            Tree::Array(values) => push_array_field(out, name, |out| push_values(out, values)),
            Tree::Table(fields) => push_table_field(out, name, |out| push_all(out, fields)),
        }
    }
}

fn is_all(fields: &[(Vec<u8>, Tree)], table: Table<'_>) -> bool {
    let mut read = table.iter();
    fields
        .iter()
        .all(|(name, tree)| read.next().is_some_and(|(known, value)| *known == **name && tree.is(value)))
        && read.next().is_none()
}

fn any_name() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..20)
}

fn any_fields() -> impl Strategy<Value = Vec<(Vec<u8>, Tree)>> {
    let leaf = prop_oneof![
        any::<(u8, u64)>().prop_map(|(kind, number)| Leaf::Number(kind, number)),
        any_name().prop_map(Leaf::Text),
        any_name().prop_map(Leaf::Bytes),
    ];
    let tree = leaf.prop_map(Tree::Leaf).prop_recursive(6, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Tree::Array),
            prop::collection::vec((any_name(), inner), 0..6).prop_map(Tree::Table),
        ]
    });
    prop::collection::vec((any_name(), tree), 0..8)
}

/// Looks at every value, however deep.
fn walk(table: Table<'_>) -> usize {
    fn of_value(value: FieldValue<'_>) -> usize {
        match value {
            FieldValue::Table(table) => 1 + walk(table),
            FieldValue::Array(array) => 1 + array.iter().map(of_value).sum::<usize>(),
            _ => 1,
        }
    }
    table.iter().map(|(_, value)| of_value(value)).sum()
}

/// The array in the only field of a table.
fn array(table: &[u8]) -> Array<'_> {
    let Some(FieldValue::Array(array)) = Table::new(table).unwrap().find("") else { panic!("{table:?}") };
    array
}

#[test]
fn every_type_of_rabbitmq_is_read() {
    for (bytes, expected) in [
        (&b"t\x01"[..], FieldValue::Bool(true)),
        (b"t\x00", FieldValue::Bool(false)),
        (b"t\x07", FieldValue::Bool(true)),
        (b"b\xff", FieldValue::I8(-1)),
        (b"B\xff", FieldValue::U8(255)),
        (b"s\xff\xfe", FieldValue::I16(-2)),
        (b"u\xff\xfe", FieldValue::U16(65534)),
        (b"I\xff\xff\xff\xff", FieldValue::I32(-1)),
        (b"i\xff\xff\xff\xff", FieldValue::U32(u32::MAX)),
        (b"l\xff\xff\xff\xff\xff\xff\xff\xff", FieldValue::I64(-1)),
        (b"L\xff\xff\xff\xff\xff\xff\xff\xff", FieldValue::I64(-1)),
        (b"f\x3f\x80\x00\x00", FieldValue::F32(1.0)),
        (b"d\xbf\xf0\x00\x00\x00\x00\x00\x00", FieldValue::F64(-1.0)),
        (b"D\x02\x00\x00\x01\x00", FieldValue::Decimal { scale: 2, number: 256 }),
        (b"T\x00\x00\x00\x00\x00\x00\x00\x09", FieldValue::Timestamp(9)),
        (b"S\x00\x00\x00\x02hi", FieldValue::Text(b"hi")),
        (b"x\x00\x00\x00\x01\x00", FieldValue::Bytes(b"\0")),
        (b"A\x00\x00\x00\x01V", FieldValue::Array(array(b"\0A\x00\x00\x00\x01V"))),
        (b"F\x00\x00\x00\x02\x00V", FieldValue::Table(Table::new(b"\0V").unwrap())),
        (b"V", FieldValue::Void),
    ] {
        let field = [b"\x01k", bytes].concat();
        let table = Table::new(&field).unwrap();
        assert_eq!(table.iter().collect::<Vec<_>>(), [(&b"k"[..], expected)], "{bytes:?}");
        assert_eq!(table.find("k"), Some(expected));
        assert_eq!(table.find("other"), None);
        for len in 1..field.len() {
            assert_eq!(Table::new(&field[..len]), Err(FieldError::TooShort), "{len} bytes of {bytes:?}");
        }
    }
}

#[test]
fn what_is_no_table_is_refused() {
    for (bytes, expected) in [
        (&b"\x01kU\x00\x01"[..], FieldError::UnknownType { octet: b'U' }),
        (b"\x01k\x00", FieldError::UnknownType { octet: 0 }),
        (b"\x05k", FieldError::TooShort),
        (b"\x01kS\xff\xff\xff\xff", FieldError::TooShort),
        (b"\x01kA\x00\x00\x00\x03V", FieldError::TooShort),
        (b"\x01kA\x00\x00\x00\x01S", FieldError::TooShort),
        (b"\x01kF\x00\x00\x00\x03\x05kV", FieldError::TooShort),
    ] {
        assert_eq!(Table::new(bytes), Err(expected), "{bytes:?}");
    }
    assert_eq!(Table::new(b""), Ok(Table::EMPTY));
}

/// A table in whose only field as many tables, or arrays, are in each other as make `depth` with it.
fn nested(depth: usize, has_names: bool) -> Vec<u8> {
    let mut inner = Vec::new();
    for _ in 1..depth {
        let mut outer = Vec::new();
        match has_names {
            true => push_table_field(&mut outer, b"", |out| out.extend_from_slice(&inner)),
            false => push_array_value(&mut outer, |out| out.extend_from_slice(&inner)),
        }
        inner = outer;
    }
    if has_names || depth == 1 { inner } else { [&b"\0"[..], &inner].concat() }
}

/// SECURITY LIM-09.
#[test]
fn deep_tables_are_refused_and_the_stack_stays_flat() {
    for has_names in [true, false] {
        assert!(Table::new(&nested(NESTING_MAX, has_names)).is_ok());
        for depth in [NESTING_MAX + 1, 10_000] {
            let bytes = nested(depth, has_names);
            assert_eq!(Table::new(&bytes), Err(FieldError::TooDeep), "{depth}");
        }
    }
}

proptest! {
    #[test]
    fn tables_read_as_they_were_written(fields in any_fields()) {
        let mut out = Vec::new();
        push_all(&mut out, &fields);
        let table = Table::new(&out).unwrap();
        prop_assert!(is_all(&fields, table), "{:?} is not {:?}", table, fields);
        if !fields.is_empty() {
            prop_assert!(Table::new(&out[..out.len() - 1]).is_err());
        }
    }

    #[test]
    fn any_bytes_are_a_table_or_an_error(
        bytes in prop::collection::vec(prop_oneof![Just(0_u8), Just(1), Just(b'F'), Just(b'A'), Just(b'V'), any::<u8>()], 0..120),
    ) {
        if let Ok(table) = Table::new(&bytes) {
            prop_assert!(walk(table) <= bytes.len());
            let mut again = Vec::new();
            for (name, value) in table.iter() {
                push_field(&mut again, name, value);
            }
            prop_assert_eq!(again.len(), bytes.len(), "all of it was walked");
        }
    }
}

#[test]
fn people_write_numbers_truth_and_text() {
    for (text, expected) in [
        ("-5", FieldValue::I64(-5)),
        ("true", FieldValue::Bool(true)),
        ("false", FieldValue::Bool(false)),
        ("quorum", FieldValue::Text(b"quorum")),
        ("1.5", FieldValue::Text(b"1.5")),
        ("", FieldValue::Text(b"")),
    ] {
        assert_eq!(FieldValue::written(text), expected);
    }
}
