//! Logins by PLAIN.

use std::sync::Arc;

use imori_amqp10::codec::composites::{SaslFrame, SaslInit};
use imori_amqp10::codec::frame::{FrameKind, ProtocolHeader, push_frame};
use imori_amqp10::codec::value::Symbol;
use imori_amqp10::connection::Connection;
use imori_amqp10::header_reader;
use imori_amqp10::settings::Settings;
use imori_core::login::Credentials;
use imori_testkit::{Client, TestWorld};

#[test]
fn a_response_of_plain_has_a_user_and_a_password() {
    for (response, expected) in [
        (&b"\0guest\0pass"[..], Some(("guest", "pass"))),
        (b"other\0guest\0pass", Some(("guest", "pass"))),
        (b"\0\0", Some(("", ""))),
        (b"", None),
        (b"guest", None),
        (b"\0guest", None),
        (b"\0guest\0pass\0more", None),
    ] {
        let world = TestWorld::reading(header_reader);
        world.slow_logins.set(true);
        let mut client = Client::<Connection>::new(&world, &Arc::new(Settings::default()), true);
        let init = SaslInit { mechanism: Symbol("PLAIN"), initial_response: Some(response), hostname: None };
        let mut sent = ProtocolHeader::Sasl.bytes().to_vec();
        push_frame(&mut sent, FrameKind::Sasl, 0, |out| SaslFrame::Init(init).encode(out));
        client.send(&world, &sent);
        let asked = world.logins.take().first().map(|login| login.credentials.clone());
        let expected = expected
            .map(|(user, password)| Credentials::password(Some(user.as_bytes()), Some(password.as_bytes())));
        assert!(asked == expected, "{response:?}");
    }
}
