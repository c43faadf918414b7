//! Any bytes, whole and in pieces, as the STOMP decoder takes them.
//!
//! Held: a step consumes a byte, fails or waits; pieces give the same frames as the whole; a
//! frame that is encoded again reads the same; nothing is awaited past the limits.
//! The first byte of the input chooses version and login, the second the sizes of the pieces.

use imori_stomp::codec::command::Command;
use imori_stomp::codec::decode::{Decoder, Step};
use imori_stomp::codec::encode::FrameWriter;
use imori_stomp::codec::frame::{Frame, HeaderTable};
use imori_stomp::codec::version::Version;
use imori_stomp::limits::Limits;

use crate::planted::fail_if_planted;

/// A frame that owns what it says.
#[derive(Debug, PartialEq, Eq)]
struct Owned {
    command: Command,
    headers: Vec<(Vec<u8>, Vec<u8>)>,
    body: Vec<u8>,
}

/// What a run of the decoder came to.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    frames: Vec<Owned>,
    is_refused: bool,
    rest: usize,
}

/// Runs one input.
pub(crate) fn test_one_input(data: &[u8]) {
    let [setup, sizes, input @ ..] = data else { return };
    let version = match setup % 4 {
        0 => None,
        1 => Some(Version::V10),
        2 => Some(Version::V11),
        _ => Some(Version::V12),
    };
    // In pieces a wrong header may be refused only when the headers end, so they do end.
    let input = &[input, b"\n\n\0"].concat();
    let whole = run(version, limits(), input, usize::MAX);
    let pieces = run(version, limits(), input, usize::from(sizes % 64) + 1);
    assert_eq!(whole, pieces, "pieces give the same frames");
    let Some(version) = version else { return };
    for frame in &whole.frames {
        let bytes = encoded(frame, version);
        // It may have gained a header, so that it would be over the small limits.
        let again = run(Some(version), Limits::default(), &bytes, usize::MAX);
        assert!(!again.is_refused && again.rest == 0, "{frame:?} is read again");
        let [again] = again.frames.as_slice() else { panic!("{frame:?} is one frame") };
        assert_eq!(read_as_written(frame), *again);
    }
}

fn limits() -> Limits {
    // Small enough for a fuzzer to reach.
    Limits {
        login_frame_bytes_max: 256,
        body_bytes_max: 512,
        header_count_max: 8,
        header_bytes_max: 256,
        ..Limits::default()
    }
}

fn run(version: Option<Version>, limits: Limits, input: &[u8], size: usize) -> Outcome {
    let mut decoder = Decoder::new(limits.clone());
    if let Some(version) = version {
        decoder.connected(version);
    }
    let mut table = HeaderTable::default();
    let mut outcome = Outcome { frames: Vec::new(), is_refused: false, rest: 0 };
    let (mut start, mut end) = (0, 0);
    let mut steps = 0;
    while end < input.len() {
        end = end.saturating_add(size).min(input.len());
        loop {
            steps += 1;
            assert!(steps <= 2 * input.len() + 2, "each step consumes a byte or waits for one");
            match decoder.decode(&input[start..end], &mut table) {
                Ok(Step::Frame { frame, consumed }) => {
                    assert!(consumed > 0 && consumed <= end - start);
                    outcome.frames.push(owned(&frame));
                    start += consumed;
                }
                Ok(Step::Noise { consumed }) => {
                    assert!(consumed > 0 && consumed <= end - start);
                    start += consumed;
                }
                Ok(Step::Incomplete { needed }) => {
                    // Command, headers, empty line, body and NUL.
                    let max = 13 + limits.header_bytes_max + 2 + limits.body_bytes_max;
                    assert!(end - start <= max, "nothing is awaited past the limits");
                    assert!(needed.is_none_or(|needed| needed > end - start));
                    break;
                }
                Err(error) => {
                    assert!(!error.to_string().contains(char::is_control), "{error:?} is one line");
                    outcome.is_refused = true;
                    return outcome;
                }
            }
        }
    }
    outcome.rest = end - start;
    outcome
}

fn owned(frame: &Frame<'_>) -> Owned {
    if let Some(length) = frame.headers.raw("content-length") {
        planted(length);
    }
    let headers =
        frame.headers.iter().map(|header| (header.name().to_vec(), header.value().to_vec())).collect();
    Owned { command: frame.command, headers, body: frame.body.to_vec() }
}

fn encoded(frame: &Owned, version: Version) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = FrameWriter::new(&mut out, frame.command, version);
    for (name, value) in without_length(frame) {
        assert!(writer.user_header(name, value), "what was read can be written");
    }
    writer.body(&frame.body);
    out
}

/// The encoder counts the body itself.
fn read_as_written(frame: &Owned) -> Owned {
    let mut headers: Vec<_> = without_length(frame).cloned().collect();
    headers.push((b"content-length".to_vec(), frame.body.len().to_string().into_bytes()));
    Owned { command: frame.command, headers, body: frame.body.clone() }
}

fn without_length(frame: &Owned) -> impl Iterator<Item = &(Vec<u8>, Vec<u8>)> {
    frame.headers.iter().filter(|(name, _)| name != b"content-length")
}

/// Does nothing unless a fault is planted: then a leading zero is taken for no number.
fn planted(length: &[u8]) {
    let is_found = length.len() > 1 && length.starts_with(b"0");
    fail_if_planted(is_found);
}
