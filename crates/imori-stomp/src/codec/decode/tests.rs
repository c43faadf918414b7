use proptest::prelude::*;

use super::*;
use crate::codec::encode::FrameWriter;
use crate::codec::escape::trim_spaces;
use crate::limits::{BODY_BYTES_MAX, HEADER_BYTES_MAX, HEADER_COUNT_MAX, LOGIN_FRAME_BYTES_MAX};

/// Describes each step of the decoder in a line; the last line is an error or the remaining bytes,
/// if any.
fn described(version: Option<Version>, chunks: &[&[u8]]) -> Vec<String> {
    let mut decoder = Decoder::new(Limits::default());
    if let Some(version) = version {
        decoder.connected(version);
    }
    let mut table = HeaderTable::default();
    let mut buffer = Vec::new();
    let mut lines = Vec::new();
    for chunk in chunks {
        buffer.extend_from_slice(chunk);
        loop {
            let len = match decoder.decode(&buffer, &mut table) {
                Ok(Step::Frame { frame, consumed }) => {
                    lines.push(line(&frame));
                    consumed
                }
                Ok(Step::Noise { consumed }) => consumed,
                Ok(Step::Incomplete { .. }) => break,
                Err(error) => {
                    lines.push(format!("error: {error}"));
                    return lines;
                }
            };
            assert!((1..=buffer.len()).contains(&len), "a step consumes what is there");
            buffer.drain(..len);
        }
    }
    if !buffer.is_empty() {
        lines.push(format!("rest: {}", buffer.len()));
    }
    lines
}

fn line(frame: &Frame<'_>) -> String {
    let mut line = frame.command.to_string();
    for header in frame.headers.iter() {
        line += &format!(" {}={}", header.name().escape_ascii(), header.value().escape_ascii());
    }
    format!("{line} | {}", frame.body.escape_ascii())
}

fn check(version: Version, input: &str, expected: &[&str]) {
    assert_eq!(described(Some(version), &[input.as_bytes()]), expected, "{version} {input:?}");
    let bytes: Vec<&[u8]> = input.as_bytes().chunks(1).collect();
    assert_eq!(described(Some(version), &bytes), expected, "byte by byte: {version} {input:?}");
}

#[test]
fn frames_are_read_alike_in_every_version() {
    for (input, expected) in [
        ("SEND\n\n\0", &["SEND | "][..]),
        ("SEND\ndestination:/queue/a\n\nhi\0", &["SEND destination=/queue/a | hi"]),
        ("\n\r\n\nSEND\n\n\0\n\r\nACK\n\n\0\n", &["SEND | ", "ACK | "]),
        ("\0\n\0\r\nSEND\n\na\0\0\n\0\r\n\0SEND\n\nb\0\0", &["SEND | a", "SEND | b"]),
        ("SEND\n\na\0SEND\n\nb\0", &["SEND | a", "SEND | b"]),
        ("SEND\ncontent-length:3\n\na\0b\0", &["SEND content-length=3 | a\\x00b"]),
        ("SEND\ncontent-length:0\n\n\0", &["SEND content-length=0 | "]),
        ("SEND\ncontent-length:002\n\nhi\0", &["SEND content-length=002 | hi"]),
        (
            "SEND\ncontent-length:2\ncontent-length:2\n\nhi\0",
            &["SEND content-length=2 content-length=2 | hi"],
        ),
        // CR LF ends a line in every version.
        ("SEND\r\na:b\r\nc:d\n\r\nhi\r\n\0", &["SEND a=b c=d | hi\\r\\n"]),
        // Clients write unescaped colons within values.
        ("SEND\na:b:c::\n\n\0", &["SEND a=b:c:: | "]),
        ("SEND\na:\n\n\0", &["SEND a= | "]),
        ("SEND\nk:1\nk:2\n\n\0", &["SEND k=1 k=2 | "]),
        ("SEND\n\tk\x0b:\t1\x1f\n\n\0", &["SEND \\tk\\x0b=\\t1\\x1f | "]),
        // CONNECT and CONNECTED have no escapes.
        ("CONNECT\npasscode:a\\tb\\\n\n\0", &["CONNECT passcode=a\\\\tb\\\\ | "]),
        ("CONNECTED\nserver:a\\c\n\n\0", &["CONNECTED server=a\\\\c | "]),
        ("STOMP\nlogin:a\\n\n\n\0", &["STOMP login=a\\\\n | "]),
        ("SEN", &["rest: 3"]),
        ("SEND\na:b\n\nhi", &["rest: 12"]),
        ("\r", &["rest: 1"]),
    ] {
        for version in Version::ALL {
            check(version, input, expected);
        }
    }
}

