use super::*;

const GOOD: [(&str, &str); 5] = [
    ("Host", "127.0.0.1:15674"),
    ("Connection", "keep-alive, Upgrade"),
    ("Upgrade", "websocket"),
    ("Sec-WebSocket-Version", "13"),
    ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
];

fn policy() -> UpgradePolicy {
    UpgradePolicy {
        protocols: ProtocolName::ALL.to_vec(),
        origins: vec!["https://app.example".parse().unwrap()],
        host_names: vec!["mq.example".parse().unwrap()],
        message_bytes_max: 1,
        login_timeout: Duration::from_secs(1),
    }
}

fn request(line: &str, headers: &[(&str, &str)]) -> Vec<u8> {
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    format!("{line}\r\n{headers}\r\n").into_bytes()
}

/// A valid request with these headers replaced or added; an empty value removes the header.
fn with(changes: &[(&str, &str)]) -> Vec<u8> {
    let kept = GOOD.iter().filter(|(name, _)| changes.iter().all(|(changed, _)| changed != name));
    let added = changes.iter().filter(|(_, value)| !value.is_empty());
    request("GET / HTTP/1.1", &kept.chain(added).copied().collect::<Vec<_>>())
}

fn status(request: &[u8]) -> u16 {
    match policy().judge(request) {
        Ok(upgrade) => {
            assert_eq!(upgrade.unwrap().request_bytes, request.len());
            101
        }
        Err(refusal) => refusal.status.as_u16(),
    }
}

#[test]
fn the_answer_is_that_of_the_specification() {
    let upgrade = policy().judge(&with(&[])).unwrap().unwrap();
    let response = String::from_utf8(upgrade.response).unwrap();
    assert!(response.starts_with("HTTP/1.1 101 Switching Protocols\r\n"), "{response}");
    // RFC 6455, 1.3.
    assert!(response.contains("sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"), "{response}");
    assert!(!response.contains("sec-websocket-protocol"), "{response}");
    assert!(response.ends_with("\r\n\r\n"), "{response}");
}

#[test]
fn a_request_that_is_not_whole_is_waited_for() {
    let whole = with(&[("Sec-WebSocket-Protocol", "v12.stomp")]);
    for len in 0..whole.len() {
        assert!(policy().judge(&whole[..len]).unwrap().is_none(), "{len}");
    }
}

#[test]
fn the_subprotocol_or_else_the_path_decides() {
    use ProtocolName::{Nats, Stomp};
    for (path, offered, expected) in [
        ("/", None, Some((None, Nats))),
        ("/nats", None, Some((None, Nats))),
        ("/anything?x=1", None, Some((None, Nats))),
        ("/stomp", None, Some((None, Stomp))),
        ("/ws", None, Some((None, Stomp))),
        ("/ws?token=1", None, Some((None, Stomp))),
        ("/", Some("v12.stomp"), Some((Some("v12.stomp"), Stomp))),
        ("/nats", Some("v10.stomp, v11.stomp, v12.stomp"), Some((Some("v12.stomp"), Stomp))),
        ("/", Some("v10.stomp,v11.stomp"), Some((Some("v11.stomp"), Stomp))),
        ("/ws", Some("nats"), Some((Some("nats"), Nats))),
        ("/", Some("mqtt, nats"), Some((Some("nats"), Nats))),
        ("/", Some("mqtt"), None),
        ("/", Some("V12.STOMP"), None),
        ("/", Some(""), None),
    ] {
        let mut headers = GOOD.to_vec();
        headers.extend(offered.map(|offered| ("Sec-WebSocket-Protocol", offered)));
        let upgrade = policy().judge(&request(&format!("GET {path} HTTP/1.1"), &headers));
        let Some((subprotocol, protocol)) = expected else {
            assert_eq!(upgrade.unwrap_err().status, 400, "{path} {offered:?}");
            continue;
        };
        let upgrade = upgrade.unwrap().unwrap();
        assert_eq!(upgrade.protocol, protocol, "{path} {offered:?}");
        let response = String::from_utf8(upgrade.response).unwrap();
        let answered = response.lines().find_map(|line| line.strip_prefix("sec-websocket-protocol: "));
        assert_eq!(answered, subprotocol, "{path} {offered:?}");
    }
}

