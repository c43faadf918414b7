//! The table with one line more.

#![allow(
    clippy::large_enum_variant,
    unreachable_pub,
    dead_code,
    unused_macros,
    reason = "the table makes its types for the whole program"
)]

use imori_core::id::VhostId;
use imori_core::message::{HeaderReaders, NoHeaders, Origins};
use imori_core::outbound::{EncoderKinds, SessionId};
use imori_core::turn::Next;
use imori_testkit::{TestWorld, toy};

use super::*;

/// Names of the protocols, which the configuration has for the real ones.
#[derive(Clone, Copy)]
pub enum Spoken {
    Stomp,
    Toy,
}

protocols! {$
    /// STOMP 1.0, 1.1 and 1.2.
    Stomp, stomp: stomp::Connection;
    /// The protocol of the test kit.
    Toy, toy: toy::Connection;
}

fn toy_settings() -> toy::Settings {
    toy::Settings {
        vhost: VhostId(0),
        origins: Origins::new(100, 1),
        encoder_kinds: EncoderKinds::of_protocol(3),
        parked_bytes_max: 1 << 20,
    }
}

impl OwnSettings for toy::Settings {
    fn numbered(self, _: HeaderReaders) -> toy::Settings {
        toy::Settings { origins: Origins::new(100, 1), encoder_kinds: EncoderKinds::of_protocol(3), ..self }
    }

    fn of(_: &Config, run: &RunFacts, _: SocketAddr) -> toy::Settings {
        toy::Settings { vhost: run.nats_vhost, ..toy_settings() }
    }
}

#[test]
fn another_protocol_is_a_line_in_the_table() {
    let world = TestWorld::reading(|_| &NoHeaders);
    let settings = ProtocolSettings::new(Default::default(), toy_settings());
    let mut login = Vec::new();
    toy::push(&mut login, SessionId::FIRST, toy::Kind::Login, |out| {
        out.extend_from_slice(b"\0\x05guest\0\x05guest");
    });
    let connect = b"CONNECT\naccept-version:1.2\nhost:/\n\n\0".to_vec();
    for (spoken, said) in [(Spoken::Stomp, connect), (Spoken::Toy, login)] {
        let id = world.open(Protocol::encoder(spoken, &settings));
        let peer = Peer::plain(1, true, String::new());
        let mut protocol = Protocol::new(spoken, &settings, id, peer, world.now());
        let (scratch, budget) = (&mut Scratch::default(), &mut Budget::default());
        let received = match &mut protocol {
            Protocol::Stomp(inbound) => inbound.receive(&world, &mut scratch.stomp, &said, None, budget),
            Protocol::Toy(inbound) => inbound.receive(&world, &mut scratch.toy, &said, None, budget),
        };
        assert_eq!(received, Received { consumed: said.len(), next: Next::More { frame_bytes: None } });
        assert!(match &protocol {
            Protocol::Stomp(inbound) => inbound.is_logged_in(),
            Protocol::Toy(inbound) => inbound.is_logged_in(),
        });
    }
}
