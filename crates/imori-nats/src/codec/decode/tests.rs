use proptest::prelude::*;

use super::*;
use crate::codec::encode::{push_message, push_publish, push_subscribe, push_unsubscribe};
use crate::limits::{CONTROL_LINE_BYTES_MAX, PAYLOAD_BYTES_MAX};

/// Describes each operation in a line; the last line is an error or the remaining bytes, if any.
fn described<'a>(
    chunks: impl Iterator<Item = &'a [u8]>,
    step: impl Fn(&mut Decoder, &[u8]) -> Result<Step<String>, DecodeError>,
) -> Vec<String> {
    let mut decoder = Decoder::new(Limits::default());
    let mut buffer = Vec::new();
    let mut lines = Vec::new();
    for chunk in chunks {
        buffer.extend_from_slice(chunk);
        loop {
            match step(&mut decoder, &buffer) {
                Ok(Step::Op { op, consumed }) => {
                    assert!((1..=buffer.len()).contains(&consumed), "a step consumes what is there");
                    lines.push(op);
                    buffer.drain(..consumed);
                }
                Ok(Step::Incomplete { needed }) => {
                    assert!(needed.is_none_or(|needed| needed > buffer.len()));
                    break;
                }
                Err(error) => {
                    lines.push(format!("error: {error}"));
                    return lines;
                }
            }
        }
    }
    if !buffer.is_empty() {
        lines.push(format!("rest: {}", buffer.len()));
    }
    lines
}

fn text(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}

fn optional(name: &str, bytes: Option<&[u8]>) -> String {
    bytes.map(|bytes| format!(" {name}={}", text(bytes))).unwrap_or_default()
}

fn client_step(decoder: &mut Decoder, input: &[u8]) -> Result<Step<String>, DecodeError> {
    Ok(match decoder.client_op(input)? {
        Step::Incomplete { needed } => Step::Incomplete { needed },
        Step::Op { op, consumed } => {
            let op = match op {
                ClientOp::Connect(json) => format!("CONNECT {}", text(json)),
                ClientOp::Publish(Publish { subject, reply, headers, payload }) => format!(
                    "PUB {}{}{} | {}",
                    text(subject),
                    optional("reply", reply),
                    optional("headers", headers),
                    text(payload)
                ),
                ClientOp::Subscribe(Subscribe { subject, group, sid }) => {
                    format!("SUB {}{} {}", text(subject), optional("group", group), text(sid))
                }
                ClientOp::Unsubscribe(Unsubscribe { sid, max }) => format!("UNSUB {} {max:?}", text(sid)),
                ClientOp::Ping => "PING".to_string(),
                ClientOp::Pong => "PONG".to_string(),
                ClientOp::Nothing => "nothing".to_string(),
            };
            Step::Op { op, consumed }
        }
    })
}

fn server_step(decoder: &mut Decoder, input: &[u8]) -> Result<Step<String>, DecodeError> {
    Ok(match decoder.server_op(input)? {
        Step::Incomplete { needed } => Step::Incomplete { needed },
        Step::Op { op, consumed } => {
            let op = match op {
                ServerOp::Info(json) => format!("INFO {}", text(json)),
                ServerOp::Message(Message { subject, sid, reply, headers, payload }) => format!(
                    "MSG {} {}{}{} | {}",
                    text(subject),
                    text(sid),
                    optional("reply", reply),
                    optional("headers", headers),
                    text(payload)
                ),
                ServerOp::Ok => "+OK".to_string(),
                ServerOp::Err(error) => format!("-ERR {}", text(error)),
                ServerOp::Ping => "PING".to_string(),
                ServerOp::Pong => "PONG".to_string(),
            };
            Step::Op { op, consumed }
        }
    })
}

fn check(
    input: &[u8],
    expected: &[&str],
    step: impl Fn(&mut Decoder, &[u8]) -> Result<Step<String>, DecodeError>,
) {
    assert_eq!(described([input].into_iter(), &step), expected, "{}", text(input));
    let by_byte = described(input.chunks(1), &step);
    // Byte by byte, the excerpt ends where the error became certain.
    if expected.last().is_some_and(|last| last.starts_with("error: `")) {
        assert_eq!(by_byte.len(), expected.len(), "byte by byte: {}", text(input));
    } else {
        assert_eq!(by_byte, expected, "byte by byte: {}", text(input));
    }
}

