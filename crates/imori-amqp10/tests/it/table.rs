//! Parses the table of described lists from its source text.

/// The source file with the table.
const SOURCE: &str = include_str!("../../src/codec/composites.rs");

/// A described list of the table.
#[derive(Debug, Clone)]
pub(crate) struct Composite {
    pub(crate) name: &'static str,
    pub(crate) code: u8,
    pub(crate) symbol: &'static str,
    pub(crate) fields: Vec<Field>,
}

/// A field of a described list.
#[derive(Debug, Clone)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) is_mandatory: bool,
    pub(crate) kind: &'static str,
    pub(crate) default: Option<&'static str>,
}

/// Returns all lists of the table, in order.
pub(crate) fn table() -> Vec<Composite> {
    let body = SOURCE.split_once("composites! {").unwrap().1.split_once("choices! {").unwrap().0;
    let mut composites: Vec<Composite> = Vec::new();
    for line in body.lines().map(str::trim) {
        if let Some((head, rest)) = line.split_once(" = 0x") {
            let (code, rest) = rest.split_once(" \"").unwrap();
            composites.push(Composite {
                name: head.split('<').next().unwrap(),
                code: u8::from_str_radix(code, 16).unwrap(),
                symbol: rest.split_once('"').unwrap().0,
                fields: Vec::new(),
            });
        }
        let Some((kind @ ("mandatory" | "optional" | "default"), rest)) = line.split_once(' ') else {
            continue;
        };
        let (name, rest) = rest.trim_end_matches(',').split_once(": ").unwrap();
        let (type_name, default) = match rest.split_once(" = ") {
            Some((type_name, default)) => (type_name, Some(default)),
            None => (rest, None),
        };
        let field = Field { name, is_mandatory: kind == "mandatory", kind: type_name, default };
        composites.last_mut().unwrap().fields.push(field);
    }
    composites
}

/// Random bytes that determine a sample.
pub(crate) struct Choice<'a> {
    bytes: std::iter::Cycle<std::slice::Iter<'a, u8>>,
}

impl Choice<'_> {
    pub(crate) fn of(bytes: &[u8]) -> Choice<'_> {
        Choice { bytes: bytes.iter().cycle() }
    }

    pub(crate) fn octet(&mut self) -> u8 {
        *self.bytes.next().unwrap()
    }

    fn below(&mut self, limit: u8) -> u8 {
        self.octet() % limit
    }
}

/// Encodes a list with some of its fields, in the shortest encoding.
pub(crate) fn sample(composite: &Composite, choice: &mut Choice<'_>) -> Vec<u8> {
    let fields: Vec<Vec<u8>> = composite.fields.iter().map(|field| sample_field(field, choice)).collect();
    described(composite.code, &fields)
}

/// Encodes the fields of a list with only the mandatory ones present.
pub(crate) fn mandatory_alone(composite: &Composite) -> Vec<Vec<u8>> {
    let field = |field: &Field| match field.is_mandatory {
        true => sample_of(field.kind, &mut Choice::of(&[1])),
        false => vec![0x40],
    };
    composite.fields.iter().map(field).collect()
}

/// Encodes a list from encoded fields.
pub(crate) fn described(code: u8, fields: &[Vec<u8>]) -> Vec<u8> {
    let count = fields.iter().rposition(|field| field != &[0x40]).map_or(0, |last| last + 1);
    let values = fields[..count].concat();
    let list = match (count, values.len()) {
        (0, _) => vec![0x45],
        (_, ..255) => [&[0xc0, values.len() as u8 + 1, count as u8][..], &values].concat(),
        _ => [&[0xd0][..], &(values.len() as u32 + 4).to_be_bytes(), &(count as u32).to_be_bytes(), &values]
            .concat(),
    };
    [&[0x00, 0x53, code][..], &list].concat()
}

fn sample_field(field: &Field, choice: &mut Choice<'_>) -> Vec<u8> {
    if !field.is_mandatory && choice.below(3) == 0 {
        return vec![0x40];
    }
    let bytes = sample_of(field.kind, choice);
    if is_default(field, &bytes) { vec![0x40] } else { bytes }
}

/// Whether the bytes are the field's default value, which an encoder would omit.
fn is_default(field: &Field, bytes: &[u8]) -> bool {
    let default: &[u8] = match field.default {
        None => return false,
        Some("false") => &[0x42],
        Some("0" | "TerminusDurability::None") => &[0x43],
        Some("4") => &[0x50, 4],
        Some("u32::MAX") => &[0x70, 255, 255, 255, 255],
        Some("u16::MAX") => &[0x60, 255, 255],
        Some("SenderSettleMode::Mixed") => &[0x50, 2],
        Some("ReceiverSettleMode::First") => &[0x50, 0],
        Some("TerminusExpiryPolicy::SessionEnd") => b"\xa3\x0bsession-end",
        Some(other) => panic!("the default {other} is new"),
    };
    default == bytes
}

