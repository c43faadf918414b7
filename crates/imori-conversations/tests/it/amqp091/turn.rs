//! Limits of a turn.

use std::sync::Arc;

use imori_amqp091::connection::Connection;
use imori_amqp091::header_reader;
use imori_amqp091::settings::Settings;
use imori_conversations::amqp091::LOGIN;
use imori_conversations::amqp091::text::{bytes, lines};
use imori_core::limits::{READERS_AT_ONCE, SETTLES_AT_ONCE, TURN_COMMANDS_MAX};
use imori_core::turn::{Budget, Next};
use imori_testkit::{Client, TestWorld};

fn client(world: &TestWorld, text: &str) -> Client<Connection> {
    let mut client = Client::new(world, &Arc::new(Settings::default()), true);
    client.send(world, &said(LOGIN));
    client.send(world, &said(text));
    client.output(world);
    client
}

fn said(text: &str) -> Vec<u8> {
    text.lines().flat_map(bytes).collect()
}

/// SECURITY LIM-10: one connection does not keep others from their turn.
#[test]
fn a_turn_ends_after_its_budget() {
    let publish = "1 basic.publish routing-key=q\n1 header 1\n1 body x";
    for command in [publish, "1 queue.declare queue=q", "1 basic.qos", "1 basic.get queue=q no-ack"] {
        let world = TestWorld::reading(header_reader);
        let mut client = client(&world, "1 channel.open\n1 queue.declare queue=q");
        let command = said(command);
        let input = command.repeat(TURN_COMMANDS_MAX + 10);
        let received = client.turn(&world, &input, &mut Budget::default());
        assert_eq!((received.consumed, received.next), (command.len() * TURN_COMMANDS_MAX, Next::Again));
        let rest = &input[received.consumed..];
        let received = client.turn(&world, rest, &mut Budget::default());
        assert_eq!((received.consumed, received.next), (rest.len(), Next::More { frame_bytes: None }));
    }
}

/// Runs turns with this input until it is consumed; returns their number.
fn turns(client: &mut Client<Connection>, world: &TestWorld, input: &[u8]) -> usize {
    let (mut turns, mut consumed) = (0, 0);
    while consumed < input.len() {
        consumed += client.turn(world, &input[consumed..], &mut Budget::default()).consumed;
        turns += 1;
    }
    turns
}

/// SECURITY LIM-10: the deliveries and consumers of a closed channel are given back over several
/// turns, and frames after the close are ignored.
#[test]
fn channels_and_connections_end_in_parts() {
    let deliveries = 2 * SETTLES_AT_ONCE + 5;
    let consumers = 5 * READERS_AT_ONCE;
    let publish = "1 basic.publish routing-key=q\n1 header 0\n";
    let consume: String =
        (0..consumers).map(|tag| format!("1 basic.consume queue=q consumer-tag={tag}\n")).collect();
    for (end, answer) in [
        ("1 channel.close reply-code=200", "1 channel.close-ok"),
        ("1 basic.ack delivery-tag=99999", "1 channel.close reply-code=406"),
        ("1 basic.publish exchange=none\n1 header 1\n1 body x", "1 channel.close reply-code=404"),
        (
            "1 basic.publish exchange=none\n1 header 2\n1 body x\n2 basic.qos\n1 body x",
            "1 channel.close reply-code=404",
        ),
    ] {
        let world = TestWorld::reading(header_reader);
        let mut client = client(&world, "1 channel.open\n2 channel.open\n1 queue.declare queue=q");
        client.send(&world, &said(&consume));
        client.send(&world, &said(&publish.repeat(deliveries)));
        client.output(&world);
        assert_eq!(world.depth("q"), Some((0, deliveries)), "all are with their consumers");
        let taken = turns(&mut client, &world, &said(end));
        assert!(taken > deliveries / SETTLES_AT_ONCE + consumers / READERS_AT_ONCE - 2, "{end}: {taken}");
        assert_eq!(world.depth("q"), Some((deliveries, 0)), "{end}");
        let answers = lines(&client.output(&world));
        assert!(answers.iter().any(|line| line.starts_with(answer)), "{end}: {answers:?}");
        client.leave(&world);
    }
}

/// `close-ok` is sent after the client's exclusive queues are deleted.
#[test]
fn exclusive_queues_go_in_parts() {
    let world = TestWorld::reading(header_reader);
    let mut client = client(&world, "1 channel.open");
    let count = 3 * READERS_AT_ONCE;
    let declare = |number| format!("1 queue.declare queue=q{number} exclusive\n");
    client.send(&world, &said(&(0..count).map(declare).collect::<String>()));
    client.output(&world);
    assert_eq!(turns(&mut client, &world, &said("0 connection.close reply-code=200")), 3);
    assert_eq!(world.queues_len(), 0);
    assert_eq!(lines(&client.output(&world)), ["0 connection.close-ok"]);
}

#[test]
fn many_deliveries_are_settled_in_parts_and_later_ones_are_not_meant() {
    let world = TestWorld::reading(header_reader);
    let publish = "1 basic.publish routing-key=q\n1 header 0\n";
    for (command, answer) in [
        ("1 basic.ack multiple", None),
        ("1 basic.nack multiple", None),
        ("1 basic.recover requeue", Some("1 basic.recover-ok")),
    ] {
        let mut client =
            client(&world, "1 channel.open\n1 queue.declare queue=q auto-delete\n1 basic.consume queue=q");
        let count = SETTLES_AT_ONCE + 5;
        client.send(&world, &said(&publish.repeat(count)));
        assert_eq!(world.depth("q"), Some((0, count)));
        let input = said(command);
        let mut turns = 1;
        let mut received = client.turn(&world, &input, &mut Budget::default());
        assert_eq!((received.consumed, received.next), (0, Next::Again), "{command}");
        // A message of another client that arrives between the turns.
        let mut other = self::client(&world, "1 channel.open");
        other.send(&world, &said(publish));
        while received.next == Next::Again && received.consumed == 0 {
            received = client.turn(&world, &input, &mut Budget::default());
            turns += 1;
        }
        assert_eq!((received.consumed, turns), (input.len(), 2), "{command}");
        let released = if command.contains("recover") { count } else { 0 };
        assert_eq!(world.depth("q"), Some((0, 1 + released)), "{command}");
        assert_eq!(
            lines(&client.output(&world)).last().map(String::as_str).filter(|_| answer.is_some()),
            answer
        );
        client.leave(&world);
        assert_eq!(world.depth("q"), None);
    }
}