#[test]
fn versions_differ_in_escapes_and_spaces() {
    let undefined = |line, escape| {
        format!(
            "error: header line {line} holds the undefined escape `{escape}`; use `\\n`, `\\c`, `\\\\` and, in \
             STOMP 1.2, `\\r`"
        )
    };
    for (input, v10, v11, v12) in [
        (
            "SEND\na\\c:\\n\\\\\n\n\0",
            "SEND a\\\\c=\\\\n\\\\\\\\ | ",
            "SEND a:=\\n\\\\ | ",
            "SEND a:=\\n\\\\ | ",
        ),
        ("SEND\na:\\r\n\n\0", "SEND a=\\\\r | ", &undefined(1, "\\r"), "SEND a=\\r | "),
        ("SEND\na:b\nc:\\t\n\n\0", "SEND a=b c=\\\\t | ", &undefined(2, "\\t"), &undefined(2, "\\t")),
        ("SEND\na:b\nc\\:d\n\n\0", "SEND a=b c\\\\=d | ", &undefined(2, "\\"), &undefined(2, "\\")),
        ("SEND\na: b \n\n\0", "SEND a=b  | ", "SEND a= b  | ", "SEND a= b  | "),
        (
            "SEND\ncontent-length: 2\n\nhi\0",
            "SEND content-length=2 | hi",
            "error: content-length ` 2` is not a number of bytes; write it in digits, or leave it out for a body \
             without NUL",
            "error: content-length ` 2` is not a number of bytes; write it in digits, or leave it out for a body \
             without NUL",
        ),
    ] {
        for (version, expected) in Version::ALL.into_iter().zip([v10, v11, v12]) {
            check(version, input, &[expected]);
        }
    }
}

#[test]
fn wrong_frames_are_refused_with_a_reason() {
    for (input, expected) in [
        ("FOO\n\n\0", "unknown command `FOO`; "),
        ("send\n\n\0", "unknown command `send`; "),
        ("SEND \n\n\0", "unknown command `SEND `; "),
        ("SE\0ND\n\n\0", "unknown command `SE\\u{0}ND`; "),
        ("GET / HTTP/1.1\r\nHost: x\r\n\r\n", "unknown command `GET / HTTP/1.`; "),
        ("UNSUBSCRIBER\n\n\0", "unknown command `UNSUBSCRIBER`; "),
        ("\rSEND\n\n\0", "carriage return without line feed between frames; "),
        ("SEND\nabc\n\n\0", "header line 1, `abc`, has no colon; "),
        ("SEND\na:b\nabc\n\n\0", "header line 2, `abc`, has no colon; "),
        ("SEND\n:b\n\n\0", "header line 1 has no name before its colon; "),
        ("SEND\na:b\0\n\n\0", "header line 1 holds a NUL; "),
        ("DISCONNECT\n\0", "header line 1 holds a NUL; "),
        ("SEND\na\rb:c\n\n\0", "header line 1 holds a carriage return; "),
        ("SEND\na:b\nc:d\r\r\n\n\0", "header line 2 holds a carriage return; "),
        ("SEND\n\ra:b\n\n\0", "header line 1 holds a carriage return; "),
        ("SEND\ncontent-length:2\n\nhey\0", "body of content-length `2` is not followed by NUL; "),
    ] {
        for version in Version::ALL {
            let whole = described(Some(version), &[input.as_bytes()]);
            let bytes: Vec<&[u8]> = input.as_bytes().chunks(1).collect();
            for lines in [whole, described(Some(version), &bytes)] {
                let Some(last) = lines.last() else { panic!("{input:?} is refused") };
                assert!(last.starts_with("error: "), "{input:?}: {last}");
                // Byte by byte, an unknown command is refused before its line ends.
                let is_expected = last.contains(expected) || last.contains("unknown command");
                assert!(is_expected, "{input:?}: {last}");
            }
        }
    }
}

