//! From the protocol header to the agreed sizes.

use std::sync::Arc;

use imori_amqp091::codec::frame::{PROTOCOL_HEADER, Step, decode, push_method};
use imori_amqp091::codec::method::MethodFields;
use imori_amqp091::codec::methods::{Method, connection};
use imori_amqp091::codec::table::FieldValue;
use imori_amqp091::connection::Connection;
use imori_amqp091::header_reader;
use imori_amqp091::limits::FRAME_BYTES_MAX;
use imori_amqp091::settings::Settings;
use imori_core::certificate::Certificate;
use imori_core::inbound::Inbound;
use imori_core::login::Credentials;
use imori_testkit::{Client, TestWorld};

/// Encodes a `connection.start-ok` with this mechanism and response.
fn start_ok(mechanism: &str, response: &[u8]) -> Vec<u8> {
    frame(&connection::StartOk { mechanism, response, locale: "en_US", ..Default::default() })
}

/// Encodes a method of the connection.
fn frame<'a, M: MethodFields<'a>>(method: &M) -> Vec<u8> {
    let mut out = Vec::new();
    push_method(&mut out, 0, method);
    out
}

/// Calls `look` with each method of the broker.
fn look_at_methods(mut output: &[u8], mut look: impl FnMut(Method<'_>)) {
    while let Ok(Step::Frame(frame)) = decode(output, FRAME_BYTES_MAX as usize) {
        look(Method::decode(frame.payload).unwrap());
        output = &output[frame.len()..];
    }
}

/// Connects a client whose certificate names `user`; also returns the broker's `connection.start`.
fn certified(world: &TestWorld, user: Option<&str>) -> (Client<Connection>, String) {
    let mut client = Client::<Connection>::new(world, &Arc::new(Settings::default()), false);
    let certificate = Certificate { user: user.map(String::from), ..Certificate::default() };
    client.connection.intake_mut().secured(Some(Arc::new(certificate)));
    client.send(world, PROTOCOL_HEADER);
    let start = String::from_utf8_lossy(&client.output(world)).into_owned();
    (client, start)
}

/// SECURITY AUTH-09.
#[test]
fn external_is_offered_and_taken_only_with_a_certificate_that_names_a_user() {
    for (user, response, credentials) in [
        (Some("orders"), &b""[..], Some(Credentials::Certificate { user: None })),
        (Some("orders"), b"orders", Some(Credentials::Certificate { user: Some((*b"orders").into()) })),
        (Some("orders"), b"admin", Some(Credentials::Certificate { user: Some((*b"admin").into()) })),
        (None, b"", None),
        (None, b"admin", None),
    ] {
        let world = TestWorld::reading(header_reader);
        world.slow_logins.set(true);
        let (mut client, start) = certified(&world, user);
        assert_eq!(start.contains("EXTERNAL"), user.is_some(), "{user:?}");
        client.send(&world, &start_ok("EXTERNAL", response));
        let logins = world.logins.take();
        let asked = logins.first().map(|login| login.credentials.clone());
        assert!(asked == credentials, "{user:?} {response:?}");
        if credentials.is_none() {
            assert_eq!(
                client.connection.intake_mut().take_notice().unwrap().message,
                "certificate of no user"
            );
        }
    }
}

#[test]
fn a_response_has_a_user_and_a_password() {
    let password = |user: &str, password: &str| {
        Some(Credentials::password(Some(user.as_bytes()), Some(password.as_bytes())))
    };
    for (mechanism, response, expected) in [
        ("PLAIN", &b"\0guest\0guest"[..], password("guest", "guest")),
        ("PLAIN", b"other\0guest\0pass", password("guest", "pass")),
        ("PLAIN", b"\0\0", password("", "")),
        ("PLAIN", b"", None),
        ("PLAIN", b"guest", None),
        ("PLAIN", b"\0guest", None),
        ("PLAIN", b"\0guest\0pass\0more", None),
        ("AMQPLAIN", b"\x05LOGINS\0\0\0\x01u\x08PASSWORDS\0\0\0\x01p", password("u", "p")),
        ("AMQPLAIN", b"\x08PASSWORDx\0\0\0\x01p\x05LOGINS\0\0\0\x01u", password("u", "p")),
        ("AMQPLAIN", b"\x05LOGINS\0\0\0\x01u", None),
        ("AMQPLAIN", b"\x05LOGINI\0\0\0\x01\x08PASSWORDS\0\0\0\x01p", None),
        ("AMQPLAIN", b"\x05LOG", None),
    ] {
        let world = TestWorld::reading(header_reader);
        world.slow_logins.set(true);
        let mut client = Client::<Connection>::new(&world, &Arc::new(Settings::default()), true);
        client.send(&world, &[PROTOCOL_HEADER, &start_ok(mechanism, response)[..]].concat());
        let asked = world.logins.take().first().map(|login| login.credentials.clone());
        assert!(asked == expected, "{mechanism} {response:?}");
        let output = client.output(&world);
        let refused = format!("SYNTAX_ERROR - the response of mechanism {mechanism} is invalid");
        assert_eq!(close_text(&output), expected.is_none().then_some(refused), "{response:?}");
    }
}

/// The text of the broker's `connection.close`, if there is one.
fn close_text(output: &[u8]) -> Option<String> {
    let mut text = None;
    look_at_methods(output, |method| {
        if let Method::ConnectionClose(close) = method {
            text = Some(close.reply_text.to_owned());
        }
    });
    text
}

#[test]
fn sizes_are_agreed_on_within_bounds() {
    for (frame_max, expected) in [
        (4096, None),
        (131_072, None),
        (4095, Some("negotiated frame_max = 4095 is lower than the minimum allowed value (4096)")),
        (131_073, Some("negotiated frame_max = 131073 is higher than the maximum allowed value (131072)")),
        (0, Some("negotiated frame_max = 0 (no limit) is higher than the maximum allowed value (131072)")),
    ] {
        let world = TestWorld::reading(header_reader);
        let mut client = Client::<Connection>::new(&world, &Arc::new(Settings::default()), true);
        let tune_ok = frame(&connection::TuneOk { channel_max: 2047, frame_max, heartbeat: 60 });
        let sent = [PROTOCOL_HEADER, &start_ok("PLAIN", b"\0guest\0guest")[..], &tune_ok].concat();
        client.send(&world, &sent);
        let expected = expected.map(|text| format!("NOT_ALLOWED - {text}"));
        assert_eq!(close_text(&client.output(&world)), expected, "{frame_max}");
    }
}

#[test]
fn the_broker_introduces_itself_as_clients_expect() {
    let world = TestWorld::reading(header_reader);
    let settings = Settings { platform: "Imori 0.1".into(), ..Settings::default() };
    let mut client = Client::<Connection>::new(&world, &Arc::new(settings), true);
    client.send(&world, PROTOCOL_HEADER);
    let mut starts = 0;
    look_at_methods(&client.output(&world), |method| {
        let Method::ConnectionStart(start) = method else { panic!("{method:?}") };
        let table = start.server_properties;
        assert_eq!(table.find("product"), Some(FieldValue::Text(b"RabbitMQ")));
        assert_eq!(table.find("platform"), Some(FieldValue::Text(b"Imori 0.1")));
        let Some(FieldValue::Table(capabilities)) = table.find("capabilities") else { panic!("{table:?}") };
        assert_eq!(capabilities.find("basic.nack"), Some(FieldValue::Bool(true)));
        starts += 1;
    });
    assert_eq!(starts, 1);
}
