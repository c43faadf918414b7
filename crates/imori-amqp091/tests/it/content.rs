//! The frames of a message come together or apart.

use imori_amqp091::codec::frame::{FrameType, HEAD_BYTES, Step, decode, push_body, push_content_header};
use imori_amqp091::for_tests::{
    Behind, Content, ContentError, RESERVED_AFTER_BYTES, Unfinished, behind, frames,
};

const MAX: usize = 100;

fn header(channel: u16, body_len: usize) -> Vec<u8> {
    let mut out = Vec::new();
    push_content_header(&mut out, channel, body_len, b"\0\0");
    out
}

fn body(channel: u16, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    push_body(&mut out, channel, body, MAX);
    out
}

#[test]
fn a_content_that_stands_behind_its_method_is_taken_whole() {
    for len in [0, 1, MAX] {
        let text = vec![b'x'; len];
        let input = [header(1, len), body(1, &text), b"more".to_vec()].concat();
        let bytes = input.len() - 4;
        let content = Content { properties: b"\0\0", body: &text };
        let end = usize::from(len > 0);
        assert_eq!(behind(&input, 1, MAX), Behind::Whole { content, bytes, end }, "{len} bytes");
        let body_head = header(1, len).len() + HEAD_BYTES;
        for cut in 0..bytes {
            let expected = (cut >= body_head).then_some(bytes);
            assert_eq!(
                behind(&input[..cut], 1, MAX),
                Behind::Incomplete { bytes: expected },
                "{cut} of {len}"
            );
        }
    }
}

#[test]
fn a_content_with_other_frames_in_between_comes_apart() {
    for input in [
        header(2, 1),
        body(1, b"x"),
        [header(1, 1), header(2, 1)].concat(),
        [header(1, 1), body(2, b"x")].concat(),
        [header(1, 2), body(1, b"x")].concat(),
        [header(1, 1), body(1, b"xy")].concat(),
        [header(1, MAX + 1), body(1, &[b'x'; MAX + 1])].concat(),
        b"\x02\x00\x01\x00\x00\x00\x02\x00\x00\xce".to_vec(),
        b"\x02\x00\x01\xff\xff\xff\xff".to_vec(),
    ] {
        assert_eq!(behind(&input, 1, MAX), Behind::Apart, "{input:?}");
    }
}

#[test]
fn frames_that_come_apart_are_gathered() {
    let mut unfinished = Unfinished::new(b"method");
    let add = |unfinished: &mut Unfinished, kind, payload: &[u8]| unfinished.add(kind, payload, MAX);
    assert_eq!(add(&mut unfinished, FrameType::Body, b"x"), Err(ContentError::NoHeader));
    let payload = &header(1, 5)[7..];
    assert_eq!(add(&mut unfinished, FrameType::Header, &payload[..payload.len() - 1]), Ok(false));
    assert_eq!(add(&mut unfinished, FrameType::Header, b""), Err(ContentError::NoBody));
    assert_eq!((unfinished.came_bytes(), unfinished.whole_bytes()), (8, 8), "a declaration alone is nothing");
    assert_eq!(add(&mut unfinished, FrameType::Body, b"abc"), Ok(false));
    assert_eq!((unfinished.came_bytes(), unfinished.whole_bytes()), (11, 13));
    let too_long = ContentError::BodyTooLong { bytes: 6, announced: 5 };
    assert_eq!(add(&mut unfinished, FrameType::Body, b"def"), Err(too_long));
    assert_eq!(add(&mut unfinished, FrameType::Body, b"de"), Ok(true));
    let finished = unfinished.finish().unwrap();
    assert_eq!(
        (&*finished.method, &*finished.properties, &*finished.body),
        (&b"method"[..], &b"\0\0"[..], &b"abcde"[..])
    );
}

/// SECURITY LIM-07: a declared length reserves no memory before much of the body has arrived.
#[test]
fn a_long_body_gets_all_its_memory_once() {
    let (part, parts) = (vec![b'x'; 64 * 1024], 16);
    let len = part.len() * parts;
    let mut unfinished = Unfinished::new(b"method");
    let payload = [&[0, 60, 0, 0][..], &(len as u64).to_be_bytes(), &[0, 0]].concat();
    assert_eq!(unfinished.add(FrameType::Header, &payload, len), Ok(false));
    for number in 1..=parts {
        assert_eq!(unfinished.add(FrameType::Body, &part, len), Ok(number == parts));
        let (came, capacity) = (unfinished.body.len(), unfinished.body.capacity());
        let expected = if came < RESERVED_AFTER_BYTES { 2 * came } else { len };
        assert!(capacity <= expected, "{capacity} bytes for {came}");
    }
    assert_eq!(unfinished.finish().unwrap().body.capacity(), len, "it can be kept without a copy");
}

#[test]
fn a_body_over_the_limit_is_refused_before_it_comes() {
    for bytes in [MAX as u64 + 1, u64::from(u32::MAX) + 1, u64::MAX] {
        let mut unfinished = Unfinished::new(b"method");
        let payload = [&[0, 60, 0, 0][..], &bytes.to_be_bytes(), &[0, 0]].concat();
        let refused = unfinished.add(FrameType::Header, &payload, MAX);
        assert_eq!(refused, Err(ContentError::BodyOverLimit { bytes }));
    }
}

#[test]
fn a_message_waits_as_its_frames() {
    let text = vec![b'x'; 3 * MAX];
    let content = Content { properties: b"\0\0", body: &text };
    let waiting = frames(7, b"method", &content);
    let Ok(Step::Frame(method)) = decode(&waiting, usize::MAX) else { panic!("it is a frame") };
    assert_eq!((method.channel, method.payload), (7, &b"method"[..]));
    let Behind::Whole { content: read, .. } = behind(&waiting[method.len()..], 7, usize::MAX) else {
        panic!("all is there")
    };
    assert_eq!(read, content);
}
