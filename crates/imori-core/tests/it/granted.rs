//! Consumers with granted credit, and sessions with peers that limit their frames.

use imori_core::broker;
use imori_core::outbound::FrameNumbers;
use imori_core::world::World;
use imori_testkit::{Caller, TestWorld};

/// The remaining credit of a consumer, and its serial number.
fn left(client: &Caller<'_>, reader: imori_core::id::ReaderId) -> Option<(u32, u32)> {
    client.world.with_outbound(client.id, |outbound| outbound.granted(reader)).flatten()
}

#[test]
fn who_drains_gets_what_there_is_and_gives_up_the_rest_at_once() {
    let world = TestWorld::new();
    let (client, publisher) = (world.connect(1), world.connect(2));
    client.declare("q");
    let reader = client.consume_granted("q", "c");
    for body in ["1", "2", "3"] {
        publisher.send("q", body);
    }
    assert_eq!(client.read_all(), "", "nothing was granted");
    client.grant(reader, (0, 2), true);
    assert_eq!(client.read_all(), "c:1;c:2;drained c 2;");
    // A late grant counts from what its receiver knew.
    client.grant(reader, (1, 2), false);
    assert_eq!(client.read_all(), "c:3;");
    client.grant(reader, (3, 10), true);
    assert_eq!((client.read_all(), left(&client, reader)), ("drained c 13;".to_string(), Some((0, 13))));
    publisher.send("q", "4");
    assert_eq!(client.read_all(), "");
    client.grant(reader, (13, 0), true);
    assert_eq!(client.read_all(), "drained c 13;", "without credit it is drained too");
    client.grant(reader, (13, 5), false);
    assert_eq!((client.read_all(), left(&client, reader)), ("c:4;".to_string(), Some((4, 14))));
}

#[test]
fn who_drains_without_room_gets_all_before_the_end_of_the_drain() {
    let world = TestWorld::new();
    let (client, publisher) = (world.connect(1), world.connect(2));
    client.declare("q");
    let large = "x".repeat(imori_testkit::LIMITS.feed_bytes);
    for _ in 0..3 {
        publisher.send("q", &large);
    }
    let reader = client.consume_granted("q", "c");
    client.grant(reader, (0, 9), true);
    let delivery = format!("c:{large};");
    assert_eq!(client.read(), delivery, "it has no room for another");
    assert_eq!(client.read(), delivery);
    assert_eq!(client.read_all(), format!("{delivery}drained c 9;"));
}

#[test]
fn a_drain_that_was_taken_back_is_not_answered() {
    let world = TestWorld::new();
    let (client, publisher) = (world.connect(1), world.connect(2));
    client.declare("q");
    let large = "x".repeat(imori_testkit::LIMITS.feed_bytes);
    for _ in 0..2 {
        publisher.send("q", &large);
    }
    let reader = client.consume_granted("q", "c");
    client.grant(reader, (0, 9), true);
    client.grant(reader, (0, 9), false);
    assert_eq!(client.read_all(), format!("c:{large};c:{large};"));
    assert_eq!(left(&client, reader), Some((7, 2)));
}

#[test]
fn a_session_sends_no_more_frames_than_its_peer_takes() {
    let world = TestWorld::new();
    let (client, publisher) = (world.connect(1), world.connect(2));
    client.declare("q");
    let (narrow, wide) = (client.open_session(1).unwrap(), client.open_session(2).unwrap());
    let frames = |count| {
        world.with_outbound(client.id, |outbound| {
            outbound.count_frames(narrow.session, FrameNumbers { next: u32::MAX, awaited: 7 }, count);
        });
    };
    let end = |end| broker::grant_frames(&world, &client.actor(), narrow.session, end);
    frames(2);
    let reader = narrow.consume_granted("q", "n");
    narrow.grant(reader, (0, 100), false);
    // Each `;` in a body ends a frame.
    publisher.send("q", "1;1;1");
    assert_eq!(client.read_all(), "n:1;1;", "the rest of it waits");
    publisher.send("q", "2");
    assert_eq!(client.read_all(), "", "nothing overtakes it");
    let numbers = world.with_outbound(client.id, |outbound| outbound.tell_awaited(narrow.session, 9));
    assert_eq!(numbers.flatten(), Some(FrameNumbers { next: 1, awaited: 9 }));
    end(2);
    assert_eq!(client.read_all(), "1;");
    end(2);
    assert_eq!(client.read_all(), "");
    let other = wide.consume_granted("q", "w");
    wide.grant(other, (0, 1), false);
    assert_eq!(client.read_all(), "w:2;", "another session goes on");
    narrow.grant(reader, (1, 50), true);
    assert_eq!(client.read_all(), "drained n 51;", "an answer is not counted");
    publisher.send("q", "3;3;3");
    narrow.grant(reader, (51, 50), true);
    end(3);
    assert_eq!(client.read_all(), "n:3;");
    end(5);
    assert_eq!(client.read_all(), "3;3;drained n 101;", "and overtakes no part of a delivery");
    end(1);
    narrow.grant(reader, (101, 50), false);
    publisher.send("q", "4");
    assert_eq!(client.read_all(), "", "a window that ends behind the next frame is closed");
    end(6);
    assert_eq!(client.read_all(), "n:4;");
    assert_eq!(world.with_outbound(client.id, |outbound| outbound.unsettled_len()), Some(4));
}

#[test]
fn frames_that_wait_for_a_window_are_charged_and_go_with_their_session() {
    for ends in ["session", "connection"] {
        let world = TestWorld::new();
        let (client, publisher) = (world.connect(1), world.connect(2));
        client.declare("q");
        let session = client.open_session(1).unwrap();
        world.with_outbound(client.id, |outbound| {
            outbound.count_frames(session.session, FrameNumbers::default(), 0);
        });
        let reader = session.consume_granted("q", "n");
        session.grant(reader, (0, 1), false);
        assert_eq!(
            world.with_outbound(client.id, |outbound| outbound.grant_frames(session.session, 1)),
            Some(None)
        );
        publisher.send("q", &format!("a;{}", "b".repeat(100_000)));
        assert_eq!(client.read_all(), "n:a;");
        assert!(world.charged() > 200_000, "the message and its frames are {} bytes", world.charged());
        if ends == "session" {
            session.end_session();
        }
        client.disconnect();
        publisher.consume("q", "p", 0);
        assert!(publisher.read_all().starts_with("p!:a;b"));
        assert_eq!(world.charged(), 0, "{ends}");
    }
}
