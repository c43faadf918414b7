//! STOMP as the test kit drives it.

use std::sync::Arc;

use bytes::Bytes;
use imori_core::id::ConnectionId;
use imori_core::message::{HeaderReader, OriginId};
use imori_core::outbound::Encoder;
use imori_core::time::Time;
use imori_core::turn::{Budget, Next, Peer, Received};
use imori_core::world::World;
use imori_stomp::connection::Connection;
use imori_stomp::frame::HeaderTable;
use imori_stomp::settings::Settings;
use imori_testkit::{Protocol, TestWorld};

pub(crate) struct Stomp;

pub(crate) type Client = imori_testkit::Client<Stomp>;

/// A world in which the clients can talk.
pub(crate) fn world() -> TestWorld {
    imori_testkit::world::<Stomp>()
}

impl Protocol for Stomp {
    type Connection = Connection;
    type Scratch = HeaderTable;
    type Settings = Settings;

    fn header_reader(origin: OriginId) -> &'static dyn HeaderReader {
        imori_stomp::header_reader(origin)
    }

    fn encoder(settings: &Arc<Settings>) -> Box<dyn Encoder> {
        Connection::encoder(settings)
    }

    fn connection(world: &TestWorld, settings: &Arc<Settings>, id: ConnectionId, peer: Peer) -> Connection {
        Connection::new(Arc::clone(settings), id, peer, world.now())
    }

    fn receive(
        connection: &mut Connection,
        world: &TestWorld,
        scratch: &mut HeaderTable,
        input: &[u8],
        shared: Option<&Bytes>,
        budget: &mut Budget,
    ) -> Received {
        connection.receive(world, scratch, input, shared, budget)
    }

    fn alarm_ended(connection: &mut Connection, world: &TestWorld) -> Next {
        connection.alarm_ended(world)
    }

    fn relieved(connection: &mut Connection, world: &TestWorld) -> Next {
        connection.relieved(world)
    }

    fn next_deadline(connection: &Connection) -> Option<Time> {
        connection.next_deadline()
    }

    fn tick(connection: &mut Connection, world: &TestWorld) -> Next {
        connection.tick(world)
    }

    fn disconnect(connection: &mut Connection, world: &TestWorld) -> bool {
        connection.disconnect(world)
    }
}
