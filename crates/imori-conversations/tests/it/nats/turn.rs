//! Limits of a turn, and when a connection has to wait.

use std::collections::BTreeMap;
use std::sync::Arc;

use imori_conversations::nats::{Client, world};
use imori_core::inbound::Inbound;
use imori_core::limits::{TURN_CHANGES_BESIDE_OTHERS_MAX, TURN_CHANGES_MAX, TURN_COMMANDS_MAX};
use imori_core::turn::{Budget, Next, Received};
use imori_core::world::World;
use imori_nats::codec::decode::{Decoder, Step};
use imori_nats::codec::operation::ServerOp;
use imori_nats::limits::Limits;
use imori_nats::settings::Settings;
use imori_testkit::{ROOMY_LIMITS, TestWorld};

fn connected(world: &TestWorld) -> Client {
    let mut client = Client::new(world, &Arc::new(Settings::default()), true);
    client.send(world, b"CONNECT {\"verbose\":false}\r\n");
    assert!(client.connection.is_logged_in());
    client
}

fn turn(world: &TestWorld, client: &mut Client, input: &[u8]) -> Received {
    client.connection.receive(world, &mut (), input, None, &mut Budget::default())
}

/// SECURITY LIM-10: one connection does not keep others from their turn.
#[test]
fn a_turn_ends_after_its_budget() {
    let turns = [
        ("PUB a 1\r\nx\r\n", TURN_COMMANDS_MAX),
        ("PING\r\n", TURN_COMMANDS_MAX),
        ("SUB a 1\r\n", TURN_CHANGES_MAX),
        ("UNSUB 1\r\n", TURN_CHANGES_MAX),
    ];
    for (operation, a_turn) in turns {
        let world = world();
        let mut client = connected(&world);
        let input = operation.repeat(a_turn + 10).into_bytes();
        let received = turn(&world, &mut client, &input);
        assert_eq!((received.consumed, received.next), (operation.len() * a_turn, Next::Again));
        let rest = &input[received.consumed..];
        let received = turn(&world, &mut client, rest);
        assert_eq!((received.consumed, received.next), (rest.len(), Next::More { frame_bytes: None }));
    }
}

/// A turn makes fewer table changes if other connections wait, and more if none does.
#[test]
fn a_turn_changes_the_table_less_beside_others() {
    for operation in ["SUB a 1\r\n", "UNSUB 1\r\n"] {
        let world = world();
        let mut client = connected(&world);
        let input = operation.repeat(TURN_CHANGES_MAX).into_bytes();
        let received = client.connection.receive(&world, &mut (), &input, None, &mut Budget::beside_others());
        let expected = operation.len() * TURN_CHANGES_BESIDE_OTHERS_MAX;
        assert_eq!((received.consumed, received.next), (expected, Next::Again));
    }
}

#[test]
fn a_run_of_one_kind_makes_one_table() {
    let rows = [
        ("SUB a 1\r\nSUB b 2\r\nSUB c 3\r\n", 1),
        ("UNSUB 1\r\nUNSUB 2\r\nUNSUB 2\r\nUNSUB 3\r\n", 1),
        ("UNSUB 1\r\nUNSUB nobody\r\n", 0),
        ("SUB a 1\r\nSUB b 2\r\nUNSUB 1\r\nUNSUB 2\r\nSUB c 1\r\n", 3),
        ("UNSUB 1 5\r\nPING\r\n", 0),
        ("SUB d 4\r\nSUB e 5\r\nUNSUB 4 1\r\nUNSUB 5 1\r\n", 1),
    ];
    let world = world();
    let mut client = connected(&world);
    for (input, expected) in rows {
        let before = world.tables();
        client.send(&world, input.as_bytes());
        assert_eq!(world.tables() - before, expected, "{input}");
    }
}

