use super::*;

const FIRST: Correlation = Correlation { run: 0xdead_beef, requester: 3, number: 0 };

/// The bytes of grpc-go 1.85 to the call that logs in: settings, leave to send more, a
/// PING, and the reply with its status.
const LOGIN: &[u8] = b"\
    \x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x05\x00\x00\x40\x00\
    \x00\x00\x00\x04\x01\x00\x00\x00\x00\
    \x00\x00\x04\x08\x00\x00\x00\x00\x00\x00\x00\x00\x06\
    \x00\x00\x08\x06\x00\x00\x00\x00\x00\x02\x04\x10\x10\x09\x0e\x07\x07\
    \x00\x00\x0e\x01\x04\x00\x00\x00\x01\x88\x5f\x8b\x1d\x75\xd0\x62\x0d\x26\x3d\x4c\x4d\x65\x64\
    \x00\x00\x06\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x012\
    \x00\x00\x18\x01\x05\x00\x00\x00\x01\x40\x88\x9a\xca\xc8\xb2\x12\x34\xda\x8f\x010\x40\x89\x9a\xca\xc8\
    \xb5\x25\x42\x07\x31\x7f\x00";

/// Its replies to the calls 1 and 0, in this order.
const REPLIES: &[u8] = b"\
    \x00\x00\x02\x01\x04\x00\x00\x00\x05\x88\xc0\
    \x00\x00\x08\x00\x00\x00\x00\x00\x05\x00\x00\x00\x00\x0311 \
    \x00\x00\x02\x01\x05\x00\x00\x00\x05\xbf\xbe\
    \x00\x00\x02\x01\x04\x00\x00\x00\x03\x88\xc0\
    \x00\x00\x08\x00\x00\x00\x00\x00\x03\x00\x00\x00\x00\x0310 \
    \x00\x00\x02\x01\x05\x00\x00\x00\x03\xbf\xbe";

/// Its reply to a method that it does not know.
const UNKNOWN_METHOD: &[u8] = b"\
    \x00\x00\x18\x01\x05\x00\x00\x00\x07\x88\xc0\x7f\x00\x0212\x7f\x00\x8e\xb6\xae\xb5\x1f\xc5\x4a\x20\xb6\
    \x77\x31\x0a\xa0\xd7\xbb";

const SETTINGS_ACK: &[u8] = b"\0\0\0\x04\x01\0\0\0\0";

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    http2::push_frame(&mut out, kind, flags, stream, payload);
    out
}

/// A reader that has heard the login, and a request of a requester that has it.
fn logged_in() -> (Box<dyn Reader>, RequestTemplate) {
    let mut reader = Grpc.reader();
    assert_eq!(heard(&mut *reader, LOGIN, || LOGIN.len()).last().unwrap(), "Confirmed(None)");
    let none = Replies { address: String::new(), source: None };
    let mut request = Grpc.request(&Destination::Service(String::new()), &none, 3, FIRST);
    reader.serve(FIRST, &mut request);
    (reader, request)
}

/// The readings of bytes that come in pieces of these sizes.
fn heard(reader: &mut dyn Reader, bytes: &[u8], mut size: impl FnMut() -> usize) -> Vec<String> {
    let mut told = Vec::new();
    let (mut start, mut end) = (0, 0);
    while end < bytes.len() {
        end = (end + size().max(1)).min(bytes.len());
        loop {
            match reader.take(&bytes[start..end]) {
                Ok(Some((heard, used))) => {
                    assert!(used > 0 && used <= end - start);
                    start += used;
                    match heard {
                        Heard::Nothing => {}
                        Heard::Delivery(reply) => {
                            told.push(format!(
                                "{} {}",
                                text(reply.correlation),
                                String::from_utf8_lossy(reply.body)
                            ));
                        }
                        heard => told.push(format!("{heard:?}")),
                    }
                }
                Ok(None) => break,
                Err(error) => {
                    told.push(format!("refused: {error}"));
                    return told;
                }
            }
        }
    }
    told
}

/// All that is made of what follows a login, in one piece.
fn told(bytes: &[u8]) -> String {
    heard(&mut *logged_in().0, bytes, || bytes.len()).join("; ")
}

/// Numbers that look random and repeat.
fn numbers(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    }
}

