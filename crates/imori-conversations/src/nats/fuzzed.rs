//! NATS for the fuzzer.

use std::time::Duration;

use imori_core::authorize::Identity;
use imori_core::broker::{self, Actor};
use imori_core::id::VhostId;
use imori_core::message::{OriginId, Properties, Publication, TOPIC_EXCHANGE};
use imori_core::route::NoHeaders;
use imori_core::world::World as _;
use imori_nats::codec::decode::{Decoder, Step};
use imori_nats::codec::operation::ServerOp;
use imori_nats::limits::Limits;
use imori_nats::settings::Settings;
use imori_testkit::TestWorld;

use crate::fuzzed::{Fuzzed, converse};
use crate::nats::{Client, Nats};

/// Runs the conversation of two clients that `data` stands for; `heard` gets each operation that
/// the broker writes.
///
/// # Panics
/// Panics if the broker stands still, keeps a binding, or writes anything but operations.
pub fn fuzz(data: &[u8], heard: &mut dyn FnMut(&ServerOp<'_>)) {
    let world = converse(data, &mut Answers { heard });
    let left = world.with_router(|_, table| {
        table.route(VhostId(0), TOPIC_EXCHANGE, b"a", &NoHeaders).map(|route| route.target_count())
    });
    assert_eq!(left, Ok(0), "no binding outlives its connection");
}

/// The operations that the clients get.
struct Answers<'a> {
    heard: &'a mut dyn FnMut(&ServerOp<'_>),
}

impl Fuzzed for Answers<'_> {
    type Protocol = Nats;
    const UNIT_BYTES: usize = 4;
    const PASSING: Duration = Duration::from_secs(100);

    fn settings(choice: Option<u8>) -> Settings {
        Settings {
            subscription_count_max: choice.map_or(1, |byte| usize::from(byte % 8) + 1),
            parked_bytes_max: 256,
            ..Settings::default()
        }
    }

    fn logins(_settings: &Settings) -> [Vec<u8>; 2] {
        [r#"{"verbose":false,"headers":true,"no_responders":true,"protocol":1}"#, "{}"]
            .map(|options| format!("CONNECT {options}\r\n").into_bytes())
    }

    /// Publishes to any subject as another protocol would.
    fn intervene(world: &TestWorld, first: &Client, subject: &[u8]) -> bool {
        let properties = Properties::new(OriginId::BROKER);
        let identity = Identity::guest();
        let actor = Actor { identity: &identity, connection: first.id, vhost: VhostId(0) };
        let publication = Publication::new(&properties, b"", b"body");
        // A subject that is too long is refused.
        let _ = broker::publish(world, &actor, TOPIC_EXCHANGE, subject, &publication);
        true
    }

    fn read(&mut self, _index: usize, bytes: &[u8]) {
        let mut decoder = Decoder::new(Limits::of_client());
        let mut rest = bytes;
        while !rest.is_empty() {
            match decoder.server_op(rest) {
                Ok(Step::Op { op, consumed }) => {
                    assert!(consumed > 0, "a step goes on");
                    (self.heard)(&op);
                    rest = &rest[consumed..];
                }
                Ok(Step::Incomplete { .. }) => panic!("half an operation: {}", rest.escape_ascii()),
                Err(error) => panic!("{error}: {}", rest.escape_ascii()),
            }
        }
    }
}
