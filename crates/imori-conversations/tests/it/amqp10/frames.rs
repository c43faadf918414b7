//! A message is received as it was sent, whatever the frame sizes and however it is split.

use imori_amqp10::codec::frame::{Frame, Step, decode};
use imori_amqp10::codec::value::{Described, Value};
use std::iter::repeat;

use imori_amqp10::connection::Connection;
use imori_amqp10::header_reader;
use imori_conversations::amqp10::text::bytes;
use imori_testkit::{TestWorld, answers};
use proptest::prelude::*;

/// Upper bound for frames of clients and of the broker.
const FRAME_BYTES_MAX: usize = 131_072;

/// Fields of a transfer up to and including `more` (AMQP 1.0, 2.7.5).
const FIELDS: usize = 6;

/// A conversation that opens a connection with this maximum frame size and a link in each
/// direction.
fn begin(frame_bytes_max: usize) -> String {
    format!(
        "sasl-hello
sasl init mechanism=:PLAIN initial-response=@006775657374006775657374
hello
0 open container-id=c max-frame-size={frame_bytes_max}
0 begin next-outgoing-id=0 incoming-window=10000 outgoing-window=10000
0 attach name=out handle=0 role=false target=target{{address=q}} initial-delivery-count=0
0 attach name=in handle=1 role=true source=source{{address=q}}
0 flow next-incoming-id=0 incoming-window=10000 next-outgoing-id=0 outgoing-window=10000 handle=1 delivery-count=0 link-credit=10"
    )
}

/// Encodes a message with a single data section (AMQP 1.0, 3.2.6).
fn message(body: &[u8]) -> Vec<u8> {
    let mut message = vec![0, 0x53, 0x75, 0xb0];
    message.extend_from_slice(&(body.len() as u32).to_be_bytes());
    message.extend_from_slice(body);
    message
}

/// Encodes the transfers of a message that is cut at these positions.
fn transfers(message: &[u8], mut cuts: Vec<usize>) -> Vec<u8> {
    cuts.extend([0, message.len()]);
    cuts.sort_unstable();
    let mut transfers = Vec::new();
    for (number, cut) in cuts.windows(2).enumerate() {
        let more = cut[1] < message.len() || number + 2 < cuts.len();
        let of_first = if number == 0 { " delivery-id=0 delivery-tag=@00" } else { "" };
        let part: String = message[cut[0]..cut[1]].iter().map(|byte| format!("{byte:02x}")).collect();
        transfers.extend(bytes(&format!("0 transfer handle=0{of_first} more={more} | @{part}")));
    }
    transfers
}

/// Decodes the broker's transfers: length, fields, and part of the message.
fn received(mut answers: &[u8]) -> Vec<(usize, Vec<String>, Vec<u8>)> {
    let mut received = Vec::new();
    loop {
        match decode(answers, usize::MAX) {
            Ok(Step::Header(_)) => answers = &answers[8..],
            Ok(Step::Frame(Frame { len, body, .. })) => {
                answers = &answers[len..];
                let (value, part) = Value::decode(body).unwrap();
                if let Some(fields) = fields_of_transfer(value) {
                    received.push((len, fields, part.to_vec()));
                }
            }
            _ => return received,
        }
    }
}

fn fields_of_transfer(value: Value<'_>) -> Option<Vec<String>> {
    match value {
        Value::Described(described) if is_transfer(&described) => match described.value() {
            // Trailing fields may be omitted, which means null.
            Value::List(list) => {
                let said = list.iter().map(|field| format!("{field:?}"));
                Some(said.chain(repeat("Null".to_string())).take(FIELDS).collect())
            }
            other => panic!("{other:?}"),
        },
        _ => None,
    }
}

fn is_transfer(described: &Described<'_>) -> bool {
    format!("{:?}", described.descriptor) == "Code(20)"
}

proptest! {
    #[test]
    fn a_message_is_whole_however_it_is_cut(
        frame_bytes_max in 512..1_200_usize,
        body_bytes in 0..4_000_usize,
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..5),
    ) {
        let body: Vec<u8> = (0..body_bytes).map(|number| (number * 7) as u8).collect();
        let message = message(&body);
        let cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(message.len())).collect();
        let answers = |frame_bytes_max: usize, cuts: Vec<usize>| {
            let mut said: Vec<u8> = begin(frame_bytes_max).lines().flat_map(bytes).collect();
            said.extend(transfers(&message, cuts));
            received(&answers::<Connection>(&TestWorld::reading(header_reader), [&said[..]].into_iter()))
        };
        let whole = answers(FRAME_BYTES_MAX, Vec::new());
        prop_assert_eq!(whole.len(), 1);
        prop_assert!(whole[0].2.ends_with(&message[message.len() - body.len()..]));

        let parts = answers(frame_bytes_max, cuts);
        let last = parts.len() - 1;
        for (number, (len, fields, _)) in parts.iter().enumerate() {
            prop_assert!(*len == frame_bytes_max || number == last && *len < frame_bytes_max, "{} of {}", len, frame_bytes_max);
            prop_assert_eq!(fields[5] == "Bool(true)", number < last);
            prop_assert_eq!(&fields[0], &whole[0].1[0], "each says its handle");
            match number {
                // AMQP 1.0, 2.7.5: id, tag, format and settled flag are in the first transfer only.
                0 => prop_assert_eq!(&fields[1..5], &whole[0].1[1..5]),
                _ => prop_assert!(fields[1..5].iter().all(|field| field == "Null")),
            }
        }
        prop_assert_eq!(parts.iter().flat_map(|part| part.2.clone()).collect::<Vec<u8>>(), &whole[0].2[..]);
    }
}
