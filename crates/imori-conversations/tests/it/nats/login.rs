//! Logins that take longer to check than a turn.

use std::sync::Arc;

use imori_conversations::nats::{self, Client};
use imori_core::certificate::Certificate;
use imori_core::inbound::Inbound;
use imori_core::login::{Credentials, Verdict};
use imori_core::turn::Next;
use imori_nats::settings::Settings;
use imori_testkit::{TestWorld, verdict};

fn slow_world() -> TestWorld {
    let world = nats::world();
    world.slow_logins.set(true);
    world
}

fn text(client: &mut Client, world: &TestWorld) -> String {
    String::from_utf8(client.output(world)).unwrap()
}

#[test]
fn operations_behind_a_login_wait_for_its_verdict() {
    let connect = "CONNECT {\"verbose\":false,\"user\":\"eve\"}\r\n";
    for (connect, user) in [("", None), (connect, Some("eve"))] {
        let world = slow_world();
        let mut client = Client::new(&world, &Arc::new(Settings::default()), true);
        client.output(&world);
        client.send(&world, format!("{connect}SUB a 1\r\nPUB a 1\r\nx\r\nPING\r\n").as_bytes());
        assert_eq!(client.next, Next::Verify);
        assert_eq!(text(&mut client, &world), "");
        let logins = world.logins.take();
        let [login] = &*logins else { panic!("{} logins are checked", logins.len()) };
        let password = user.map(|_| b"".as_slice());
        let expected = Credentials::password(user.map(str::as_bytes), password);
        assert!(login.connection == client.id && login.credentials == expected);
        match user {
            None => client.verified(&world, verdict(login)),
            Some(_) => client.verified(&world, Verdict::Refused),
        }
        let text = text(&mut client, &world);
        let is_in = text.contains("MSG a 1 1\r\nx\r\n") && text.ends_with("PONG\r\n");
        assert_eq!(
            (is_in, text.contains("-ERR 'Authorization Violation'")),
            (user.is_none(), user.is_some())
        );
    }
}

#[test]
fn a_second_connect_is_checked_too_and_until_then_the_first_counts() {
    let world = nats::world();
    let mut client = Client::new(&world, &Arc::new(Settings::default()), true);
    client.send(&world, b"CONNECT {\"verbose\":false}\r\nSUB a 1\r\n");
    world.slow_logins.set(true);
    client.send(&world, b"CONNECT {\"verbose\":true}\r\nPING\r\n");
    client.output(&world);
    assert!(client.next == Next::Verify && client.connection.is_logged_in());
    let mut other = Client::new(&world, &Arc::new(Settings::default()), true);
    world.slow_logins.set(false);
    other.send(&world, b"CONNECT {\"verbose\":false}\r\nPUB a 1\r\nx\r\n");
    assert_eq!(text(&mut client, &world), "MSG a 1 1\r\nx\r\n", "it hears on");
    let login = world.logins.take().remove(0);
    client.verified(&world, verdict(&login));
    assert_eq!(text(&mut client, &world), "+OK\r\nPONG\r\n");
}

/// SECURITY AUTH-09, AUTH-11: nats-server's `verify_and_map`.
#[test]
fn a_client_without_a_login_is_the_user_of_its_certificate() {
    for (connect, expected) in [
        ("{}", Credentials::Certificate { user: None }),
        (r#"{"user":"eve","pass":"x"}"#, Credentials::password(Some(b"eve"), Some(b"x"))),
        (r#"{"auth_token":"x"}"#, Credentials::Token(b"x"[..].into())),
    ] {
        let world = slow_world();
        let mut client = Client::new(&world, &Arc::new(Settings::default()), false);
        let certificate = Certificate { user: Some(String::from("orders")), ..Certificate::default() };
        client.connection.intake_mut().secured(Some(Arc::new(certificate)));
        client.send(&world, format!("CONNECT {connect}\r\n").as_bytes());
        let logins = world.logins.take();
        let [login] = &*logins else { panic!("{} logins are checked", logins.len()) };
        assert!(login.is_encrypted && login.credentials == expected, "{connect}");
    }
}
