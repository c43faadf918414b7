//! Temporary queues that replies bypass, while the only reader settles nothing and has credit, and no message
//! waits.

use imori_core::authorize::{Grants, Identity, Rights, Tags};
use imori_core::broker;
use imori_core::id::{ReaderId, VhostId};
use imori_core::message::{OriginId, Properties, Publication};
use imori_core::name::Name;
use imori_core::outbound::{InboxAddress, Numbers};
use imori_core::world::World;
use imori_testkit::{Caller, LIMITS, TestMessage, TestWorld, VHOST};

/// Number of messages that went through the queue.
fn taken(world: &TestWorld, name: &str) -> u64 {
    let id = world.queue(name).expect("the queue is there");
    world.with_queue(id, |queue| queue.activity().published).expect("the queue is there")
}

/// A reply queue of the first connection with a bypassing reader: one message went past it.
fn passed<'w>(world: &'w TestWorld, credit: u32) -> (Caller<'w>, Caller<'w>, String, ReaderId) {
    let (owner, sender) = (world.connect(1), world.connect(2));
    let (name, reader) = owner.reply_queue("r");
    owner.grant(reader, (0, credit + 1), false);
    assert_eq!(sender.send(&name, "first").receivers, 1);
    assert_eq!(owner.read(), "r:first;");
    assert_eq!(taken(world, &name), 1);
    (owner, sender, name, reader)
}

#[test]
fn a_reply_passes_the_queue() {
    let world = TestWorld::new();
    let (owner, sender, name, _) = passed(&world, 9);
    for body in ["1", "2", "3"] {
        assert_eq!(sender.send(&name, body).receivers, 1);
    }
    assert_eq!(owner.read(), "r:1;r:2;r:3;");
    assert_eq!((taken(&world, &name), world.charged()), (1, 0));
}

#[test]
fn a_reply_without_credit_waits_in_the_queue_and_nothing_overtakes_it() {
    let world = TestWorld::new();
    let (owner, sender, name, reader) = passed(&world, 1);
    for body in ["1", "2", "3"] {
        assert_eq!(sender.send(&name, body).receivers, 1);
    }
    assert_eq!((owner.read(), world.depth(&name)), ("r:1;".to_string(), Some((2, 0))));
    owner.grant(reader, (2, 1), false);
    sender.send(&name, "4");
    assert_eq!((owner.read(), world.depth(&name)), ("r:2;".to_string(), Some((2, 0))));
    owner.grant(reader, (3, 4), false);
    assert_eq!(owner.read(), "r:3;r:4;");
    let before = taken(&world, &name);
    sender.send(&name, "5");
    assert_eq!((owner.read(), taken(&world, &name)), ("r:5;".to_string(), before));
}

#[test]
fn a_reply_to_who_does_not_read_waits_in_the_queue() {
    let world = TestWorld::new();
    let (owner, sender, name, _) = passed(&world, 100);
    let body = "x".repeat(LIMITS.feed_bytes);
    for _ in 0..30 {
        assert_eq!(sender.send(&name, &body).receivers, 1);
    }
    assert_eq!(world.depth(&name), Some((29, 0)), "the owner is not cut, as its queue keeps them");
    assert_eq!(owner.read_all().matches("r:").count(), 30);
}

#[test]
fn whoever_needs_the_queue_has_it() {
    let world = TestWorld::new();
    let (owner, sender, name, reader) = passed(&world, 100);
    // A second reader, with which the first takes turns.
    let second = owner.consume(&name, "s", 0);
    for body in ["1", "2"] {
        sender.send(&name, body);
    }
    let read = owner.read();
    assert!(read.contains("r:") && read.contains("s:"), "{read}");
    assert_eq!(taken(&world, &name), 3);
    owner.cancel(second);
    // A reader that settles may release.
    owner.cancel(reader);
    owner.consume(&name, "u", 9);
    sender.send(&name, "3");
    assert_eq!(owner.read(), "u:3;");
    assert_eq!(owner.settle(Numbers::All, imori_core::delivery::Outcome::Release { failed: false }), Ok(1));
    assert_eq!(owner.read(), "u!:3;");
}

