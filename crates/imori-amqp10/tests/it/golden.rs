//! The lists and values of `golden.txt`, which another codec has written, are read and written by this one.

use std::collections::BTreeSet;

use imori_amqp10::codec::push::push_value;
use imori_amqp10::codec::value::Value;

use crate::composites::{again, shown};
use crate::table::{Composite, table};

const GOLDEN: &str = include_str!("golden.txt");

/// A row of the file.
struct Row {
    /// The value that the other codec has read, or the list.
    fields: &'static str,
    /// What the other codec has written, or read.
    bytes: Vec<u8>,
    /// What this codec writes.
    written: Vec<u8>,
}

impl Row {
    /// The list of the table that the row has; `None` if it has another value.
    fn composite<'a>(&self, table: &'a [Composite]) -> Option<&'a Composite> {
        table.iter().find(|composite| self.bytes.starts_with(&[0x00, 0x53, composite.code]))
    }

    fn assert_written(&self, written: &[u8]) {
        assert!(written == self.written, "{}: {}", self.fields, written.escape_ascii());
    }
}

fn rows() -> Vec<Row> {
    GOLDEN.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).map(row).collect()
}

fn row(line: &'static str) -> Row {
    let (fields, bytes) = line.rsplit_once(" = ").unwrap();
    let (bytes, written) = bytes.split_once(" -> ").unwrap_or((bytes, bytes));
    Row { fields, bytes: unhex(bytes), written: unhex(written) }
}

/// Bytes from hexadecimal digits, and from `62*400`.
fn unhex(text: &str) -> Vec<u8> {
    let octet = |digits: &str| u8::from_str_radix(digits, 16).unwrap();
    let word = |word: &str| match word.split_once('*') {
        Some((digits, count)) => vec![octet(digits); count.parse().unwrap()],
        None => (0..word.len()).step_by(2).map(|at| octet(&word[at..at + 2])).collect(),
    };
    text.split(' ').flat_map(word).collect()
}

#[test]
fn lists_are_those_of_another_codec() {
    let (table, rows) = (table(), rows());
    let mut names = BTreeSet::new();
    for row in &rows {
        let Some(composite) = row.composite(&table) else { continue };
        names.insert(composite.name);
        assert_eq!(shown(composite, &row.bytes), row.fields);
        row.assert_written(&again(composite, &row.bytes).unwrap());
        assert_eq!(shown(composite, &row.written), row.fields);
    }
    assert_eq!(names.len(), table.len());
}

#[test]
fn values_are_those_of_another_codec() {
    let table = table();
    let mut rows = rows();
    rows.retain(|row| row.composite(&table).is_none());
    assert_eq!(rows.len(), 241);
    for row in rows {
        for bytes in [&row.bytes, &row.written] {
            let (value, rest) = Value::decode(bytes).unwrap();
            assert_eq!((format!("{value:?}").as_str(), rest), (row.fields, &b""[..]));
            let mut written = Vec::new();
            push_value(&mut written, value);
            row.assert_written(&written);
        }
    }
}