/// Names and values of a request's headers, and the body of its message.
fn request_of(bytes: &[u8], headers: &mut HeaderDecoder) -> (u32, Vec<String>, Vec<u8>) {
    let (head, used) = Frame::take(bytes).unwrap().unwrap();
    assert_eq!((head.kind, head.flags), (kind::HEADERS, flag::END_HEADERS));
    let mut fields = Vec::new();
    headers
        .decode(head.payload, |name, value| fields.push(format!("{} {}", text(name), text(value))))
        .unwrap();
    let (data, _) = Frame::take(&bytes[used..]).unwrap().unwrap();
    assert_eq!((data.kind, data.flags, data.stream), (kind::DATA, flag::END_STREAM, head.stream));
    (head.stream, fields, data.payload.to_vec())
}

#[test]
fn a_login_is_a_call_and_later_requests_name_its_headers() {
    imori_bench::driver::bring(&crate::PROTOCOLS);
    for (url, path, authority) in [
        ("grpc://h:1", ":path /imori.bench.Successor/Call", ":authority h:1"),
        ("grpc://[::1]:1/a.B/C", ":path /a.B/C", ":authority [::1]:1"),
    ] {
        let mut out = Vec::new();
        Grpc.log_in(&url.parse().unwrap(), &mut out);
        let mut rest = out.strip_prefix(http2::PREFACE).unwrap();
        for expected in [kind::SETTINGS, kind::WINDOW_UPDATE] {
            let (frame, used) = Frame::take(rest).unwrap().unwrap();
            assert_eq!(frame.kind, expected);
            rest = &rest[used..];
        }
        let mut headers = HeaderDecoder::new();
        let (stream, fields, body) = request_of(rest, &mut headers);
        let expected = [
            ":method POST",
            ":scheme http",
            path,
            authority,
            "content-type application/grpc",
            "user-agent imori-bench",
            "te trailers",
        ];
        assert_eq!((stream, &fields[..], &body[..]), (1, &expected.map(str::to_owned)[..], FIRST_BODY));
        let (_, request) = logged_in();
        let mut out = Vec::new();
        request.append(&mut out, 7, 99);
        assert_eq!(request_of(&out, &mut headers), (17, fields, b"\0\0\0\0\x0399 ".to_vec()));
    }
}

#[test]
fn a_conversation_reads_the_same_in_any_pieces() {
    let bytes = [LOGIN, REPLIES, UNKNOWN_METHOD].concat();
    let run = |size: &mut dyn FnMut() -> usize| {
        let mut reader = Grpc.reader();
        reader.serve(FIRST, &mut logged_in().1);
        heard(&mut *reader, &bytes, size)
    };
    let whole = run(&mut || bytes.len());
    let expected = [
        &format!("Ping({SETTINGS_ACK:?})"),
        "Ping([0, 0, 8, 6, 1, 0, 0, 0, 0, 2, 4, 16, 16, 9, 14, 7, 7])",
        "Confirmed(None)",
        "deadbeef-0003-00000001 11 ",
        "deadbeef-0003-00000000 10 ",
        "Error(\"a call ends with status UNIMPLEMENTED (12): unknown service a.B\")",
    ];
    assert_eq!(whole, expected);
    for size in 1..bytes.len() {
        assert_eq!(run(&mut || size), whole, "{size}");
    }
    for seed in 0..200 {
        let mut next = numbers(seed);
        assert_eq!(run(&mut || (next() % 40) as usize), whole, "{seed}");
    }
}

#[test]
fn replies_may_be_mixed_padded_and_in_pieces() {
    let bytes = [
        frame(kind::HEADERS, flag::PRIORITY, 3, b"\0\0\0\0\0\x88"),
        frame(kind::CONTINUATION, 0, 3, b""),
        frame(kind::CONTINUATION, flag::END_HEADERS, 3, b"\xc0"),
        frame(kind::HEADERS, flag::END_HEADERS, 5, b"\x88\xc0"),
        frame(kind::DATA, 0, 5, b"\0\0\0"),
        frame(kind::DATA, flag::PADDED, 3, b"\x02\0\0\0\0\x031\0\0"),
        frame(0xfa, 0, 3, b"what nobody knows"),
        frame(kind::DATA, 0, 5, b"\0\x03"),
        frame(kind::DATA, 0, 3, b"0 "),
        frame(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, 3, b"\xbf\xbe"),
        frame(kind::DATA, 0, 5, b"11 "),
        frame(kind::HEADERS, flag::END_STREAM, 5, b"\xbf"),
        frame(kind::CONTINUATION, flag::END_HEADERS, 5, b"\xbe"),
    ]
    .concat();
    assert_eq!(told(&bytes), "deadbeef-0003-00000000 10 ; deadbeef-0003-00000001 11 ");
}