/// SECURITY XPI-05.
#[test]
fn a_protocol_that_is_off_is_off_here_too() {
    for (off, offered) in [(ProtocolName::Stomp, "v12.stomp"), (ProtocolName::Nats, "nats")] {
        let mut policy = policy();
        policy.protocols.retain(|protocol| *protocol != off);
        let refusal = policy.judge(&with(&[("Sec-WebSocket-Protocol", offered)])).unwrap_err();
        assert_eq!(refusal.status, 403, "{off}");
    }
}

/// SECURITY WEB-02.
#[test]
fn only_pages_that_are_known_may_connect() {
    for (origin, host, expected) in [
        ("https://app.example", "127.0.0.1:15674", 101),
        ("HTTPS://APP.example:443", "127.0.0.1:15674", 101),
        ("http://127.0.0.1:15674", "127.0.0.1:15674", 101),
        ("https://mq.example", "mq.example", 101),
        ("https://mq.example", "mq.example:443", 101),
        ("http://localhost:15674", "LocalHost:15674", 101),
        ("http://127.0.0.1:3000", "127.0.0.1:15674", 403),
        ("http://127.0.0.1", "127.0.0.1:15674", 403),
        ("http://localhost:15674", "127.0.0.1:15674", 403),
        ("http://app.example", "127.0.0.1:15674", 403),
        ("https://app.example:8443", "127.0.0.1:15674", 403),
        ("https://app.example.evil.example", "127.0.0.1:15674", 403),
        ("https://evil.example/https://app.example", "127.0.0.1:15674", 403),
        ("https://notapp.example", "127.0.0.1:15674", 403),
        ("https://sub.app.example", "127.0.0.1:15674", 403),
        ("null", "127.0.0.1:15674", 403),
        ("https://app.example, https://evil.example", "127.0.0.1:15674", 403),
        ("http://evil.example", "evil.example", 421),
        ("http://evil.example", "127.0.0.1.evil.example", 421),
    ] {
        assert_eq!(status(&with(&[("Origin", origin), ("Host", host)])), expected, "{origin} to {host}");
    }
    let twice = [("Origin", "https://app.example"), ("Origin", "https://app.example")];
    assert_eq!(status(&with(&twice)), 403, "twice");
}

#[test]
fn what_is_no_upgrade_is_refused() {
    for (what, request, expected) in [
        ("good", with(&[]), 101),
        ("no host", with(&[("Host", "")]), 400),
        ("two hosts", with(&[("Host", "localhost"), ("Host", "localhost")]), 400),
        ("another host", with(&[("Host", "evil.example")]), 421),
        ("no upgrade", with(&[("Upgrade", "")]), 426),
        ("another upgrade", with(&[("Upgrade", "h2c")]), 426),
        ("no connection", with(&[("Connection", "")]), 426),
        ("kept alive", with(&[("Connection", "keep-alive")]), 426),
        ("no version", with(&[("Sec-WebSocket-Version", "")]), 426),
        ("version 8", with(&[("Sec-WebSocket-Version", "8")]), 426),
        ("no key", with(&[("Sec-WebSocket-Key", "")]), 400),
        ("a short key", with(&[("Sec-WebSocket-Key", "AAAA")]), 400),
        ("two keys", with(&[GOOD[4], GOOD[4]]), 400),
        ("a body", with(&[("Content-Length", "1")]), 400),
        ("chunks", with(&[("Transfer-Encoding", "chunked")]), 400),
        ("POST", request("POST / HTTP/1.1", &GOOD), 405),
        ("HTTP/1.0", request("GET / HTTP/1.0", &GOOD), 400),
        ("STOMP", b"CONNECT\naccept-version:1.2\n\n\0".to_vec(), 400),
        ("NATS", b"CONNECT {}\r\n".to_vec(), 400),
        ("TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(), 400),
    ] {
        assert_eq!(status(&request), expected, "{what}");
    }
    let many: Vec<_> = (0..130).map(|_| ("X", "y")).collect();
    assert_eq!(status(&with(&many)), 431, "many headers");
}