/// SECURITY LIM-07 and LIM-08: an invalid length is refused as soon as the headers end.
#[test]
fn wrong_content_length_is_refused_before_the_body() {
    let invalid = |value: &str| {
        format!(
            "error: content-length `{value}` is not a number of bytes; write it in digits, or leave it out for a \
             body without NUL"
        )
    };
    let too_long =
        format!("error: body of the frame is over {BODY_BYTES_MAX} bytes; send it in several messages");
    for (value, expected) in [
        ("-1", invalid("-1")),
        ("+1", invalid("+1")),
        ("", invalid("")),
        ("1 ", invalid("1 ")),
        ("0x1", invalid("0x1")),
        ("1e1", invalid("1e1")),
        ("1.0", invalid("1.0")),
        ("\u{661}", invalid("\u{661}")),
        // 20 digits, above and below 2^64.
        ("99999999999999999999", invalid("99999999999999999999")),
        ("18446744073709551616", invalid("18446744073709551616")),
        ("18446744073709551615", too_long.clone()),
        ("9223372036854775808", too_long.clone()),
        ("9223372036854775807", too_long.clone()),
        ("4294967296", too_long.clone()),
        ("4294967295", too_long.clone()),
        ("2147483648", too_long.clone()),
        ("16777217", too_long),
        ("16777216", "rest: 30".to_string()),
        ("1\ncontent-length:2", "error: content-length is both `1` and `2`; send it once".to_string()),
        ("1\ncontent-length:-1", invalid("-1")),
        ("1\ncontent-length:1", "rest: 40".to_string()),
    ] {
        check(Version::V12, &format!("SEND\ncontent-length:{value}\n\n"), &[expected.as_str()]);
    }
}

/// SECURITY LIM-10: each limit, and one more.
#[test]
fn limits_are_reached_but_not_passed() {
    let headers = |count: usize| format!("SEND\n{}\n\0", "a:b\n".repeat(count));
    let header_bytes = |bytes: usize| format!("SEND\na:{}\n\n\0", "b".repeat(bytes - 3));
    let body = |bytes: usize| format!("SEND\n\n{}\0", "b".repeat(bytes));
    let limits = Limits { body_bytes_max: 1000, ..Limits::default() };
    for (input, is_refused, unit) in [
        (headers(HEADER_COUNT_MAX), false, "headers"),
        (headers(HEADER_COUNT_MAX + 1), true, "headers"),
        (header_bytes(HEADER_BYTES_MAX), false, "bytes"),
        (header_bytes(HEADER_BYTES_MAX + 1), true, "bytes"),
        (body(1000), false, "bytes"),
        (body(1001), true, "bytes"),
    ] {
        // In one piece, and in small pieces: the decoder must not wait for bytes past the limit.
        for step in [input.len(), 997] {
            let mut decoder = Decoder::new(limits.clone());
            decoder.connected(Version::V12);
            let mut table = HeaderTable::default();
            let mut outcome = None;
            for len in (step..=input.len() + step).step_by(step) {
                let len = len.min(input.len());
                match decoder.decode(&input.as_bytes()[..len], &mut table) {
                    Ok(Step::Incomplete { .. }) => {}
                    Ok(_) => outcome = Some(Ok(())),
                    Err(error) => outcome = Some(Err(error.to_string())),
                }
                if outcome.is_some() {
                    break;
                }
            }
            match outcome.unwrap() {
                Ok(()) => assert!(!is_refused, "{} bytes in steps of {step}", input.len()),
                Err(error) => assert!(is_refused && error.contains(unit), "{error}, in steps of {step}"),
            }
        }
    }
}

/// SECURITY LIM-01: an unfinished frame before login is refused at the limit.
#[test]
fn endless_first_frame_is_refused_at_its_limit() {
    let max = LOGIN_FRAME_BYTES_MAX;
    let error = format!("frame before login is over {max} bytes; send CONNECT first, with fewer headers");
    for (start, repeated) in [
        ("CONNECT\n", "a:b\n"),
        ("CONNECT\na:", "b"),
        ("CONNECT\n\n", "x"),
        ("CONNECT\ncontent-length:65520\n\n", ""),
    ] {
        let limits = Limits { header_count_max: 100_000, ..Limits::default() };
        let mut decoder = Decoder::new(limits);
        let mut table = HeaderTable::default();
        let mut buffer = start.as_bytes().to_vec();
        let refused = loop {
            match decoder.decode(&buffer, &mut table) {
                Ok(Step::Incomplete { .. }) => buffer.extend_from_slice(repeated.as_bytes()),
                Ok(step) => panic!("{step:?}"),
                Err(error) => break error,
            }
            assert!(buffer.len() <= max + 16, "{start:?} is not cut");
        };
        assert_eq!(refused.to_string(), error, "{start:?}");
    }
    // A frame at the limit is accepted; one byte more is not.
    for (body_len, is_refused) in [(max - 10, false), (max - 9, true)] {
        let input = format!("CONNECT\n\n{}\0", "x".repeat(body_len));
        let mut table = HeaderTable::default();
        let step = Decoder::new(Limits::default()).decode(input.as_bytes(), &mut table).map(|_| ());
        assert_eq!(step.is_err(), is_refused, "{body_len}");
    }
}

