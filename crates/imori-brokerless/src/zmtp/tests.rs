use super::*;

/// Shows the one thing that these bytes say.
fn taken(driver: &dyn Driver, bytes: &[u8], see: impl FnOnce(&Heard<'_>)) {
    let mut reader = driver.reader();
    let (heard, used) = reader.take(bytes).unwrap().unwrap();
    assert_eq!(used, bytes.len(), "one thing and nothing else");
    see(&heard);
}

const FIRST: Correlation = Correlation { run: 0xdead_beef, requester: 3, number: 0 };

/// The first bytes of libzmq 4.3.4 on a REP socket.
fn handshake(socket: &str) -> Vec<u8> {
    let mut bytes = b"\xff\0\0\0\0\0\0\0\x01\x7f\x03\x01NULL".to_vec();
    bytes.resize(GREETING_BYTES, 0);
    let length = 1 + 5 + 1 + 11 + 4 + socket.len() + 1 + 8 + 4;
    bytes.extend_from_slice(&[COMMAND, length as u8]);
    bytes.extend_from_slice(b"\x05READY\x0bSocket-Type\0\0\0");
    bytes.push(socket.len() as u8);
    bytes.extend_from_slice(socket.as_bytes());
    bytes.extend_from_slice(b"\x08Identity\0\0\0\0");
    bytes
}

fn replies() -> Vec<u8> {
    let mut bytes = b"\x01\0\x01\x16deadbeef-0003-0000001f\0\x04100 ".to_vec();
    bytes.extend_from_slice(b"\x04\x09\x04PING\0\x0aab");
    bytes.extend_from_slice(b"\x01\0\x01\x16deadbeef-0003-00000020\x02\0\0\0\0\0\0\x01\x04");
    bytes.resize(bytes.len() + 260, b'7');
    bytes
}

/// The readings of bytes that come in pieces of these sizes.
fn heard(socket: Zmtp, bytes: &[u8], mut size: impl FnMut() -> usize) -> Vec<String> {
    let mut reader = socket.reader();
    let mut told = Vec::new();
    let (mut start, mut end) = (0, 0);
    while end < bytes.len() {
        end = (end + size().max(1)).min(bytes.len());
        loop {
            match reader.take(&bytes[start..end]) {
                Ok(Some((heard, used))) => {
                    assert!(used > 0 && used <= end - start);
                    start += used;
                    if !matches!(heard, Heard::Nothing) {
                        told.push(format!("{heard:?}"));
                    }
                }
                Ok(None) => break,
                Err(error) => {
                    told.push(error.to_string());
                    return told;
                }
            }
        }
    }
    told
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

#[test]
fn a_login_is_a_greeting_and_who_we_are() {
    imori_bench::driver::bring(&crate::PROTOCOLS);
    for (socket, own) in [(Zmtp::Req, "REQ"), (Zmtp::Dealer, "DEALER")] {
        let mut out = Vec::new();
        socket.log_in(&"zmq-rep://h:1".parse().unwrap(), &mut out);
        let mut expected = handshake(own);
        expected[8] = 0;
        assert_eq!(out, expected);
    }
}

#[test]
fn a_request_has_the_parts_that_its_socket_wants() {
    let (destination, none) =
        (Destination::Service(String::new()), Replies { address: String::new(), source: None });
    for (socket, size, head, before_body) in [
        (Zmtp::Req, 4, &b"\x01\0\x01\x16"[..], &b"\0\x04"[..]),
        (Zmtp::Dealer, 4, b"\x01\x16", b"\0\x04"),
        (Zmtp::Dealer, 255, b"\x01\x16", b"\0\xff"),
        (Zmtp::Dealer, 256, b"\x01\x16", b"\x02\0\0\0\0\0\0\x01\0"),
    ] {
        let mut out = Vec::new();
        socket.request(&destination, &none, size, FIRST).append(&mut out, 0x1f, 99);
        let body = format!("{:size$}", 99).replace(' ', "");
        let body = format!("{body:size$}");
        let expected = [head, b"deadbeef-0003-0000001f", before_body, body.as_bytes()].concat();
        assert_eq!(out, expected, "{socket:?} {size}");
    }
}

#[test]
fn a_conversation_reads_the_same_in_any_pieces() {
    let bytes = [handshake("REP"), replies()].concat();
    let whole = heard(Zmtp::Req, &bytes, || bytes.len());
    assert_eq!(whole.len(), 4, "{whole:?}");
    assert_eq!(whole[0], "Confirmed(None)");
    assert!(whole[2].starts_with("Ping("), "{whole:?}");
    for size in 1..bytes.len() {
        assert_eq!(heard(Zmtp::Req, &bytes, || size), whole, "{size}");
    }
    for seed in 0..200 {
        let mut next = numbers(seed);
        assert_eq!(heard(Zmtp::Req, &bytes, || (next() % 40) as usize), whole, "{seed}");
    }
}

#[test]
fn a_reply_says_which_call_it_is() {
    for (socket, bytes, expected) in [
        (Zmtp::Req, &b"\x01\0\x01\x16deadbeef-0003-0000001f\0\x02a "[..], Some((31, &b"a "[..]))),
        (Zmtp::Dealer, b"\x01\x16deadbeef-0003-0000001f\0\x02a ", Some((31, b"a "))),
        // Replies that belong to no call: without the empty part, with too many parts, with too few.
        (Zmtp::Req, b"\x01\x16deadbeef-0003-0000001f\0\x02a ", None),
        (Zmtp::Dealer, b"\x01\0\x01\x16deadbeef-0003-0000001f\0\x02a ", None),
        (Zmtp::Dealer, b"\0\x02a ", None),
    ] {
        let mut reader = ready(socket);
        let (heard, used) = reader.take(bytes).unwrap().unwrap();
        let Heard::Delivery(reply) = heard else { panic!("{heard:?}") };
        assert_eq!(used, bytes.len());
        let read = Correlation::read(reply.correlation).map(|correlation| (correlation.number, reply.body));
        assert_eq!(read, expected);
    }
}

fn ready(socket: Zmtp) -> Box<dyn Reader> {
    let mut reader = socket.reader();
    let bytes = handshake(socket.sockets().1);
    reader.take(&bytes).unwrap().unwrap();
    reader.take(&bytes[GREETING_BYTES..]).unwrap().unwrap();
    assert_eq!(reader.server(), format!("ZMTP 3.1 {}", socket.sockets().1));
    reader
}

#[test]
fn a_ping_is_answered_with_its_context() {
    let mut reader = ready(Zmtp::Dealer);
    for (ping, pong) in [
        (&b"\x04\x07\x04PING\0\x0a"[..], &b"\x04\x05\x04PONG"[..]),
        (b"\x04\x09\x04PING\0\x0aab", b"\x04\x07\x04PONGab"),
    ] {
        match reader.take(ping).unwrap().unwrap() {
            (Heard::Ping(answer), used) => assert_eq!((answer, used), (pong, ping.len())),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_req_socket_is_held_to_one_call() {
    let (destination, none) =
        (Destination::Service(String::new()), Replies { address: String::new(), source: None });
    let mut reader = ready(Zmtp::Req);
    let mut request = Zmtp::Req.request(&destination, &none, 2, FIRST);
    reader.serve(FIRST, &mut request);
    assert_eq!(request.room(), 1);
    let mut out = Vec::new();
    request.append(&mut out, 0, 1);
    assert_eq!(request.room(), 0);
    reader.take(&out).unwrap().unwrap();
    assert_eq!(request.room(), 1);
}

#[test]
fn what_is_not_zmtp_with_null_is_refused_at_once() {
    let plain = [&handshake("REP")[..12], b"PLAIN", &[0; 47]].concat();
    for (bytes, told) in [
        (&b"HTTP/1.1 400 Bad Request"[..], "not ZMTP"),
        (b"\xff\0\0\0\0\0\0\0\0\0", "not ZMTP"),
        (b"\xff\0\0\0\0\0\0\0\x01\x7f\x01", "speaks ZMTP `1`"),
        (&plain, "wants mechanism `PLAIN`"),
        (&handshake("ROUTER"), "is a `ROUTER` socket"),
        (&[&handshake("REP")[..GREETING_BYTES], b"\x04\x0a\x05ERROR\x03bad"].concat(), "refuses: bad"),
        (&[&handshake("REP")[..GREETING_BYTES], b"\0\x01x"].concat(), "before it is ready"),
    ] {
        let told_us = heard(Zmtp::Req, bytes, || bytes.len()).concat();
        assert!(told_us.contains(told), "{told_us}");
    }
}

#[test]
fn frames_that_zmtp_has_not_are_refused() {
    for bytes in [
        &b"\x08\0"[..],
        b"\x05\0",
        b"\x02\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\x01\0\x01\0\x01\0\x01\0\x01\0\x01\0\x01\0\x01\0",
        b"\x01\0\x04\0",
        b"\x04\x1d\x04PING\0\0aaaaaaaaaaaaaaaaaaaaaaaaa",
    ] {
        assert!(ready(Zmtp::Req).take(bytes).is_err(), "{bytes:?}");
    }
    taken_error();
}

fn taken_error() {
    let mut reader = ready(Zmtp::Req);
    match reader.take(b"\x04\x0a\x05ERROR\x03bad").unwrap().unwrap() {
        (Heard::Error(reason), _) => assert_eq!(reason, "bad"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn garbage_is_refused_or_waited_for() {
    for seed in 0..20_000 {
        let mut next = numbers(seed);
        let mut bytes = [handshake("ROUTER"), replies()].concat();
        let from = (next() % bytes.len() as u64) as usize;
        for destination in bytes.iter_mut().skip(from).step_by(1 + (next() % 50) as usize) {
            *destination = match next() % 4 {
                0 => (next() % 8) as u8,
                _ => next() as u8,
            };
        }
        let whole = heard(Zmtp::Dealer, &bytes, || bytes.len());
        assert_eq!(heard(Zmtp::Dealer, &bytes, || (next() % 30) as usize), whole, "{seed}");
    }
}

#[test]
fn what_has_no_broker_is_refused() {
    let calls =
        CallTerms { depth: None, reply: ReplyKind::TempQueue, service: None, reconnects: false, calls: None };
    let many = CallTerms { depth: Some(Depth::InFlight(2)), ..calls };
    for (socket, calls, told) in [
        (Zmtp::Req, calls, None),
        (Zmtp::Req, CallTerms { depth: Some(Depth::InFlight(1)), ..calls }, None),
        (Zmtp::Dealer, many, None),
        (Zmtp::Dealer, CallTerms { depth: Some(Depth::All), ..calls }, None),
        (Zmtp::Req, many, Some("one call in flight")),
        (Zmtp::Req, CallTerms { reply: ReplyKind::Named, ..calls }, Some("leave `--reply` out")),
        (Zmtp::Req, CallTerms { reconnects: true, ..calls }, Some("leave `--reconnect` out")),
        (Zmtp::Req, CallTerms { service: Some("a"), ..calls }, Some("leave `--destination` out")),
    ] {
        let refused = socket.check_calls(calls).err().map(|error| error.to_string());
        assert_eq!(refused.is_some(), told.is_some(), "{refused:?}");
        assert!(refused.unwrap_or_default().contains(told.unwrap_or_default()));
    }
    assert!(
        Zmtp::Req.check(Terms::default()).is_err()
            && Zmtp::Req.check_confirms().is_err()
            && Zmtp::Req.check_queues().is_err()
    );
    taken(&Zmtp::Req, &handshake("REP")[..GREETING_BYTES], |heard| assert!(matches!(heard, Heard::Nothing)));
}