#[test]
fn client_operations_are_read_as_nats_server_reads_them() {
    for (input, expected) in [
        ("PING\r\n", &["PING"][..]),
        ("ping\nPong  \r\n", &["PING", "PONG"]),
        ("PINGPING\r\n", &["PING"]),
        ("CONNECT {}\r\n", &["CONNECT {}"]),
        ("CONNECT{\"a\":1}\n", &["CONNECT {\\\"a\\\":1}"]),
        ("connect \t {} \r\n", &["CONNECT {}"]),
        ("PUB a 2\r\nhi\r\n", &["PUB a | hi"]),
        ("PUB a.b  \t r 2 \nhi\r\n", &["PUB a.b reply=r | hi"]),
        ("pub\ta 0\r\n\r\n", &["PUB a | "]),
        ("PUB a 2\r\n\r\n\r\n", &["PUB a | \\r\\n"]),
        ("HPUB a 12 14\r\nNATS/1.0\r\n\r\nhi\r\n", &["PUB a headers=NATS/1.0\\r\\n\\r\\n | hi"]),
        ("hPuB a r 12 12\r\nNATS/1.0\r\n\r\n\r\n", &["PUB a reply=r headers=NATS/1.0\\r\\n\\r\\n | "]),
        ("HPUB a 0 2\r\nhi\r\n", &["PUB a headers= | hi"]),
        ("PUB a\0\x01\u{7f} 01\r\nx\r\n", &["PUB a\\x00\\x01\\x7f | x"]),
        ("PUB \x01a.longer.subject\x02 1\r\nx\r\n", &["PUB \\x01a.longer.subject\\x02 | x"]),
        ("+OK\r\nINFO {}\r\n", &["nothing", "nothing"]),
        ("SUB a.* 1\r\n", &["SUB a.* 1"]),
        ("sub > g 1\n", &["SUB > group=g 1"]),
        ("UNSUB 1\r\n", &["UNSUB 1 None"]),
        ("UNSUB 1 5\r\n", &["UNSUB 1 Some(5)"]),
        ("UNSUB 1 x\r\n", &["UNSUB 1 None"]),
        ("PUB a 2\r\nhiPI", &["rest: 13"]),
        ("PUB a 10\r\nhi", &["rest: 12"]),
        ("PUB a 2\r\nhi\r", &["rest: 12"]),
    ] {
        if input == "PUB a 2\r\nhiPI" {
            let error = "error: no CR LF follows the `2` bytes of the message; declare as many as it has";
            check(input.as_bytes(), &[error], client_step);
        } else {
            check(input.as_bytes(), expected, client_step);
        }
    }
}

#[test]
fn what_is_no_operation_is_refused_at_once() {
    for (input, expected) in [
        ("GET / HTTP/1.1\r\n", "`GET / HTTP/1.1\\r` begins no operation; send one such as `PUB subject 2`"),
        ("\r\n", "`\\r` begins no operation; send one such as `PUB subject 2`"),
        ("PU\r\n", "`PU\\r` begins no operation; send one such as `PUB subject 2`"),
        ("PUB\r\n", "`PUB\\r` begins no operation; send one such as `PUB subject 2`"),
        ("SUBa 1\r\n", "`SUBa 1\\r` begins no operation; send one such as `PUB subject 2`"),
        ("MSG a 1 0\r\n\r\n", "`MSG a 1 0\\r` begins no operation; send one such as `PUB subject 2`"),
        ("-ERR 'x'\r\n", "`-ERR 'x'\\r` begins no operation; send one such as `PUB subject 2`"),
    ] {
        check(input.as_bytes(), &[&format!("error: {expected}")], client_step);
    }
}

