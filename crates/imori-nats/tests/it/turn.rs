//! How much one turn does, and when a connection has to wait.

use std::sync::Arc;

use imori_core::limits::TURN_COMMANDS_MAX;
use imori_core::turn::{Budget, Next, Received};
use imori_core::world::World;
use imori_nats::settings::Settings;

use crate::client::Client;
use crate::world::{OUTBOUND_LIMITS, TinyWorld};

fn connected(world: &TinyWorld) -> Client {
    let mut client = Client::new(world, &Arc::new(Settings::default()), true);
    client.send(world, b"CONNECT {\"verbose\":false}\r\n");
    assert!(client.connection.is_logged_in());
    client
}

fn turn(world: &TinyWorld, client: &mut Client, input: &[u8]) -> Received {
    client.connection.receive(world, input, None, &mut Budget::default())
}

/// SECURITY LIM-10: one connection does not keep others from their turn.
#[test]
fn a_turn_ends_after_its_budget() {
    for operation in ["PUB a 1\r\nx\r\n", "PING\r\n", "SUB a 1\r\n", "UNSUB 1\r\n"] {
        let world = TinyWorld::default();
        let mut client = connected(&world);
        let input = operation.repeat(TURN_COMMANDS_MAX + 10).into_bytes();
        let received = turn(&world, &mut client, &input);
        assert_eq!((received.consumed, received.next), (operation.len() * TURN_COMMANDS_MAX, Next::Again));
        let rest = &input[received.consumed..];
        let received = turn(&world, &mut client, rest);
        assert_eq!((received.consumed, received.next), (rest.len(), Next::More { frame_bytes: None }));
    }
}

#[test]
fn deliveries_count_towards_the_budget() {
    let world = TinyWorld::default();
    let mut readers: Vec<Client> = (0..100).map(|_| connected(&world)).collect();
    for reader in &mut readers {
        reader.send(&world, b"SUB a 1\r\n");
    }
    let mut client = connected(&world);
    let operation = "PUB a 1\r\nx\r\n";
    let received = turn(&world, &mut client, operation.repeat(20).as_bytes());
    assert_eq!((received.consumed, received.next), (operation.len() * 11, Next::Again));
}

#[test]
fn a_reader_that_is_behind_presses_its_publisher_once_a_turn() {
    let world = TinyWorld::default();
    let mut reader = connected(&world);
    reader.send(&world, b"SUB a 1\r\n");
    let mut client = connected(&world);
    let body = "x".repeat(OUTBOUND_LIMITS.feed_bytes / 4);
    let operation = format!("PUB a {}\r\n{body}\r\n", body.len());
    let received = turn(&world, &mut client, operation.repeat(8).as_bytes());
    assert_eq!((received.consumed, received.next), (operation.len() * 8, Next::Press(reader.id)));
    reader.output(&world);
    assert_eq!(world.with_outbound(reader.id, |outbound| outbound.has_room()), Some(true));
    let received = turn(&world, &mut client, operation.as_bytes());
    assert_eq!(received.next, Next::More { frame_bytes: None });
}

#[test]
fn the_bytes_of_a_long_message_are_known_early() {
    let world = TinyWorld::default();
    let mut client = connected(&world);
    let head = b"PUB a 1000\r\nxxx";
    let received = turn(&world, &mut client, head);
    let whole = head.len() - 3 + 1000 + 2;
    assert_eq!((received.consumed, received.next), (0, Next::More { frame_bytes: Some(whole) }));
}

/// ARCHITECTURE 8.6: the next publish sees what was subscribed before, whoever publishes.
#[test]
fn subscriptions_of_a_turn_are_made_before_it_ends() {
    let world = TinyWorld::default();
    let (mut reader, mut client) = (connected(&world), connected(&world));
    reader.output(&world);
    turn(&world, &mut reader, b"SUB a 1\r\nSUB b 2\r\nSUB c");
    turn(&world, &mut client, b"PUB a 1\r\nx\r\nPUB b 1\r\ny\r\nPUB c 1\r\nz\r\n");
    assert_eq!(reader.output(&world), b"MSG a 1 1\r\nx\r\nMSG b 2 1\r\ny\r\n");
}
