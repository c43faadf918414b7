//! The types of each method's fields, and payloads made of them.

use imori_amqp091::codec::method::MethodId;

use crate::named_fields::named_fields;

/// Every method with its name and the types of its fields.
pub(crate) fn table() -> Vec<(MethodId, String, Vec<&'static str>)> {
    // A reserved field is written as zero or empty.
    let kind = |field: &&'static str| match field.split_once(':').unwrap() {
        ("octet", "-") => "0",
        ("short", "-") => "00",
        ("bit", "-") => "bit0",
        ("shortstr", "-") => "0",
        ("longstr", "-") => "0000",
        (kind, _) => kind,
    };
    let typed = |(id, name, fields): (MethodId, String, Vec<&'static str>)| {
        (id, name, fields.iter().map(kind).collect())
    };
    named_fields().into_iter().map(typed).collect()
}

/// A field of each type that a table can have, by rising name.
pub(crate) const ALL_TYPES: &[u8] = b"\x01at\x01\x01bb\xff\x01cB\xff\x01ds\xff\xfe\x01eu\xff\xfe\x01fI\xff\xff\xff\xff\
\x01gi\xff\xff\xff\xff\x01hl\xff\xff\xff\xff\xff\xff\xff\xff\x01if\x3f\x80\x00\x00\x01jd\xbf\xf0\x00\x00\x00\x00\x00\x00\
\x01kD\x02\x00\x00\x01\x00\x01lT\x00\x00\x00\x00\x00\x00\x00\x09\x01mS\x00\x00\x00\x02hi\x01nx\x00\x00\x00\x01\x00\
\x01oA\x00\x00\x00\x01V\x01pF\x00\x00\x00\x0a\x01qF\x00\x00\x00\x03\x01rV\x01sV";

/// The payload of a method with these fields, of which `bytes` decides the values.
pub(crate) fn payload(id: MethodId, fields: &[&str], bytes: &[u8]) -> Vec<u8> {
    let mut out = [id.class.to_be_bytes(), id.method.to_be_bytes()].concat();
    let mut values = bytes.iter().copied().cycle();
    let mut bits: Vec<bool> = Vec::new();
    for field in fields.iter().copied().chain(["end"]) {
        if !field.starts_with("bit") && !bits.is_empty() {
            out.push(bits.drain(..).rev().fold(0, |octet, bit| octet * 2 + u8::from(bit)));
        }
        let mut some = |len: usize| values.by_ref().take(len).collect::<Vec<u8>>();
        match field {
            "end" => {}
            "bit" => bits.push(some(1)[0] % 2 == 1),
            "bit0" => bits.push(false),
            zeros if zeros.starts_with('0') => out.extend(vec![0; zeros.len()]),
            "octet" => out.extend(some(1)),
            "short" => out.extend(some(2)),
            "long" => out.extend(some(4)),
            "longlong" => out.extend(some(8)),
            "shortstr" => {
                let text: Vec<u8> = some(3).iter().map(|byte| b'a' + byte % 26).collect();
                out.extend([&[3][..], &text].concat());
            }
            "longstr" => out.extend([&[0, 0, 0, 5][..], &some(5)].concat()),
            "table" => {
                let number = some(2);
                let fields = [ALL_TYPES, b"\x01zs", &number].concat();
                out.extend_from_slice(&(fields.len() as u32).to_be_bytes());
                out.extend(fields);
            }
            other => panic!("there is no type {other}"),
        }
    }
    out
}
