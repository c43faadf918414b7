//! Limits of a turn, and when a connection has to wait.

use std::sync::Arc;

use imori_conversations::stomp::{Client, world};
use imori_core::id::ConnectionId;
use imori_core::inbound::{Accept as _, Inbound as _};
use imori_core::limits::{
    SETTLES_AT_ONCE, TURN_CHANGES_BESIDE_OTHERS_MAX, TURN_CHANGES_MAX, TURN_COMMANDS_MAX,
};
use imori_core::outbound::Outbound;
use imori_core::turn::{Budget, Next, Peer};
use imori_core::world::World;
use imori_stomp::codec::frame::HeaderTable;
use imori_stomp::connection::Connection;
use imori_stomp::settings::Settings;
use imori_testkit::{ROOMY_LIMITS, TestWorld};

fn connected(world: &TestWorld) -> (Connection, HeaderTable) {
    let settings = Arc::new(Settings::default());
    let id = world.open(Connection::encoder(&settings));
    let peer = Peer::plain(1, true, String::new());
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
    let world = world();
    let (mut connection, mut table) = connected(&world);
    let frame = b"SEND\ndestination:/queue/a\n\nx\0";
    let input = frame.repeat(TURN_COMMANDS_MAX + 10);
    let received = connection.receive(&world, &mut table, &input, None, &mut Budget::default());
    assert_eq!((received.consumed, received.next), (frame.len() * TURN_COMMANDS_MAX, Next::Again));
    let rest = &input[received.consumed..];
    let received = connection.receive(&world, &mut table, rest, None, &mut Budget::default());
    assert_eq!((received.consumed, received.next), (rest.len(), Next::More { frame_bytes: None }));
}

/// Changing the routing table takes as long as several messages and holds up other connections.
#[test]
fn a_turn_changes_the_table_less_often_than_it_sends() {
    let subscribe = "SUBSCRIBE\nid:1\ndestination:/topic/t\n\n\0";
    let input = format!("{subscribe}UNSUBSCRIBE\nid:1\n\n\0").repeat(TURN_COMMANDS_MAX);
    for (mut budget, a_turn) in
        [(Budget::default(), TURN_CHANGES_MAX), (Budget::beside_others(), TURN_CHANGES_BESIDE_OTHERS_MAX)]
    {
        let world = world();
        let (mut connection, mut table) = connected(&world);
        let received = connection.receive(&world, &mut table, input.as_bytes(), None, &mut budget);
        let expected = input.len() / TURN_COMMANDS_MAX * a_turn / 2;
        assert_eq!((received.consumed, received.next), (expected, Next::Again));
        assert_eq!(world.tables(), a_turn);
    }
}

