use super::*;

const BOUND: u64 = 300;

/// A masked frame, as a client sends it.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mask = [0x11, 0xa2, 0x33, 0xc4];
    let mut frame = vec![first];
    match u8::try_from(payload.len()) {
        Ok(len @ 0..126) => frame.push(0x80 | len),
        _ => {
            frame.push(0x80 | 126);
            frame.extend(u16::try_from(payload.len()).unwrap().to_be_bytes());
        }
    }
    frame.extend(mask);
    frame.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    frame
}

/// Decodes a stream in pieces of one size; returns its payload and control frames.
fn decode(stream: &[u8], piece_bytes: usize) -> Result<(Vec<u8>, Vec<ControlFrame>), Violation> {
    let mut decoder = Decoder::new(BOUND);
    let (mut payload, mut all_said) = (Vec::new(), Vec::new());
    for piece in stream.chunks(piece_bytes) {
        let mut piece = piece.to_vec();
        let kept = decoder.decode(&mut piece, |said| all_said.push(said))?;
        payload.extend_from_slice(&piece[..kept]);
    }
    Ok((payload, all_said))
}

#[test]
fn a_stream_is_the_same_however_it_is_cut_and_fragmented() {
    let long = vec![b'x'; 200];
    let stream = [
        frame(0x82, b"one"),
        frame(0x81, "tw\u{f6}".as_bytes()),
        frame(0x82, b""),
        frame(0x89, b"are you there"),
        // One character split over two fragments, with a ping between them.
        frame(0x01, b"\xf0\x9f"),
        frame(0x89, b""),
        frame(0x00, b"\xa6"),
        frame(0x80, b"\x80"),
        frame(0x8a, b"unasked"),
        frame(0x82, &long),
        frame(0x88, b"\x03\xe8bye"),
        frame(0x82, b"after the end"),
    ]
    .concat();
    let payload = [b"one", "tw\u{f6}".as_bytes(), "\u{1f980}".as_bytes(), &long].concat();
    let said = [
        ControlFrame::Ping(b"are you there".to_vec()),
        ControlFrame::Ping(Vec::new()),
        ControlFrame::Close(Some(1000)),
    ];
    for piece_bytes in 1..=stream.len() {
        let (decoded, heard) = decode(&stream, piece_bytes).unwrap();
        assert_eq!(decoded, payload, "in pieces of {piece_bytes}");
        assert_eq!(heard, said, "in pieces of {piece_bytes}");
    }
}

/// SECURITY LIM-05.
#[test]
fn what_a_client_must_not_send_is_refused() {
    let longest = u64::MAX >> 1;
    let claims = |len: u64| [&[0x82, 0x80 | 127][..], &len.to_be_bytes(), &[0; 4]].concat();
    for (what, stream, violation) in [
        ("no mask", b"\x82\x01a".to_vec(), Violation::Unmasked),
        ("no mask on a ping", b"\x89\x00".to_vec(), Violation::Unmasked),
        ("compressed", frame(0xc2, b"a"), Violation::Reserved),
        ("second bit", frame(0xa2, b"a"), Violation::Reserved),
        ("third bit", frame(0x92, b"a"), Violation::Reserved),
        ("kind 3", frame(0x83, b"a"), Violation::Reserved),
        ("kind 11", frame(0x8b, b"a"), Violation::Reserved),
        ("a ping in fragments", frame(0x09, b"a"), Violation::Control),
        ("a long ping", frame(0x89, &[0; 126]), Violation::Control),
        ("a continuation of nothing", frame(0x80, b"a"), Violation::Fragment),
        ("a message in another", [frame(0x02, b"a"), frame(0x82, b"b")].concat(), Violation::Fragment),
        ("too long", claims(BOUND + 1), Violation::TooLong),
        ("2^63 - 1 bytes", claims(longest), Violation::TooLong),
        ("2^63 bytes", claims(longest + 1), Violation::TooLong),
        ("2^64 - 1 bytes", claims(u64::MAX), Violation::TooLong),
        (
            "too long in fragments",
            [frame(0x02, &[0; 150]), frame(0x00, &[0; 150]), frame(0x00, b"a")].concat(),
            Violation::TooLong,
        ),
        ("no UTF-8", frame(0x81, b"a\xff"), Violation::NotUtf8),
        ("half a character", frame(0x81, b"a\xc3"), Violation::NotUtf8),
        ("a close of one byte", frame(0x88, b"\x03"), Violation::Close),
        ("a close that nobody may send", frame(0x88, b"\x03\xee"), Violation::Close),
        ("a close with a reason that is no UTF-8", frame(0x88, b"\x03\xe8\xff"), Violation::NotUtf8),
    ] {
        for piece_bytes in [1, 7, stream.len()] {
            assert_eq!(decode(&stream, piece_bytes), Err(violation), "{what}, in pieces of {piece_bytes}");
        }
    }
}

#[test]
fn the_limit_is_of_each_message() {
    let stream = [frame(0x82, &[0; 300]), frame(0x02, &[0; 299]), frame(0x80, &[0; 1])].concat();
    assert_eq!(decode(&stream, 1000).unwrap().0.len(), 600);
}
