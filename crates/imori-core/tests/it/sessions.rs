//! Several sessions of one connection.

use imori_core::broker::{self, Repetition};
use imori_core::delivery::Outcome;
use imori_core::error::BrokerError;
use imori_core::message::{Address, OriginId, Properties, Publication};
use imori_core::outbound::{Numbers, SessionId};
use imori_core::world::Counter;
use imori_testkit::{LIMITS, TestWorld};

#[test]
fn a_session_that_ends_gives_back_its_own_and_no_other_notices() {
    let world = TestWorld::new();
    let first = world.connect(1);
    let publisher = world.connect(2);
    first.declare("q");
    first.declare("other");
    let (ends, stays) = (first.open_session(7).unwrap(), first.open_session(u16::MAX).unwrap());
    // More readers than one step removes.
    for reader in 0..20 {
        ends.subscribe("t", &format!("e{reader}"));
    }
    ends.consume("q", "e", 2);
    ends.consume("other", "eo", 9);
    stays.consume("other", "so", 1);
    stays.subscribe("t", "s");
    for body in ["1", "2", "3"] {
        publisher.send("q", body);
        publisher.send("other", body);
    }
    assert_eq!(first.read_all(), "e:1;eo:1;e:2;so:2;eo:3;");
    assert_eq!(ends.end_session(), 2);
    // The other consumer gets these messages as soon as it can; one of them was its own.
    stays.consume("q", "sq", 9);
    assert_eq!(first.read_all(), "sq!:1;sq!:2;sq:3;");
    assert_eq!(stays.settle(Numbers::One(1), Outcome::Accept), Ok(1));
    assert_eq!(first.read_all(), "so!:1;");
    assert_eq!(publisher.publish("amq.topic", "t", "live").receivers, 1);
    assert_eq!(first.read_all(), "s:live;");
    assert_eq!(ends.settle(Numbers::All, Outcome::Accept), Ok(0));
    assert_eq!(ends.settle(Numbers::One(1), Outcome::Accept), Err(BrokerError::NoDelivery(1)));
    let refused = ends.try_consume("q", "e", 1, false);
    assert_eq!(refused, Err(BrokerError::NoSession(SessionId(7))));
    let refused = ends.try_subscribe("amq.topic", "t", "e", None);
    assert_eq!(refused, Err(BrokerError::NoSession(SessionId(7))));
    assert_eq!(first.end_session(), 1);
    first.disconnect();
    publisher.consume("other", "p", 9);
    assert_eq!(publisher.read_all(), "p!:1;p!:3;");
}

#[test]
fn readers_of_a_run_keep_the_order_of_their_own_session() {
    for (second, expected) in [(1, "a:1;b:1;a:2;b:2;a:3;b:3;"), (2, "a:1;a:2;a:3;b:1;b:2;b:3;")] {
        let world = TestWorld::new();
        let client = world.connect(1);
        let sessions = [1, 2].map(|id| client.open_session(id).unwrap());
        sessions[0].subscribe("t", "a");
        sessions[second - 1].subscribe("t", "b");
        let properties = Properties::new(OriginId::BROKER);
        let run = [b"1", b"2", b"3"].map(|body| Publication::new(&properties, b"", body));
        let (mut repetition, address) = (Repetition::default(), Address::new(b"amq.topic", b"t"));
        let publisher = world.connect(2);
        let report = broker::publish_again(&world, &publisher.actor(), &address, &run, &mut repetition);
        assert_eq!(report.unwrap().receivers, 6);
        assert_eq!(client.read_all(), expected);
    }
}

#[test]
fn a_connection_opens_sessions_up_to_its_limit() {
    let world = TestWorld::new();
    let client = world.connect(1);
    let sessions: Vec<_> = (1..LIMITS.sessions_max).map(|id| client.open_session(id).unwrap()).collect();
    let max = LIMITS.sessions_max;
    assert_eq!(client.open_session(99).err(), Some(BrokerError::TooManySessions { max }));
    assert_eq!(client.open_session(1).err(), Some(BrokerError::SessionOpen(SessionId(1))));
    assert_eq!(client.open_session(0).err(), Some(BrokerError::SessionOpen(SessionId(0))));
    sessions[0].end_session();
    assert!(client.open_session(99).is_ok());
}

#[test]
fn an_inbox_of_a_session_that_ended_is_gone() {
    let world = TestWorld::new();
    let (owner, sender) = (world.connect(1), world.connect(2));
    let session = owner.open_session(3).unwrap();
    let (its, other) = (session.inbox("i"), owner.inbox("i"));
    assert_ne!(its, other);
    assert_eq!(sender.send(&its, "1").receivers, 1);
    session.end_session();
    assert_eq!(sender.send(&its, "late").receivers, 0);
    assert_eq!(sender.send(&other, "2").receivers, 1);
    assert_eq!(owner.read(), "i:1;i:2;");
    assert_eq!(world.counted(Counter::ReplyDropped), 1);
}

#[test]
fn a_window_is_shared_by_two_consumers_while_another_session_goes_on() {
    let world = TestWorld::new();
    let client = world.connect(1);
    let publisher = world.connect(2);
    for queue in ["a", "b", "c"] {
        client.declare(queue);
    }
    let (shared, other) = (client.open_session(1).unwrap(), client.open_session(2).unwrap());
    broker::set_window(&world, &shared.actor(), shared.session, Some(1));
    shared.consume("a", "a", 10);
    shared.consume("b", "b", 10);
    other.consume("c", "c", 10);
    for body in ["1", "2", "3"] {
        for queue in ["a", "b", "c"] {
            publisher.send(queue, body);
        }
    }
    assert_eq!(client.read_all(), "a:1;c:1;c:2;c:3;");
    // Each consumer has its turn, whichever queue the settled delivery came from.
    for (number, expected) in [(1, "b:1;"), (2, "a:2;"), (3, "b:2;"), (4, "a:3;"), (5, "b:3;"), (6, "")] {
        shared.accept(number);
        assert_eq!(client.read_all(), expected, "after {number}");
    }
    // The window is open again, for the first message that comes.
    publisher.send("b", "4");
    publisher.send("a", "4");
    assert_eq!(client.read_all(), "b:4;");
    broker::set_window(&world, &shared.actor(), shared.session, None);
    publisher.send("b", "5");
    assert_eq!(client.read_all(), "a:4;b:5;");
    assert_eq!(shared.settle(Numbers::Range(8, 9), Outcome::Accept), Ok(2));
    assert_eq!(shared.settle(Numbers::All, Outcome::Accept), Ok(1));
}

#[test]
fn a_consumer_whose_queue_is_empty_makes_way_for_the_next_in_line() {
    let world = TestWorld::new();
    let client = world.connect(1);
    for queue in ["a", "b"] {
        client.declare(queue);
    }
    let session = client.open_session(1).unwrap();
    broker::set_window(&world, &session.actor(), session.session, Some(1));
    let (first, _) = (session.consume("a", "a", 10), session.consume("b", "b", 10));
    client.send("a", "1");
    client.send("a", "2");
    client.send("b", "1");
    assert_eq!(client.read_all(), "a:1;");
    // Another connection takes the message that the first in line waits for.
    let other = world.connect(2);
    other.consume("a", "o", 10);
    assert_eq!(other.read_all(), "o:2;");
    session.accept(1);
    assert_eq!(client.read_all(), "b:1;");
    session.cancel(first);
    session.accept(2);
    assert_eq!(client.read_all(), "");
}