#[test]
fn length_of_a_frame_is_known_from_its_headers() {
    let mut decoder = Decoder::new(Limits::default());
    decoder.connected(Version::V12);
    let mut table = HeaderTable::default();
    for (input, expected) in [
        ("SEND\ncontent-length:5\n", None),
        ("SEND\ncontent-length:5\n\n", Some(29)),
        ("SEND\ncontent-length:5\n\nab", Some(29)),
        ("SEND\ncontent-length:5\n\nabcde", Some(29)),
    ] {
        match decoder.decode(input.as_bytes(), &mut table) {
            Ok(Step::Incomplete { needed }) => assert_eq!(needed, expected, "{input:?}"),
            other => panic!("{input:?}: {other:?}"),
        }
    }
}

#[test]
fn plain_headers_mean_the_same_in_every_version() {
    for (headers, expected) in [
        ("", true),
        ("destination:/queue/a\npriority:4\n", true),
        ("a:b:c\n", false),
        ("a:\\n\n", false),
        ("a\\c:b\n", false),
        ("a:b\r\n", false),
        ("a:b \n", true),
    ] {
        let input = format!("SEND\n{headers}\n\0");
        for version in Version::ALL {
            let mut decoder = Decoder::new(Limits::default());
            decoder.connected(version);
            let mut table = HeaderTable::default();
            let Ok(Step::Frame { frame, .. }) = decoder.decode(input.as_bytes(), &mut table) else {
                panic!("{headers:?} is a frame");
            };
            assert_eq!(frame.headers.is_plain(), expected, "{headers:?}");
            assert_eq!(frame.headers.block(), headers.as_bytes());
        }
    }
    for (version, expected) in [(Version::V10, false), (Version::V11, true), (Version::V12, true)] {
        let mut decoder = Decoder::new(Limits::default());
        decoder.connected(version);
        let mut table = HeaderTable::default();
        let Ok(Step::Frame { frame, .. }) = decoder.decode(b"SEND\na: b\n\n\0", &mut table) else {
            panic!("it is a frame in {version}");
        };
        assert_eq!(frame.headers.is_plain(), expected, "{version}");
    }
}

/// SECURITY XPI-04.
#[test]
fn header_that_is_not_utf_8_is_refused_where_it_has_to_be() {
    for (version, expected) in [
        (Version::V10, "SEND a=b c=\\xff | "),
        (Version::V11, "error: header line 2 is not UTF-8; encode it so, or put it into the body"),
        (Version::V12, "error: header line 2 is not UTF-8; encode it so, or put it into the body"),
    ] {
        assert_eq!(described(Some(version), &[b"SEND\na:b\nc:\xff\n\n\0"]), [expected], "{version}");
    }
    let mut decoder = Decoder::new(Limits::default());
    decoder.connected(Version::V10);
    let mut table = HeaderTable::default();
    let Ok(Step::Frame { frame, .. }) = decoder.decode(b"SEND\nc:\xff\n\n\0", &mut table) else {
        panic!("it is a frame");
    };
    assert!(!frame.headers.is_plain(), "other versions cannot have it as it is");
}

#[test]
fn first_of_repeated_headers_counts() {
    let mut decoder = Decoder::new(Limits::default());
    decoder.connected(Version::V12);
    let mut table = HeaderTable::default();
    let input = b"MESSAGE\nfoo:World\\c\nfoo:Hello\nbar:1\n\n\0";
    let Ok(Step::Frame { frame, consumed }) = decoder.decode(input, &mut table) else {
        panic!("it is a frame")
    };
    assert_eq!(consumed, input.len());
    assert_eq!(frame.headers.len(), 3);
    assert_eq!(frame.headers.raw("foo"), Some(&b"World\\c"[..]));
    assert_eq!(frame.headers.value("foo").as_deref(), Some(&b"World:"[..]));
    assert_eq!(frame.headers.raw("baz"), None);
}

