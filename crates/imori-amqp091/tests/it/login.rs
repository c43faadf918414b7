//! Logins by certificate.

use std::sync::Arc;

use imori_amqp091::connection::Connection;
use imori_amqp091::header_reader;
use imori_amqp091::settings::Settings;
use imori_core::certificate::Certificate;
use imori_core::inbound::Inbound;
use imori_core::login::Credentials;
use imori_testkit::{Client, TestWorld};

/// Encodes a `connection.start-ok` frame with this mechanism and response.
fn start_ok(mechanism: &str, response: &[u8]) -> Vec<u8> {
    let short = |text: &str| [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
    let long = |bytes: &[u8]| [&u32::try_from(bytes.len()).unwrap().to_be_bytes(), bytes].concat();
    let arguments =
        [&[0, 10, 0, 11][..], &long(b""), &short(mechanism), &long(response), &short("en_US")].concat();
    [&[1, 0, 0][..], &long(&arguments), &[0xce]].concat()
}

/// Connects a client whose certificate names `user`; also returns the broker's `connection.start`.
fn certified(world: &TestWorld, user: Option<&str>) -> (Client<Connection>, String) {
    let mut client = Client::<Connection>::new(world, &Arc::new(Settings::default()), false);
    let certificate = Certificate { user: user.map(String::from), ..Certificate::default() };
    client.connection.intake_mut().secured(Some(Arc::new(certificate)));
    client.send(world, b"AMQP\x00\x00\x09\x01");
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
