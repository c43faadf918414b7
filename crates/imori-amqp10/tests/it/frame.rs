//! Frames and protocol headers, and what is neither.

use imori_amqp10::codec::error::DecodeError;
use imori_amqp10::codec::frame::{
    Frame, FrameKind, ProtocolHeader, Step, decode, protocol_header, push_frame, push_heartbeat,
};

const MAX: usize = 512;

#[test]
fn every_prefix_of_a_frame_is_not_yet() {
    let mut bytes = Vec::new();
    push_frame(&mut bytes, FrameKind::Amqp, 513, |out| out.extend_from_slice(b"body"));
    assert_eq!(bytes, b"\x00\x00\x00\x0c\x02\x00\x02\x01body");
    for len in 0..bytes.len() {
        let frame_bytes = (len >= 4).then_some(bytes.len());
        assert_eq!(decode(&bytes[..len], MAX), Ok(Step::Incomplete { frame_bytes }), "{len}");
    }
    let frame = Frame { kind: FrameKind::Amqp, channel: 513, body: b"body", len: bytes.len() };
    assert_eq!(decode(&bytes, MAX), Ok(Step::Frame(frame)));
    bytes.extend_from_slice(b"\x00");
    assert_eq!(decode(&bytes, MAX), Ok(Step::Frame(frame)));
}

#[test]
fn an_extended_header_is_read_over() {
    let frame = Frame { kind: FrameKind::Sasl, channel: 0, body: b"x", len: 13 };
    assert_eq!(decode(b"\x00\x00\x00\x0d\x03\x01\x00\x00????x", MAX), Ok(Step::Frame(frame)));
}

#[test]
fn a_heartbeat_is_an_empty_frame() {
    let mut bytes = Vec::new();
    push_heartbeat(&mut bytes);
    let frame = Frame { kind: FrameKind::Amqp, channel: 0, body: b"", len: 8 };
    assert_eq!(decode(&bytes, MAX), Ok(Step::Frame(frame)));
}

#[test]
fn a_header_that_lies_is_refused() {
    let rows: [(&[u8], DecodeError); 8] = [
        (b"\x00\x00\x02\x01", DecodeError::FrameTooLong { bytes: 513, max: MAX }),
        (
            b"\xff\xff\xff\xff\x02\x00\x00\x00",
            DecodeError::FrameTooLong { bytes: u32::MAX as usize, max: MAX },
        ),
        (b"\x00\x00\x00\x07", DecodeError::FrameTooShort { bytes: 7 }),
        (b"\x00\x00\x00\x00\x02\x00\x00\x00", DecodeError::FrameTooShort { bytes: 0 }),
        (b"\x00\x00\x00\x08\x01\x00\x00\x00", DecodeError::DataOffset { words: 1 }),
        (b"\x00\x00\x00\x08\x00\x00\x00\x00", DecodeError::DataOffset { words: 0 }),
        (b"\x00\x00\x00\x0b\x03\x00\x00\x00???", DecodeError::DataOffset { words: 3 }),
        (b"\x00\x00\x00\x08\x02\x02\x00\x00", DecodeError::FrameType { octet: 2 }),
    ];
    for (bytes, error) in rows {
        assert_eq!(decode(bytes, MAX), Err(error), "{}", bytes.escape_ascii());
    }
}

#[test]
fn protocol_headers_are_told_apart() {
    for header in [ProtocolHeader::Amqp, ProtocolHeader::Sasl] {
        let bytes = header.bytes();
        for len in 4..bytes.len() {
            assert_eq!(decode(&bytes[..len], MAX), Ok(Step::Incomplete { frame_bytes: Some(8) }), "{len}");
        }
        assert_eq!(decode(bytes, MAX), Ok(Step::Header(header)));
    }
    for other in [&b"AMQP\x00\x00\x09\x01"[..], b"AMQP\x02\x01\x00\x00", b"AMQP\x00\x01\x00\x01", b"AMQP\x01"]
    {
        assert_eq!(decode(other, MAX), Err(DecodeError::ProtocolHeader), "{}", other.escape_ascii());
    }
    assert_eq!(protocol_header(b"GET / HT"), Err(DecodeError::ProtocolHeader));
    assert_eq!(protocol_header(b"AM"), Ok(Step::Incomplete { frame_bytes: Some(8) }));
}