#[test]
fn deliveries_count_towards_the_budget() {
    let world = world();
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
fn a_reader_that_is_behind_throttles_its_publisher_once_a_turn() {
    let world = world();
    let mut reader = Client::new(&world, &Arc::new(Settings::default()), true);
    reader.send(&world, b"CONNECT\n\n\0SUBSCRIBE\ndestination:/topic/t\n\n\0");
    let (mut connection, mut table) = connected(&world);
    let body = vec![b'x'; ROOMY_LIMITS.feed_bytes / 4];
    let frame = [b"SEND\ndestination:/topic/t\n\n", &body[..], b"\0"].concat();
    let input = frame.repeat(8);
    // SECURITY LIM-13: throttling at every message would let a stalled reader hold the publisher up
    // for hours.
    let received = connection.receive(&world, &mut table, &input, None, &mut Budget::default());
    assert_eq!((received.consumed, received.next), (frame.len() * 8, Next::SlowReader(reader.id)));
    let received = connection.receive(&world, &mut table, b"", None, &mut Budget::default());
    assert_eq!(received.next, Next::More { frame_bytes: None });
    reader.output(&world);
    assert_eq!(world.with_outbound(reader.id, |outbound| outbound.has_room()), Some(true));
    let received = connection.receive(&world, &mut table, &frame, None, &mut Budget::default());
    assert_eq!(received.next, Next::More { frame_bytes: None });
    assert!(world.with_outbound(reader.id, |outbound| outbound.has_unsent()).unwrap());
}

#[test]
fn deliveries_of_a_run_count_towards_the_budget() {
    let world = world();
    let settings = Arc::new(Settings::default());
    let mut readers: Vec<Client> = (0..100).map(|_| Client::new(&world, &settings, true)).collect();
    for reader in &mut readers {
        reader.send(&world, b"CONNECT\n\n\0SUBSCRIBE\ndestination:/topic/t\n\n\0");
    }
    let (mut connection, mut table) = connected(&world);
    let frame = b"SEND\ndestination:/topic/t\ncontent-length:1\n\nx\0";
    let known = frame.repeat(2);
    connection.receive(&world, &mut table, &known, None, &mut Budget::default());
    let input = frame.repeat(50);
    let received = connection.receive(&world, &mut table, &input, None, &mut Budget::default());
    assert_eq!((received.consumed, received.next), (frame.len() * 11, Next::Again));
}

/// A run of frames has the same effects as the same frames one by one.
#[test]
fn frames_that_come_together_reach_everybody_as_those_that_come_alone() {
    let frame = |destination: &str, body: &str| {
        format!("SEND\ndestination:{destination}\ncontent-length:{}\n\n{body}\0", body.len()).into_bytes()
    };
    let mut frames: Vec<Vec<u8>> = Vec::new();
    for (destination, bodies) in [
        ("/topic/t", 0..8),
        ("/queue/q", 8..20),
        ("/topic/nobody", 20..24),
        ("/queue/q", 24..27),
        ("/topic/t", 27..33),
        ("/reply-queue/imori.inbox.gone", 33..40),
    ] {
        frames.extend(bodies.map(|body| frame(destination, &format!("{body:02}"))));
    }
    frames.insert(5, b"\n\n".to_vec());
    frames.push(frame("/topic/t", "longer"));
    frames.extend((0..3).map(|_| frame("/exchange/none/key", "xx")));
    let mut outputs = Vec::new();
    for together in [1, 3, frames.len()] {
        let world = world();
        let settings = Arc::new(Settings { keeps_open_after_error: true, ..Settings::default() });
        let mut clients: Vec<Client> = (0..4).map(|_| Client::new(&world, &settings, true)).collect();
        for client in &mut clients {
            client.send(&world, b"CONNECT\naccept-version:1.2\nhost:/\n\n\0");
        }
        for (client, destination) in clients.iter_mut().skip(1).zip(["/topic/t", "/topic/#", "/queue/q"]) {
            let subscribe = format!("SUBSCRIBE\nid:1\ndestination:{destination}\n\n\0");
            client.send(&world, subscribe.as_bytes());
        }
        for bytes in frames.chunks(together) {
            clients[0].send(&world, &bytes.concat());
        }
        let output: Vec<Vec<u8>> = clients.iter_mut().map(|client| client.output(&world)).collect();
        let is_alike = |text: &str| text.starts_with("message-id:") || text.starts_with("session:");
        let output: Vec<String> =
            output.iter().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).collect();
        let lines = output
            .iter()
            .map(|text| text.lines().filter(|line| !is_alike(line)).collect::<Vec<_>>().join("\n"));
        outputs.push(lines.collect::<Vec<_>>());
    }
    assert_eq!(outputs[0][0].matches("ERROR").count(), 1, "the first refusal is the last word");
    assert_eq!(outputs[0][1].matches("MESSAGE").count(), 15);
    assert_eq!(outputs[0][3].matches("MESSAGE").count(), 15);
    assert_eq!(outputs[0], outputs[1]);
    assert_eq!(outputs[0], outputs[2]);
}

#[test]
fn the_bytes_of_a_long_frame_are_known_early() {
    let world = world();
    let (mut connection, mut table) = connected(&world);
    let head = b"SEND\ndestination:/queue/a\ncontent-length:1000\n\nxxx";
    let received = connection.receive(&world, &mut table, head, None, &mut Budget::default());
    let whole = head.len() - 3 + 1000 + 1;
    assert_eq!((received.consumed, received.next), (0, Next::More { frame_bytes: Some(whole) }));
}

/// Another cell may end the alarm between any two frames.
#[test]
fn order_is_kept_wherever_in_a_turn_the_alarm_ends() {
    let mut was_parked = false;
    for looks in 0..12 {
        let world = world();
        let settings = Arc::new(Settings::default());
        let mut reader = Client::new(&world, &settings, true);
        reader.send(&world, b"CONNECT\n\n\0SUBSCRIBE\ndestination:/topic/t\n\n\0");
        let mut publisher = Client::new(&world, &settings, true);
        publisher.send(&world, b"CONNECT\n\n\0SUBSCRIBE\ndestination:/topic/other\n\n\0");
        publisher
            .send(&world, b"BEGIN\ntransaction:x\n\n\0SEND\ndestination:/topic/t\ntransaction:x\n\nbody-2\0");
        reader.output(&world);
        world.set_alarmed_for(looks);
        publisher.send(
            &world,
            b"SEND\ndestination:/topic/t\n\nbody-1\0COMMIT\ntransaction:x\n\n\0SEND\ndestination:/topic/t\n\nbody-3\0",
        );
        was_parked |= publisher.connection.intake().parking.has_parked();
        world.set_alarmed(false);
        publisher.alarm_ended(&world);
        let output = String::from_utf8(reader.output(&world)).unwrap();
        let bodies: Vec<&str> = output.split("body-").skip(1).map(|rest| &rest[..1]).collect();
        assert_eq!(bodies, ["1", "2", "3"], "it ended after {looks} looks");
    }
    assert!(was_parked);
}