#[test]
fn deliveries_count_towards_the_budget() {
    let world = world();
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
fn a_reader_that_is_behind_throttles_its_publisher_once_a_turn() {
    let world = world();
    let mut reader = connected(&world);
    reader.send(&world, b"SUB a 1\r\n");
    let mut client = connected(&world);
    let body = "x".repeat(ROOMY_LIMITS.feed_bytes / 4);
    let operation = format!("PUB a {}\r\n{body}\r\n", body.len());
    let received = turn(&world, &mut client, operation.repeat(8).as_bytes());
    assert_eq!((received.consumed, received.next), (operation.len() * 8, Next::SlowReader(reader.id)));
    reader.output(&world);
    assert_eq!(world.with_outbound(reader.id, |outbound| outbound.has_room()), Some(true));
    let received = turn(&world, &mut client, operation.as_bytes());
    assert_eq!(received.next, Next::More { frame_bytes: None });
}

#[test]
fn the_bytes_of_a_long_message_are_known_early() {
    let world = world();
    let mut client = connected(&world);
    let properties = b"PUB a 1000\r\nxxx";
    let received = turn(&world, &mut client, properties);
    let whole = properties.len() - 3 + 1000 + 2;
    assert_eq!((received.consumed, received.next), (0, Next::More { frame_bytes: Some(whole) }));
}

/// The next publish, by any client, sees the subscriptions made before it.
#[test]
fn subscriptions_of_a_turn_are_made_before_it_ends() {
    let world = world();
    let (mut reader, mut client) = (connected(&world), connected(&world));
    reader.output(&world);
    turn(&world, &mut reader, b"SUB a 1\r\nSUB b 2\r\nSUB c");
    turn(&world, &mut client, b"PUB a 1\r\nx\r\nPUB b 1\r\ny\r\nPUB c 1\r\nz\r\n");
    assert_eq!(reader.output(&world), b"MSG a 1 1\r\nx\r\nMSG b 2 1\r\ny\r\n");
}

#[test]
fn subscriptions_have_ended_when_the_turn_ends() {
    let world = world();
    let (mut reader, mut client) = (connected(&world), connected(&world));
    reader.send(&world, b"SUB a 1\r\nSUB b 2\r\nSUB c 3\r\n");
    reader.output(&world);
    turn(&world, &mut reader, b"UNSUB 1\r\nUNSUB 2 1\r\nUNSUB 3");
    turn(&world, &mut client, b"PUB a 1\r\nx\r\nPUB b 1\r\ny\r\nPUB b 1\r\nz\r\nPUB c 1\r\nz\r\n");
    assert_eq!(reader.output(&world), b"MSG b 2 1\r\ny\r\nMSG c 3 1\r\nz\r\n");
}

/// Decision 0011: messages published without parsing arrive like parsed ones.
#[test]
fn messages_that_repeat_themselves_arrive_like_others() {
    for options in ["", ",\"echo\":false", ",\"headers\":true"] {
        let mut heard = Vec::new();
        // All together, and each with a PING before it.
        for between in ["", "PING\r\n"] {
            let world = world();
            let (mut reader, mut client) = (connected(&world), connected(&world));
            reader.send(&world, b"SUB a.* 1\r\nSUB a.b g 2\r\n");
            let connect =
                format!("CONNECT {{\"verbose\":false,\"pedantic\":false{options}}}\r\nSUB a.* 9\r\n");
            client.send(&world, connect.as_bytes());
            for body in ["12", "34", "56", "78", "9\r", "\r\n"] {
                client.send(&world, format!("{between}PUB a.b 2\r\n{body}\r\n").as_bytes());
            }
            let all = format!("{between}PUB a.b 2\r\nxx\r\n").repeat(10);
            client.send(&world, all.as_bytes());
            client.send(
                &world,
                b"SUB a.b 10\r\nPUB a.b 2\r\nyy\r\nUNSUB 10\r\nPUB a.b 2\r\nzz\r\nPUB a.b 2\r\nno end",
            );
            heard.push([bodies(&reader.output(&world)), bodies(&client.output(&world))]);
            assert_eq!(client.next, Next::Close, "the last is no operation");
        }
        assert_eq!(heard[0], heard[1], "{options}");
        assert_eq!(heard[0][0].get("1").map(Vec::len), Some(18));
        assert_eq!(heard[0][1].is_empty(), options.contains("echo"));
    }
}

/// Returns the messages of each subscription, in order.
fn bodies(output: &[u8]) -> BTreeMap<String, Vec<String>> {
    let text = |bytes: &[u8]| bytes.escape_ascii().to_string();
    let (mut decoder, mut rest) = (Decoder::new(Limits::of_client()), output);
    let mut bodies = BTreeMap::<String, Vec<String>>::new();
    while let Ok(Step::Op { op, consumed }) = decoder.server_op(rest) {
        if let ServerOp::Message(message) = op {
            bodies.entry(text(message.sid)).or_default().push(text(message.payload));
        }
        rest = &rest[consumed..];
    }
    assert!(rest.is_empty(), "{}", text(rest));
    bodies
}
