//! Frames, and what is no frame.

use imori_amqp091::codec::error::DecodeError;
use imori_amqp091::codec::frame::{
    FRAME_BYTES, Frame, FrameType, PROTOCOL_HEADER, Step, decode, protocol_header, push_body,
    push_content_header, push_frame, push_heartbeat, push_method,
};
use imori_amqp091::codec::methods::{Method, basic};
use imori_amqp091::codec::properties::ContentHeader;
use imori_amqp091::limits::FRAME_BYTES_MAX;
use proptest::prelude::*;

const MAX: usize = FRAME_BYTES_MAX as usize - FRAME_BYTES;

fn frame(kind: u8, channel: u16, payload: &[u8]) -> Vec<u8> {
    let len = (payload.len() as u32).to_be_bytes();
    [&[kind], &channel.to_be_bytes()[..], &len, payload, &[206]].concat()
}

fn any_frame() -> impl Strategy<Value = (FrameType, u16, Vec<u8>)> {
    let kinds = vec![FrameType::Method, FrameType::Header, FrameType::Body, FrameType::Heartbeat];
    (prop::sample::select(kinds), any::<u16>(), prop::collection::vec(any::<u8>(), 0..80))
}

#[test]
fn the_protocol_header_is_awaited_and_no_other() {
    for len in 0..8 {
        assert_eq!(protocol_header(&PROTOCOL_HEADER[..len]), Ok(false), "{len} bytes of it");
    }
    assert_eq!(protocol_header(PROTOCOL_HEADER), Ok(true));
    assert_eq!(protocol_header(&[&PROTOCOL_HEADER[..], b"rest"].concat()), Ok(true));
    for other in [
        &b"AMQP\x00\x01\x00\x00"[..],
        b"AMQP\x03\x01\x00\x00",
        b"AMQP\x00\x00\x08",
        b"GET / HTTP/1.1",
        b"\x16\x03\x01",
        b"\0",
    ] {
        assert_eq!(protocol_header(other), Err(DecodeError::ProtocolHeader), "{other:?}");
    }
}

#[test]
fn what_is_no_frame_is_refused_as_soon_as_that_is_known() {
    for (input, expected) in [
        (&frame(4, 0, b"")[..], DecodeError::FrameType { octet: 4 }),
        (b"GET / HTTP/1.1\r\n", DecodeError::FrameType { octet: b'G' }),
        (b"\x01\x00\x01\xff\xff\xff\xff", DecodeError::FrameTooLong { bytes: 0xffff_ffff, max: 100 }),
        (b"\x03\x00\x01\x00\x00\x00\x65", DecodeError::FrameTooLong { bytes: 101, max: 100 }),
        (b"\x03\x00\x01\x00\x00\x00\x01ab", DecodeError::FrameEnd { octet: b'b' }),
        (b"\x08\x00\x00\x00\x00\x00\x00\x00", DecodeError::FrameEnd { octet: 0 }),
    ] {
        assert_eq!(decode(input, 100), Err(expected), "{input:?}");
        for len in 0..7 {
            assert_eq!(decode(&input[..len], 100), Ok(Step::Incomplete { frame_bytes: None }));
        }
    }
}

#[test]
fn a_frame_of_the_largest_size_is_taken() {
    let input = frame(3, 1, &vec![7; MAX]);
    assert_eq!(input.len(), FRAME_BYTES_MAX as usize);
    assert_eq!(decode(&input[..7], MAX), Ok(Step::Incomplete { frame_bytes: Some(input.len()) }));
    let Ok(Step::Frame(whole)) = decode(&input, MAX) else { panic!("it is whole") };
    assert_eq!(whole.len(), input.len());
}

#[test]
fn content_is_written_in_frames_of_the_agreed_size() {
    for (len, parts) in [(0, 0), (1, 1), (100, 1), (101, 2), (1000, 10)] {
        let mut out = Vec::new();
        let body: Vec<u8> = (0..len).map(|byte| byte as u8).collect();
        push_method(&mut out, 7, &basic::Publish { routing_key: "k", ..Default::default() });
        push_content_header(&mut out, 7, body.len(), b"\0\0");
        push_body(&mut out, 7, &body, 100);
        push_heartbeat(&mut out);
        let mut rest = &out[..];
        let mut frames = Vec::new();
        while let Ok(Step::Frame(frame)) = decode(rest, 100) {
            rest = &rest[frame.len()..];
            frames.push(frame);
        }
        assert_eq!((rest.len(), frames.len()), (0, 3 + parts));
        assert!(
            matches!(Method::decode(frames[0].payload), Ok(Method::BasicPublish(publish)) if publish.routing_key == "k")
        );
        let header = ContentHeader { body_len: len as u64, properties: b"\0\0" };
        assert_eq!(ContentHeader::decode(frames[1].payload), Ok(header));
        let joined: Vec<u8> = frames[2..2 + parts].iter().flat_map(|frame| frame.payload).copied().collect();
        assert_eq!(joined, body);
        assert_eq!(frames[2 + parts], Frame { kind: FrameType::Heartbeat, channel: 0, payload: b"" });
        assert!(frames[..2 + parts].iter().all(|frame| frame.channel == 7));
    }
}

proptest! {
    #[test]
    fn frames_read_as_they_were_written((kind, channel, payload) in any_frame(), more in any::<[u8; 3]>()) {
        let mut out = Vec::new();
        push_frame(&mut out, kind, channel, |out| out.extend_from_slice(&payload));
        prop_assert_eq!(&out, &frame(kind as u8, channel, &payload));
        for len in 0..out.len() {
            let frame_bytes = (len >= 7).then_some(out.len());
            prop_assert_eq!(decode(&out[..len], MAX), Ok(Step::Incomplete { frame_bytes }));
        }
        let input = [&out[..], &more].concat();
        prop_assert_eq!(decode(&input, MAX), Ok(Step::Frame(Frame { kind, channel, payload: &payload })));
    }

    #[test]
    fn any_bytes_are_a_frame_an_error_or_a_beginning(input in prop::collection::vec(any::<u8>(), 0..200)) {
        match decode(&input, 64) {
            Ok(Step::Frame(whole)) => {
                prop_assert_eq!(&frame(whole.kind as u8, whole.channel, whole.payload), &input[..whole.len()]);
            }
            Ok(Step::Incomplete { frame_bytes }) => {
                prop_assert!(frame_bytes.is_none_or(|bytes| bytes > input.len() && bytes <= 64 + FRAME_BYTES));
            }
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }
}