#[test]
fn a_reply_before_there_is_a_reader_waits_for_it() {
    let world = TestWorld::new();
    let (owner, sender) = (world.connect(1), world.connect(2));
    let (name, first) = owner.reply_queue("r");
    owner.cancel(first);
    sender.send(&name, "1");
    let reader = owner.consume_by_grants(&name, "n", false);
    owner.grant(reader, (0, 9), false);
    sender.send(&name, "2");
    assert_eq!(owner.read(), "n:1;n:2;");
    let before = taken(&world, &name);
    sender.send(&name, "3");
    assert_eq!((owner.read(), taken(&world, &name)), ("n:3;".to_string(), before));
}

#[test]
fn a_delayed_reply_waits_for_its_time() {
    let world = TestWorld::new();
    let (owner, sender, name, _) = passed(&world, 9);
    let delayed = TestMessage { body: "late", delay_ms: 10, ..TestMessage::default() };
    assert_eq!(sender.outgoing("", &name, &delayed).receivers, 1);
    assert_eq!(owner.read(), "");
    world.pass(std::time::Duration::from_millis(10));
    assert_eq!(owner.read(), "r:late;");
}

// SECURITY AUTH-06: opened only by the whole name, and closed with its queue. AUTH-14: closed to other
// vhosts.
#[test]
fn nobody_passes_by_a_guess_or_from_elsewhere() {
    let world = TestWorld::new();
    let (owner, sender, name, _) = passed(&world, 9);
    let address = InboxAddress::from_queue_name(name.as_bytes()).unwrap();
    for bit in 0..128 {
        let mut wrong = address;
        wrong.secret[bit / 8] ^= 1 << (bit % 8);
        let wrong = String::from_utf8(wrong.to_queue_name()).unwrap();
        assert_eq!(sender.send(&wrong, "m").receivers, 0, "{wrong}");
    }
    // It is not an inbox either, which could be written to without the right to write to the queue.
    let inbox = String::from_utf8(address.to_key()).unwrap();
    assert_eq!(sender.send(&inbox, "m").receivers, 0);
    let publication_properties = Properties::new(OriginId::BROKER);
    let publication = Publication::new(&publication_properties, b"", b"m");
    let elsewhere =
        world.with_outbound(owner.id, |outbound| outbound.pass(&address, VhostId(VHOST.0 + 1), &publication));
    assert_eq!(elsewhere, Some(false));
    broker::delete_queue(&world, &owner.actor(), name.as_bytes()).unwrap();
    owner.read();
    assert_eq!(sender.send(&name, "m").receivers, 0);
    let (next, _) = owner.reply_queue("n");
    assert_eq!(InboxAddress::from_queue_name(next.as_bytes()).unwrap().index, address.index);
}

// SECURITY AUTH-01: bypassing the queue needs the right to write to it too.
#[test]
fn whoever_may_not_write_to_the_queue_does_not_pass_it() {
    let world = TestWorld::new();
    let (owner, sender, name, _) = passed(&world, 9);
    let user = Name::from("u");
    let grants = Grants { write: String::from("^other$"), ..Grants::default() };
    let rights = Rights::new(&user, Tags::NONE, [(VHOST, &Name::from("/"), &grants)]).unwrap();
    let identity = Identity { user, rights: rights.into() };
    let actor = broker::Actor { identity: &identity, ..sender.actor() };
    let properties = Properties::new(OriginId::BROKER);
    let refused =
        broker::publish(&world, &actor, b"", name.as_bytes(), &Publication::new(&properties, b"", b"m"));
    assert!(refused.is_err());
    assert_eq!(owner.read(), "");
}