#[test]
fn connect_is_trimmed_only_when_it_is_asked_for() {
    let mut decoder = Decoder::new(Limits::default());
    let mut table = HeaderTable::default();
    let input = b"CONNECT\nlogin: guest\ncontent-length: 0\n\n\0";
    let Ok(Step::Frame { frame, .. }) = decoder.decode(input, &mut table) else { panic!("it is a frame") };
    assert_eq!(frame.headers.raw("login"), Some(&b" guest"[..]));
    assert_eq!(frame.headers.trimmed().raw("login"), Some(&b"guest"[..]));
}

/// A frame as the encoder takes it.
#[derive(Debug, Clone)]
struct Written {
    command: Command,
    headers: Vec<(Vec<u8>, Vec<u8>)>,
    body: Option<Vec<u8>>,
}

fn text() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![any::<u8>(), prop::sample::select(&b":\\\r\n\0 abcnrc"[..])];
    prop::collection::vec(byte, 0..20)
}

/// Generates UTF-8 header names and values, since all versions but 1.0 demand UTF-8.
fn header_text() -> impl Strategy<Value = Vec<u8>> {
    let special: Vec<char> = ":\\\r\n\0 abcnrc".chars().collect();
    let character = prop_oneof![any::<char>(), prop::sample::select(special)];
    prop::collection::vec(character, 0..20).prop_map(|text| text.into_iter().collect::<String>().into_bytes())
}

fn written() -> impl Strategy<Value = Written> {
    let headers = prop::collection::vec((header_text(), header_text()), 0..8);
    (prop::sample::select(&Command::ALL[..]), headers, prop::option::of(text()))
        .prop_map(|(command, headers, body)| Written { command, headers, body })
}

/// Encodes frames; returns the bytes and the expected descriptions, without headers that the
/// version cannot express.
fn encoded(frames: &[Written], version: Version) -> (Vec<u8>, Vec<String>) {
    let mut out = Vec::new();
    let mut lines = Vec::new();
    for Written { command, headers, body } in frames {
        let mut line = command.to_string();
        let mut writer = FrameWriter::new(&mut out, *command, version);
        for (name, value) in headers {
            if name == b"content-length" || !writer.user_header(name, value) {
                continue;
            }
            let value = if version == Version::V10 { trim_spaces(value) } else { value };
            line += &format!(" {}={}", name.escape_ascii(), value.escape_ascii());
        }
        match body {
            None => writer.end(),
            Some(body) => {
                line += &format!(" content-length={}", body.len());
                writer.body(body);
            }
        }
        lines.push(format!("{line} | {}", body.as_deref().unwrap_or_default().escape_ascii()));
    }
    (out, lines)
}

fn version() -> impl Strategy<Value = Version> {
    prop::sample::select(&Version::ALL[..])
}

proptest! {
    #[test]
    fn decoding_after_encoding_is_identity(version in version(), frames in prop::collection::vec(written(), 0..5)) {
        let (bytes, lines) = encoded(&frames, version);
        prop_assert_eq!(described(Some(version), &[&bytes]), lines);
    }

    #[test]
    fn every_prefix_of_a_frame_is_incomplete(version in version(), frame in written()) {
        let (bytes, _) = encoded(&[frame], version);
        for len in 0..bytes.len() {
            let mut decoder = Decoder::new(Limits::default());
            decoder.connected(version);
            let mut table = HeaderTable::default();
            let step = decoder.decode(&bytes[..len], &mut table);
            let is_incomplete = matches!(step, Ok(Step::Incomplete { needed }) if needed.is_none_or(|n| n == bytes.len()));
            prop_assert!(is_incomplete, "{} of {:?}: {:?}", len, bytes, step);
        }
    }

    #[test]
    fn splits_change_nothing(
        version in version(),
        frames in prop::collection::vec(written(), 1..4),
        sizes in prop::collection::vec(1..40_usize, 1..20),
    ) {
        let (bytes, lines) = encoded(&frames, version);
        let mut chunks = Vec::new();
        let mut rest = &bytes[..];
        for size in sizes.iter().cycle() {
            let (chunk, after) = rest.split_at(rest.len().min(*size));
            chunks.push(chunk);
            rest = after;
            if rest.is_empty() {
                break;
            }
        }
        prop_assert_eq!(described(Some(version), &chunks), lines);
    }

    #[test]
    fn any_bytes_are_taken_or_refused(
        version in prop::option::of(version()),
        chunks in prop::collection::vec(text(), 0..8),
        is_frame in any::<bool>(),
    ) {
        let start = if is_frame { &b"SEND\n"[..] } else { b"" };
        let mut chunks: Vec<&[u8]> = chunks.iter().map(Vec::as_slice).collect();
        chunks.insert(0, start);
        described(version, &chunks);
    }
}
