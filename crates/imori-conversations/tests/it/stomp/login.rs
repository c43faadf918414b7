//! Logins that take longer to check than a turn.

use std::sync::Arc;

use imori_conversations::stomp::{self, Client};
use imori_core::certificate::Certificate;
use imori_core::inbound::{Inbound, verified};
use imori_core::login::{Credentials, Login, Verdict};
use imori_core::time::Time;
use imori_core::turn::Next;
use imori_core::world::World;
use imori_stomp::settings::Settings;
use imori_testkit::{TestWorld, verdict};

const CONNECT: &[u8] = b"CONNECT\naccept-version:1.2\nhost:/\nlogin:guest\npasscode:guest\n\n\0";

fn slow_world() -> TestWorld {
    let world = stomp::world();
    world.slow_logins.set(true);
    world
}

fn connecting(world: &TestWorld) -> Client {
    let mut client = Client::new(world, &Arc::new(Settings::default()), true);
    client.send(world, CONNECT);
    assert_eq!(client.next, Next::Verify);
    client
}

/// Returns the only login under verification.
fn asked(world: &TestWorld) -> Login {
    let logins = world.logins.take();
    assert_eq!(logins.len(), 1, "it is checked once");
    logins.into_iter().next().unwrap()
}

fn text(client: &mut Client, world: &TestWorld) -> String {
    String::from_utf8(client.output(world)).unwrap()
}

#[test]
fn frames_behind_a_login_wait_for_its_verdict() {
    let world = slow_world();
    let mut client = connecting(&world);
    client.arrive(b"SUBSCRIBE\nid:1\ndestination:/topic/a\nreceipt:1\n\n\0SEND\ndestination:/topic/a\n\nx\0");
    assert!(!client.connection.is_logged_in());
    assert_eq!(text(&mut client, &world), "");
    let login = asked(&world);
    let credentials = Credentials::password(Some(b"guest"), Some(b"guest"));
    assert!(login.connection == client.id && login.is_local && login.credentials == credentials);
    client.verified(&world, verdict(&login));
    let text = text(&mut client, &world);
    let places = ["CONNECTED\n", "receipt-id:1\n", "MESSAGE\n"].map(|part| text.find(part).unwrap());
    assert!(places.is_sorted(), "{text}");
    assert!(client.connection.is_logged_in() && world.logins.take().is_empty());
}

#[test]
fn a_verdict_may_refuse() {
    for (verdict, expected) in [
        (Verdict::Refused, "access refused for user `guest`"),
        (Verdict::Busy, "too many clients log in at once"),
    ] {
        let world = slow_world();
        let mut client = connecting(&world);
        client.verified(&world, verdict);
        let text = text(&mut client, &world);
        assert!(text.starts_with("ERROR\n") && text.contains(expected), "{text}");
        assert_eq!(client.next, Next::Close);
        assert!(!client.connection.is_logged_in());
    }
}

#[test]
fn the_time_to_log_in_runs_while_a_login_is_checked() {
    let world = slow_world();
    let mut client = connecting(&world);
    let login = asked(&world);
    let until = Time(world.now().0 + 3_600_000_000);
    client.pass(&world, until);
    assert_eq!(client.next, Next::Close);
    client.verified(&world, verdict(&login));
    assert_eq!(verified(&mut client.connection, verdict(&login)), Next::Close, "it comes too late");
    assert_eq!(text(&mut client, &world), "");
    client.leave(&world);
}

#[test]
fn a_verdict_that_nobody_asked_for_is_worth_nothing() {
    let world = slow_world();
    let mut client = Client::new(&world, &Arc::new(Settings::default()), true);
    let stray = Login {
        connection: client.id,
        is_local: true,
        source: None,
        is_encrypted: false,
        certificate: None,
        credentials: Credentials::password(None, None),
    };
    client.verified(&world, verdict(&stray));
    client.send(&world, CONNECT);
    assert_eq!(client.next, Next::Verify, "its own credentials are checked");
    assert!(!client.connection.is_logged_in());
}

#[test]
fn a_client_that_names_no_user_is_refused_as_the_built_in_one() {
    let world = stomp::world();
    let mut client = Client::new(&world, &Arc::new(Settings::default()), false);
    client.send(&world, b"CONNECT\naccept-version:1.2\nhost:/\n\n\0");
    assert!(text(&mut client, &world).contains("access refused for user `guest`"));
}

/// SECURITY AUTH-09, AUTH-11.
#[test]
fn a_client_without_a_login_is_the_user_of_its_certificate() {
    let (named, nobody) = (Some("orders"), None);
    for (user, login, expected) in [
        (named, "", Credentials::Certificate { user: None }),
        (named, "login:guest\npasscode:guest\n", Credentials::password(Some(b"guest"), Some(b"guest"))),
        (named, "login:orders\n", Credentials::password(Some(b"orders"), None)),
        (nobody, "", Credentials::password(None, None)),
    ] {
        let world = slow_world();
        let mut client = Client::new(&world, &Arc::new(Settings::default()), false);
        let certificate = Certificate { user: user.map(String::from), ..Certificate::default() };
        client.connection.intake_mut().secured(Some(Arc::new(certificate.clone())));
        client.send(&world, format!("CONNECT\naccept-version:1.2\nhost:/\n{login}\n\0").as_bytes());
        let asked = asked(&world);
        assert!(asked.is_encrypted && asked.certificate.as_deref() == Some(&certificate));
        assert!(asked.credentials == expected, "{user:?} {login:?}");
    }
}

/// SECURITY AUTH-09: a password sent without TLS may have been intercepted.
#[test]
fn a_password_from_elsewhere_without_tls_is_refused_and_looked_at_by_nobody() {
    let world = slow_world();
    let mut client = Client::new(&world, &Arc::new(Settings::default()), false);
    client.send(&world, CONNECT);
    assert!(text(&mut client, &world).contains("access refused for user `guest`"));
    assert!(world.logins.take().is_empty());
    let notice = client.connection.intake_mut().take_notice().unwrap();
    assert_eq!(notice.message, "password without TLS");
    assert!(client.connection.intake_mut().take_notice().is_none());
}
