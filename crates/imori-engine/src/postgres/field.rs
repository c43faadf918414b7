//! The values of columns as the server keeps them: texts that compare byte by byte as the values do.
//!
//! A text is kept as it is, so that operators can read it. Two characters that no name or time has make room for the
//! rest: U+0001 begins what is written otherwise. A number is U+0001 U+0001 and digits; the empty text, which comes after
//! all numbers, is U+0001 U+0002; U+0000, which the server does not take, is U+0001 U+0003, and U+0001 itself is
//! U+0001 U+0004.

use std::borrow::Cow;
use std::error::Error;

use bytes::{BufMut as _, BytesMut};
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

use crate::sql::Field;

impl ToSql for Field<'_> {
    fn to_sql(&self, kind: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Field::Int(number) if *kind == Type::INT8 => out.put_i64(*number),
            Field::Bytes(bytes) => out.put_slice(bytes),
            _ => match encode(*self) {
                Some(text) => out.put_slice(text.as_bytes()),
                None => return Ok(IsNull::Yes),
            },
        }
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

/// The text by which a value is kept; `None` for no value.
pub fn encode(field: Field<'_>) -> Option<Cow<'_, str>> {
    match field {
        Field::Text("") => Some(Cow::Borrowed("\u{1}\u{2}")),
        Field::Text(text) if text.contains(['\0', '\u{1}']) => {
            Some(Cow::Owned(text.replace('\u{1}', "\u{1}\u{4}").replace('\0', "\u{1}\u{3}")))
        }
        Field::Text(text) => Some(Cow::Borrowed(text)),
        Field::Int(number) => {
            // The nearest number that has 53 bits, then what is left.
            #[expect(clippy::cast_precision_loss, reason = "what is lost is added")]
            let near = number as f64;
            #[expect(clippy::cast_possible_truncation, reason = "it is whole and has 64 bits at most")]
            let rest = i128::from(number) - near as i128;
            Some(Cow::Owned(digits(near, rest)))
        }
        Field::Real(number) if number.is_nan() => None,
        Field::Real(number) => Some(Cow::Owned(digits(number, 0))),
        Field::Null | Field::Bytes(_) => None,
    }
}

/// The digits of a number; a greater number has greater digits.
fn digits(number: f64, rest: i128) -> String {
    // Zero has no sign.
    let bits = (number + 0.0).to_bits();
    let ordered = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
    format!("\u{1}\u{1}{ordered:016x}{:04x}", rest + 0x8000)
}

/// The text that is kept in this way.
pub fn decode(kept: &str) -> Cow<'_, str> {
    match kept {
        "\u{1}\u{2}" => Cow::Borrowed(""),
        kept if kept.contains('\u{1}') => {
            Cow::Owned(kept.replace("\u{1}\u{3}", "\0").replace("\u{1}\u{4}", "\u{1}"))
        }
        kept => Cow::Borrowed(kept),
    }
}