#[test]
fn wrong_arguments_are_refused() {
    for (line, usage) in [
        ("PUB ", "PUB subject [reply] bytes"),
        ("PUB a", "PUB subject [reply] bytes"),
        ("PUB a b", "PUB subject [reply] bytes"),
        ("PUB a -1", "PUB subject [reply] bytes"),
        ("PUB a 1000000000", "PUB subject [reply] bytes"),
        ("PUB a b c 1", "PUB subject [reply] bytes"),
        ("PUB a\rb 1", "PUB subject [reply] bytes"),
        ("HPUB a 5", "HPUB subject [reply] header-bytes bytes"),
        ("HPUB a 5 4", "HPUB subject [reply] header-bytes bytes"),
        ("HPUB a x 4", "HPUB subject [reply] header-bytes bytes"),
        ("HPUB a b c 1 1", "HPUB subject [reply] header-bytes bytes"),
        ("SUB a", "SUB subject [group] sid"),
        ("SUB a b c d", "SUB subject [group] sid"),
        ("SUB a b\rx c", "SUB subject [group] sid"),
        ("UNSUB ", "UNSUB sid [max]"),
        ("UNSUB a b c", "UNSUB sid [max]"),
    ] {
        let arguments = line.split_once(' ').map(|(_, arguments)| arguments).unwrap_or_default();
        let shown = imori_core::name::Printable(arguments.as_bytes());
        let expected = format!("error: arguments `{shown}` are wrong; write `{usage}`");
        check(format!("{line}\r\n").as_bytes(), &[&expected], client_step);
    }
}

#[test]
fn limits_hold_before_the_bytes_have_come() {
    let long = "a".repeat(CONTROL_LINE_BYTES_MAX - 2);
    check(format!("SUB {long} 1\r\n").as_bytes(), &[&format!("SUB {long} 1")], client_step);
    let error = "error: control line is longer than `4096` bytes; use shorter subjects and options";
    check(format!("SUB {long}a 1\r\n").as_bytes(), &[error], client_step);
    check(format!("CONNECT {}", "a".repeat(CONTROL_LINE_BYTES_MAX + 3)).as_bytes(), &[error], client_step);
    let error = "error: message has `1048577` bytes; send at most 1048576, as `max_payload` of INFO says";
    check(format!("PUB a {}\r\n", PAYLOAD_BYTES_MAX + 1).as_bytes(), &[error], client_step);
}

#[test]
fn the_bytes_of_a_long_message_are_known_early() {
    let mut decoder = Decoder::new(Limits::default());
    let head = b"PUB a 1000\r\nxxx";
    for len in 0..head.len() {
        let step = decoder.client_op(&head[..len]).unwrap();
        let needed = (len >= 12).then_some(12 + 1000 + 2);
        assert_eq!(step, Step::Incomplete { needed }, "{len} bytes of it");
    }
}

#[test]
fn server_operations_are_read() {
    for (input, expected) in [
        ("INFO {\"a\":1} \r\n", &["INFO {\\\"a\\\":1}"][..]),
        ("MSG a.b 7 2\r\nhi\r\n", &["MSG a.b 7 | hi"]),
        ("MSG a.b 7 r 2\r\nhi\r\n", &["MSG a.b 7 reply=r | hi"]),
        (
            "HMSG a 7 r 12 14\r\nNATS/1.0\r\n\r\nhi\r\n",
            &["MSG a 7 reply=r headers=NATS/1.0\\r\\n\\r\\n | hi"],
        ),
        ("HMSG a 7 16 16\r\nNATS/1.0 503\r\n\r\n\r\n", &["MSG a 7 headers=NATS/1.0 503\\r\\n\\r\\n | "]),
        ("+OK\r\nPING\r\nPONG\r\n", &["+OK", "PING", "PONG"]),
        ("-ERR 'Slow Consumer'\r\n", &["-ERR Slow Consumer"]),
        ("-ERR unquoted\r\n", &["-ERR unquoted"]),
        ("MSG a 2\r\n", &["error: arguments `a 2` are wrong; write `MSG subject sid [reply] bytes`"]),
    ] {
        check(input.as_bytes(), expected, server_step);
    }
    check(
        b"SUB a 1\r\n",
        &["error: `SUB a 1\\r` begins no operation; send one such as `PUB subject 2`"],
        server_step,
    );
}

fn field() -> impl Strategy<Value = Vec<u8>> {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
    prop::collection::vec(any::<u8>().prop_filter("no white space", move |byte| !is_blank(byte)), 1..12)
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop_oneof![any::<u8>(), Just(b'\r'), Just(b'\n')], 0..40)
}

