use imori_core::outbound::InboxAddress;
use imori_core::world::Counter;
use imori_testkit::{LIMITS, TestWorld};

#[test]
fn a_reply_comes_to_the_inbox_it_was_sent_to() {
    let world = TestWorld::new();
    let (requester, responder) = (world.connect(1), world.connect(2));
    let (one, two) = (requester.inbox("one"), requester.inbox("two"));
    assert_eq!(requester.inbox("one"), one);
    assert_eq!(responder.send(&two, "2").receivers, 1);
    assert_eq!(responder.send(&one, "1").receivers, 1);
    assert_eq!(requester.read(), "two:2;one:1;");
    assert_eq!((world.counted(Counter::ReplyDropped), world.charged()), (0, 0));
}

// SECURITY AUTH-06: only the owner can read it, only the whole secret opens it, and it ends with the
// connection.
#[test]
fn nobody_else_opens_an_inbox() {
    let world = TestWorld::new();
    let (owner, thief, sender) = (world.connect(1), world.connect(2), world.connect(3));
    let key = owner.inbox("i");
    let address = InboxAddress::from_key(key.as_bytes()).unwrap();
    let mut guesses = vec![
        "imori.inbox.".to_owned(),
        format!("{key}A"),
        key.to_lowercase(),
        key[..key.len() - 1].to_owned(),
        String::from_utf8(InboxAddress { owner: thief.id, ..address }.to_key()).unwrap(),
        String::from_utf8(InboxAddress { index: 1, ..address }.to_key()).unwrap(),
    ];
    for bit in 0..128 {
        let mut wrong = address;
        wrong.secret[bit / 8] ^= 1 << (bit % 8);
        guesses.push(String::from_utf8(wrong.to_key()).unwrap());
    }
    for guess in &guesses {
        assert_eq!(sender.send(guess, "m").receivers, 0, "{guess}");
    }
    assert_eq!(world.counted(Counter::ReplyDropped), guesses.len());
    // It is not a queue or a subject either that a thief could read.
    assert!(thief.try_consume(&key, "t", 0, false).is_err());
    thief.subscribe("#", "t");
    for _ in 0..10 {
        sender.send(&key, "m");
        assert_eq!(owner.read(), "i:m;");
    }
    assert_eq!(thief.read(), "");
}

#[test]
fn a_reply_to_who_is_gone_is_dropped_and_counted() {
    let world = TestWorld::new();
    let (owner, sender) = (world.connect(1), world.connect(2));
    let key = owner.inbox("i");
    owner.disconnect();
    let report = sender.send(&key, "m");
    assert_eq!((report.receivers, world.counted(Counter::ReplyDropped)), (0, 1));
    // A new connection in the same slot is not the old one.
    let next = world.connect_again(1, 1);
    let fresh = next.inbox("i");
    assert_ne!(fresh, key);
    assert_eq!(sender.send(&key, "m").receivers, 0);
    assert_eq!(sender.send(&fresh, "m").receivers, 1);
    assert_eq!(next.read(), "i:m;");
}

#[test]
fn replies_never_slow_their_sender_and_cut_an_owner_who_does_not_read() {
    let world = TestWorld::new();
    let (owner, sender) = (world.connect(1), world.connect(2));
    let key = owner.inbox("i");
    let body = "x".repeat(LIMITS.feed_bytes);
    let reports: Vec<_> = (0..30).map(|_| sender.send(&key, &body)).collect();
    assert!(reports.iter().all(|report| report.slow_reader.is_none()));
    assert_eq!(world.counted(Counter::CutTooSlow), 1);
    assert!(owner.read().ends_with(";cut;"));
}
