//! How much one turn does, and when a connection has to wait.

use std::sync::Arc;

use imori_core::limits::TURN_COMMANDS_MAX;
use imori_core::turn::{Budget, Next, Peer};
use imori_core::world::World;
use imori_stomp::connection::Connection;
use imori_stomp::frame::HeaderTable;
use imori_stomp::settings::Settings;

use crate::client::Client;
use crate::world::{OUTBOUND_LIMITS, TinyWorld};

fn connected(world: &TinyWorld) -> (Connection, HeaderTable) {
    let settings = Arc::new(Settings::default());
    let id = world.connect(Connection::encoder(&settings));
    let peer = Peer { is_loopback: true, address: String::new() };
    let mut connection = Connection::new(settings, id, peer, world.now());
    let mut table = HeaderTable::default();
    let connect = b"CONNECT\naccept-version:1.2\nhost:/\n\n\0";
    connection.receive(world, &mut table, connect, None, &mut Budget::default());
    assert!(connection.is_logged_in());
    (connection, table)
}

/// SECURITY LIM-10: one connection does not keep others from their turn.
#[test]
fn a_turn_ends_after_its_budget() {
    let world = TinyWorld::default();
    let (mut connection, mut table) = connected(&world);
    let frame = b"SEND\ndestination:/queue/a\n\nx\0";
    let input = frame.repeat(TURN_COMMANDS_MAX + 10);
    let received = connection.receive(&world, &mut table, &input, None, &mut Budget::default());
    assert_eq!((received.consumed, received.next), (frame.len() * TURN_COMMANDS_MAX, Next::Again));
    let rest = &input[received.consumed..];
    let received = connection.receive(&world, &mut table, rest, None, &mut Budget::default());
    assert_eq!((received.consumed, received.next), (rest.len(), Next::More { frame_bytes: None }));
}

#[test]
fn deliveries_count_towards_the_budget() {
    let world = TinyWorld::default();
    let settings = Arc::new(Settings::default());
    let mut readers: Vec<Client> = (0..100).map(|_| Client::new(&world, &settings, true)).collect();
    for reader in &mut readers {
        reader.send(&world, b"CONNECT\n\n\0SUBSCRIBE\ndestination:/topic/t\n\n\0");
    }
    let (mut connection, mut table) = connected(&world);
    let frame = b"SEND\ndestination:/topic/t\n\nx\0";
    let input = frame.repeat(20);
    let received = connection.receive(&world, &mut table, &input, None, &mut Budget::default());
    assert_eq!((received.consumed, received.next), (frame.len() * 11, Next::Again));
}

#[test]
fn a_reader_that_is_behind_presses_its_publisher_once_a_turn() {
    let world = TinyWorld::default();
    let mut reader = Client::new(&world, &Arc::new(Settings::default()), true);
    reader.send(&world, b"CONNECT\n\n\0SUBSCRIBE\ndestination:/topic/t\n\n\0");
    let (mut connection, mut table) = connected(&world);
    let body = vec![b'x'; OUTBOUND_LIMITS.feed_bytes / 4];
    let frame = [b"SEND\ndestination:/topic/t\n\n", &body[..], b"\0"].concat();
    let input = frame.repeat(8);
    // SECURITY LIM-13: were it pressed at each message, a reader that stopped could hold it up for hours.
    let received = connection.receive(&world, &mut table, &input, None, &mut Budget::default());
    assert_eq!((received.consumed, received.next), (frame.len() * 8, Next::Press(reader.id)));
    let received = connection.receive(&world, &mut table, b"", None, &mut Budget::default());
    assert_eq!(received.next, Next::More { frame_bytes: None });
    reader.output(&world);
    assert_eq!(world.with_outbound(reader.id, |outbound| outbound.has_room()), Some(true));
    let received = connection.receive(&world, &mut table, &frame, None, &mut Budget::default());
    assert_eq!(received.next, Next::More { frame_bytes: None });
    assert!(world.with_outbound(reader.id, |outbound| outbound.has_unsent()).unwrap());
}

#[test]
fn the_bytes_of_a_long_frame_are_known_early() {
    let world = TinyWorld::default();
    let (mut connection, mut table) = connected(&world);
    let head = b"SEND\ndestination:/queue/a\ncontent-length:1000\n\nxxx";
    let received = connection.receive(&world, &mut table, head, None, &mut Budget::default());
    let whole = head.len() - 3 + 1000 + 1;
    assert_eq!((received.consumed, received.next), (0, Next::More { frame_bytes: Some(whole) }));
}