#[test]
fn what_the_server_allows_bounds_what_is_sent() {
    let (mut reader, request) = logged_in();
    let window = (65_535_u64 - 6 + 6) / 8;
    assert_eq!(request.room(), window, "the window, of which the login used 6 and the server gave them back");
    let limit = frame(kind::SETTINGS, 0, 0, b"\0\x03\0\0\0\x02");
    assert_eq!(heard(&mut *reader, &limit, || limit.len()), [format!("Ping({SETTINGS_ACK:?})")]);
    assert_eq!(request.room(), 2);
    let mut out = Vec::new();
    request.append(&mut out, 0, 9);
    request.append(&mut out, 1, 10);
    assert_eq!(request.room(), 0);
    assert_eq!(heard(&mut *reader, REPLIES, || REPLIES.len()).len(), 2);
    assert_eq!(request.room(), 2);
    for (payload, expected) in [(b"\0\x03\0\0\0\x01", 1), (b"\0\x03\0\x0f\0\0", window - 2)] {
        let changed = frame(kind::SETTINGS, 0, 0, payload);
        heard(&mut *reader, &changed, || changed.len());
        assert_eq!(request.room(), expected);
    }
    let more = frame(kind::WINDOW_UPDATE, 0, 0, &80_u32.to_be_bytes());
    heard(&mut *reader, &more, || more.len());
    assert_eq!(request.room(), window - 2 + 10);
}

#[test]
fn leave_to_send_more_is_given_in_time() {
    let (mut reader, _) = logged_in();
    let headers = frame(kind::HEADERS, flag::END_HEADERS, 3, b"\x88\xc0");
    heard(&mut *reader, &headers, || headers.len());
    let piece = frame(kind::DATA, flag::PADDED, 3, &[&[255][..], &[0; 255]].concat());
    // The login brought 6 bytes.
    let mut owed = 6;
    let mut given = 0;
    for _ in 0..WINDOW_BYTES / 256 {
        owed += 256;
        for said in heard(&mut *reader, &piece, || piece.len()) {
            let mut update = Vec::new();
            http2::push_window_update(&mut update, owed);
            assert_eq!(said, format!("Ping({update:?})"));
            assert!(owed >= WINDOW_BYTES / 2);
            given += owed;
            owed = 0;
        }
    }
    assert_eq!(given + owed, WINDOW_BYTES + 6);
    assert!(given > 0);
}

#[test]
fn the_size_of_a_body_follows_from_what_the_server_says() {
    for (settings, expected) in [
        (&b""[..], 16_379),
        (b"\0\x05\0\0\x80\0", 32_763),
        (b"\0\x04\0\0\0\x40", 59),
        (b"\0\x05\0\x08\0\0", 65_530),
    ] {
        let (mut reader, _) = logged_in();
        let settings = frame(kind::SETTINGS, 0, 0, settings);
        heard(&mut *reader, &settings, || settings.len());
        assert_eq!(reader.body_bytes_max(), Some(expected));
    }
}