#[derive(Debug, Clone)]
enum Op {
    Publish(Vec<u8>, Option<Vec<u8>>, Option<Vec<u8>>, Vec<u8>),
    Subscribe(Vec<u8>, Option<Vec<u8>>, Vec<u8>),
    Unsubscribe(Vec<u8>, Option<usize>),
}

fn op() -> impl Strategy<Value = Op> {
    use prop::option::of;
    prop_oneof![
        (field(), of(field()), of(bytes()), bytes()).prop_map(|(s, r, h, p)| Op::Publish(s, r, h, p)),
        (field(), of(field()), field()).prop_map(|(s, g, i)| Op::Subscribe(s, g, i)),
        (field(), of(0..999_999_999_usize)).prop_map(|(i, m)| Op::Unsubscribe(i, m)),
    ]
}

impl Op {
    fn borrowed(&self) -> ClientOp<'_> {
        match self {
            Op::Publish(subject, reply, headers, payload) => ClientOp::Publish(Publish {
                subject,
                reply: reply.as_deref(),
                headers: headers.as_deref(),
                payload,
            }),
            Op::Subscribe(subject, group, sid) => {
                ClientOp::Subscribe(Subscribe { subject, group: group.as_deref(), sid })
            }
            Op::Unsubscribe(sid, max) => ClientOp::Unsubscribe(Unsubscribe { sid, max: *max }),
        }
    }

    fn encoded(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self.borrowed() {
            ClientOp::Publish(publish) => push_publish(&mut out, &publish),
            ClientOp::Subscribe(subscribe) => push_subscribe(&mut out, &subscribe),
            ClientOp::Unsubscribe(unsubscribe) => push_unsubscribe(&mut out, &unsubscribe),
            _ => {}
        }
        out
    }
}

proptest! {
    #[test]
    fn decode_after_encode_is_identity_and_each_prefix_is_not_yet(op in op()) {
        let encoded = op.encoded();
        let decoded = Decoder::new(Limits::default()).client_op(&encoded);
        prop_assert_eq!(decoded, Ok(Step::Op { op: op.borrowed(), consumed: encoded.len() }));
        let mut slow = Decoder::new(Limits::default());
        for len in 0..encoded.len() {
            for decoder in [&mut Decoder::new(Limits::default()), &mut slow] {
                let step = decoder.client_op(&encoded[..len]);
                let is_incomplete = matches!(step, Ok(Step::Incomplete { .. }));
                prop_assert!(is_incomplete, "{} bytes of {}: {:?}", len, text(&encoded), step);
            }
        }
    }

    #[test]
    fn messages_are_read_as_they_were_written(
        (subject, sid, reply) in (field(), field(), prop::option::of(field())),
        (headers, payload) in (prop::option::of(bytes()), bytes()),
    ) {
        let (reply, headers) = (reply.as_deref(), headers.as_deref());
        let message = Message { subject: &subject, sid: &sid, reply, headers, payload: &payload };
        let mut encoded = Vec::new();
        push_message(&mut encoded, &message);
        let mut decoder = Decoder::new(Limits::of_client());
        for len in 0..encoded.len() {
            let is_incomplete = matches!(decoder.server_op(&encoded[..len]), Ok(Step::Incomplete { .. }));
            prop_assert!(is_incomplete, "{} bytes of {}", len, text(&encoded));
        }
        let expected = Step::Op { op: ServerOp::Message(message), consumed: encoded.len() };
        prop_assert_eq!(decoder.server_op(&encoded), Ok(expected));
    }

    #[test]
    fn operations_do_not_depend_on_how_bytes_come(
        ops in prop::collection::vec(op(), 0..12),
        tail in bytes(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..30),
    ) {
        let mut input: Vec<u8> = ops.iter().flat_map(Op::encoded).collect();
        input.extend(tail);
        let whole = described([&input[..]].into_iter(), client_step);
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(input.len() + 1)).chain([0, input.len()]).collect();
        cuts.sort_unstable();
        let pieces = described(cuts.windows(2).map(|cut| &input[cut[0]..cut[1]]), client_step);
        let kind = |line: &String| if line.starts_with("error: ") { "error".to_string() } else { line.clone() };
        prop_assert_eq!(pieces.iter().map(kind).collect::<Vec<_>>(), whole.iter().map(kind).collect::<Vec<_>>());
    }
}