/// An ACK of many deliveries is split over turns, to let others have theirs, and gets one receipt.
#[test]
fn an_ack_of_many_deliveries_takes_several_turns() {
    let world = world();
    let (mut reader, mut table) = connected(&world);
    let id = reader.actor().connection;
    let subscribe = b"SUBSCRIBE\nid:1\nack:client\nprefetch-count:10000\ndestination:/queue/q\n\n\0";
    reader.receive(&world, &mut table, subscribe, None, &mut Budget::default());
    let (mut publisher, mut scratch) = connected(&world);
    let deliveries = 2 * SETTLES_AT_ONCE + 1;
    let mut input = b"SEND\ndestination:/queue/q\n\nx\0".repeat(deliveries);
    while !input.is_empty() {
        let received = publisher.receive(&world, &mut scratch, &input, None, &mut Budget::default());
        input.drain(..received.consumed);
    }
    let unsettled = || world.with_outbound(id, |outbound| outbound.unsettled_len()).unwrap();
    assert_eq!(unsettled(), deliveries);
    let said = written(&world, id);
    let last = said.rsplit("\nack:").next().unwrap().lines().next().unwrap();
    let ack = format!("ACK\nid:{last}\nreceipt:all\n\n\0BEGIN\ntransaction:t\nreceipt:next\n\n\0");
    for (left, consumed) in [(SETTLES_AT_ONCE + 1, 0), (1, 0), (0, ack.len())] {
        assert_eq!(written(&world, id), "");
        let received = reader.receive(&world, &mut table, ack.as_bytes(), None, &mut Budget::default());
        assert_eq!((unsettled(), received.consumed), (left, consumed));
        assert_eq!(received.next == Next::Again, left > 0);
    }
    assert_eq!(written(&world, id), "RECEIPT\nreceipt-id:all\n\n\0RECEIPT\nreceipt-id:next\n\n\0");
}

/// Settles wait while a checkpoint needs their room in the journal; a client without deliveries
/// goes on.
#[test]
fn a_client_with_deliveries_is_read_later_while_settles_wait() {
    let world = world();
    let (mut reader, mut table) = connected(&world);
    let subscribe = b"SUBSCRIBE\nid:1\nack:client-individual\ndestination:/queue/q\n\n\0";
    reader.receive(&world, &mut table, subscribe, None, &mut Budget::default());
    let send = b"SEND\ndestination:/queue/q\n\nx\0";
    let (mut publisher, mut scratch) = connected(&world);
    for settles_wait in [false, true] {
        world.room.settles_wait.set(settles_wait);
        let received = publisher.receive(&world, &mut scratch, send, None, &mut Budget::default());
        assert_eq!(received.consumed, send.len());
    }
    let said = written(&world, reader.actor().connection);
    let id = said.rsplit("\nack:").next().unwrap().lines().next().unwrap();
    let ack = format!("ACK\nid:{id}\n\n\0");
    for (settles_wait, consumed) in [(true, 0), (false, ack.len())] {
        world.room.settles_wait.set(settles_wait);
        let received = reader.receive(&world, &mut table, ack.as_bytes(), None, &mut Budget::default());
        assert_eq!(received.consumed, consumed);
        assert_eq!(received.next == Next::Later, settles_wait);
    }
}

/// Takes the unsent text of a connection.
fn written(world: &TestWorld, id: ConnectionId) -> String {
    let mut bytes = Vec::new();
    while let Some((piece, from)) = world.with_outbound(id, Outbound::take_unsent).flatten() {
        bytes.extend_from_slice(&piece[from..]);
        let whole = piece.len();
        world.with_outbound(id, |outbound| outbound.put_back(piece, whole));
        world.with_outbound(id, Outbound::written);
    }
    String::from_utf8(bytes).unwrap()
}