#[test]
fn what_goes_wrong_is_said() {
    for (bytes, expected) in [
        (frame(kind::RST_STREAM, 0, 3, &7_u32.to_be_bytes()), "a call is reset with REFUSED_STREAM"),
        (
            frame(kind::GOAWAY, 0, 0, b"\0\0\0\x03\0\0\0\x0btoo_many_pings"),
            "ENHANCE_YOUR_CALM: too_many_pings",
        ),
        (frame(kind::GOAWAY, 0, 0, b""), "goes away with NO_ERROR"),
        (frame(kind::PING, 0, 0, b"1"), "a PING of another size"),
        (frame(kind::DATA, flag::END_STREAM, 3, b""), "without a status"),
        (frame(kind::DATA, 0, 0, b"x"), "on stream `0`"),
        (frame(kind::HEADERS, 5, 4, b"\xbf\xbe"), "on stream `4`, which is no call"),
        (frame(kind::HEADERS, 5, 0x7fff_ffff, b"\xbf\xbe"), "has made its 1073741823 calls"),
        (frame(kind::HEADERS, 5, 3, b"\xbf\xbe"), "well without a message"),
        (frame(kind::HEADERS, 5, 3, b"\x88"), "without a status"),
        (frame(kind::HEADERS, 5, 3, b"\xff"), "ends too early"),
        (frame(kind::CONTINUATION, 4, 3, b""), "has not begun"),
        (
            [frame(kind::HEADERS, 0, 3, b""), frame(kind::PING, 0, 0, b"12345678")].concat(),
            "breaks a header block off",
        ),
        (
            [frame(kind::HEADERS, 0, 3, b""), frame(kind::CONTINUATION, 4, 5, b"")].concat(),
            "another stream's",
        ),
        (frame(kind::PUSH_PROMISE, 4, 3, b""), "pushes"),
        (frame(kind::SETTINGS, 0, 0, b"\0\x03\0"), "cut off"),
        (frame(kind::SETTINGS, 0, 0, b"\0\x03\0\0\0\0"), "takes no calls"),
        (frame(kind::SETTINGS, 0, 0, b"\0\x01\0\0\0\x10"), "header table of `16` bytes"),
        (frame(kind::SETTINGS, 0, 0, b"\0\x04\x80\0\0\0"), "a window of"),
        (frame(kind::SETTINGS, 0, 0, b"\0\x05\0\0\0\x01"), "sets frames of"),
        (frame(kind::WINDOW_UPDATE, 0, 0, &[0; 4]), "by nothing"),
        (frame(kind::WINDOW_UPDATE, 0, 0, b"\x7f\xff\xff\xff"), "beyond what HTTP/2 allows"),
        (frame(kind::WINDOW_UPDATE, 0, 3, b"\0"), "cut off"),
    ] {
        let told = told(&bytes);
        assert!(told.contains(expected), "`{expected}` is not in `{told}`");
    }
}

#[test]
fn what_does_not_count_up_is_refused_at_the_login() {
    let wrong = LOGIN.strip_suffix(&LOGIN[LOGIN.len() - 33..]).unwrap();
    let wrong = [&wrong[..wrong.len() - 1], b"1", &LOGIN[LOGIN.len() - 33..]].concat();
    for (bytes, expected) in [
        (&wrong[..], "answers `1` with `1` where `2` is due"),
        (b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\n\r\n", "2"),
        (b"\0\0\0\x06\0\0\0\0\0", "not HTTP/2 with prior knowledge"),
    ] {
        let told = heard(&mut *Grpc.reader(), bytes, || bytes.len()).join("; ");
        assert!(told.contains("refused: ") && told.contains(expected), "{told}");
    }
}

#[test]
fn garbage_is_refused_or_waited_for() {
    for seed in 0..20_000 {
        let mut next = numbers(seed);
        let mut bytes = [LOGIN, REPLIES, REPLIES, UNKNOWN_METHOD].concat();
        let from = (next() % bytes.len() as u64) as usize;
        for place in bytes.iter_mut().skip(from).step_by(1 + (next() % 60) as usize) {
            *place = match next() % 4 {
                0 => next() as u8,
                _ => (next() % 10) as u8,
            };
        }
        let whole = heard(&mut *Grpc.reader(), &bytes, || bytes.len());
        assert_eq!(heard(&mut *Grpc.reader(), &bytes, || (next() % 30) as usize), whole, "{seed}");
    }
}

#[test]
fn what_grpc_has_not_is_refused() {
    let calls = CallTerms {
        depth: Some(Depth::InFlight(9)),
        reply: ReplyKind::TempQueue,
        service: None,
        reconnects: false,
        calls: None,
    };
    for (calls, told) in [
        (calls, None),
        (CallTerms { calls: Some(CALLS_MAX - 1), ..calls }, None),
        (CallTerms { calls: Some(CALLS_MAX), ..calls }, Some("use more `--requesters`")),
        (CallTerms { depth: Some(Depth::All), ..calls }, Some("use a number for `--depth`")),
        (CallTerms { reply: ReplyKind::Named, ..calls }, Some("leave `--reply` out")),
        (CallTerms { reconnects: true, ..calls }, Some("leave `--reconnect` out")),
    ] {
        let refused = Grpc.check_calls(calls).err().map(|error| error.to_string());
        assert_eq!(refused.is_some(), told.is_some(), "{refused:?}");
        assert!(refused.unwrap_or_default().contains(told.unwrap_or_default()));
    }
    assert!(
        Grpc.check(Terms::default()).is_err()
            && Grpc.check_confirms().is_err()
            && Grpc.check_queues().is_err()
    );
}