/// Encodes a value of a field's type, in the shortest encoding.
fn sample_of(kind: &str, choice: &mut Choice<'_>) -> Vec<u8> {
    let text = |octet: u8, choice: &mut Choice<'_>| {
        let len = [0, 1, 5, 255, 256, 300][usize::from(choice.below(6))];
        let text: Vec<u8> = (0..len).map(|_| b'a' + choice.octet() % 26).collect();
        match u8::try_from(len) {
            Ok(len) => [&[octet, len][..], &text].concat(),
            Err(_) => [&[octet | 0x10][..], &(len as u32).to_be_bytes(), &text].concat(),
        }
    };
    let of_table = |name: &str, choice: &mut Choice<'_>| {
        let composite = table().into_iter().find(|composite| composite.name == name).unwrap();
        sample(&composite, choice)
    };
    let one_of = |names: &[&str], choice: &mut Choice<'_>| {
        let name = names[usize::from(choice.octet()) % names.len()];
        of_table(name, choice)
    };
    let kind = kind.trim_end_matches("<'a>");
    match kind {
        "bool" | "Role" => vec![0x41 + choice.below(2)],
        "u8" => vec![0x50, choice.octet()],
        "u16" => vec![0x60, choice.octet(), choice.octet()],
        "u32" => match choice.below(3) {
            0 => vec![0x43],
            1 => vec![0x52, choice.octet().max(1)],
            _ => vec![0x70, choice.octet(), 1, choice.octet(), choice.octet()],
        },
        "u64" => match choice.below(3) {
            0 => vec![0x44],
            1 => vec![0x53, choice.octet().max(1)],
            _ => vec![0x80, choice.octet(), 0, 0, 0, 1, choice.octet(), 0, choice.octet()],
        },
        "Timestamp" => vec![0x83, 0, 0, 0, 1, choice.octet(), choice.octet(), 0, choice.octet()],
        "&'a str" => text(0xa1, choice),
        "&'a [u8]" => text(0xa0, choice),
        "Symbol" => text(0xa3, choice),
        "Symbols" => match choice.below(3) {
            0 => text(0xa3, choice),
            1 => b"\xe0\x02\x00\xa3".to_vec(),
            _ => b"\xe0\x08\x02\xa3\x01a\x03bcd".to_vec(),
        },
        "Map" => match choice.below(3) {
            0 => b"\xc1\x01\x00".to_vec(),
            1 => b"\xc1\x05\x02\xa3\x01k\x40".to_vec(),
            _ => b"\xc1\x13\x04\xa3\x01k\xa1\x01v\xa3\x01l\x00\x53\x77\xc0\x04\x02\x41\x50\x09".to_vec(),
        },
        "Value" => match choice.below(2) {
            0 => text(0xa1, choice),
            _ => b"\xe0\x04\x02\x50\x01\x02".to_vec(),
        },
        "MessageId" => match choice.below(4) {
            0 => text(0xa1, choice),
            1 => text(0xa0, choice),
            2 => vec![0x53, choice.octet().max(1)],
            _ => [&[0x98][..], &[choice.octet(); 16]].concat(),
        },
        "SenderSettleMode" => vec![0x50, choice.below(3)],
        "ReceiverSettleMode" => vec![0x50, choice.below(2)],
        "SaslCode" => vec![0x50, choice.below(5)],
        "TerminusDurability" => {
            [vec![0x43], vec![0x52, 1], vec![0x52, 2]][usize::from(choice.below(3))].clone()
        }
        "TerminusExpiryPolicy" => [&b"\xa3\x0blink-detach"[..], b"\xa3\x0bsession-end", b"\xa3\x05never"]
            [usize::from(choice.below(3))]
        .to_vec(),
        "DistributionMode" => [b"\xa3\x04move", b"\xa3\x04copy"][usize::from(choice.below(2))].to_vec(),
        "AnyTarget" => one_of(&["Target", "Coordinator"], choice),
        "DeliveryState" => one_of(
            &["Received", "Accepted", "Rejected", "Released", "Modified", "Declared", "TransactionalState"],
            choice,
        ),
        "Outcome" => one_of(&["Accepted", "Rejected", "Released", "Modified"], choice),
        name => of_table(name, choice),
    }
}
