//! Publishers wait while a queue grows faster than the disk takes its pages.

use std::sync::Arc;

use imori_conversations::stomp::{self, Client};
use imori_core::inbound::Inbound;
use imori_core::turn::Next;
use imori_stomp::settings::Settings;
use imori_testkit::TestWorld;

const SEND: &str = "SEND\ndestination:/queue/long\n\nx\0";

/// More SENDs than the queue takes before it throttles.
const ENOUGH: usize = 60;

fn connected(world: &TestWorld, subscription: &str) -> Client {
    let mut client = Client::new(world, &Arc::new(Settings::default()), true);
    client.send(world, b"CONNECT\naccept-version:1.2\nhost:/\n\n\0");
    if !subscription.is_empty() {
        let subscribe =
            format!("SUBSCRIBE\nid:1\ndestination:{subscription}\nack:client\nprefetch-count:1\n\n\0");
        client.send(world, subscribe.as_bytes());
    }
    client.output(world);
    client
}

fn world() -> TestWorld {
    let world = stomp::world();
    world.share.set(2_000);
    world
}

/// Fills the queue until it throttles, with SENDs that are parsed one by one or repeat a known
/// head.
fn throttle(world: &TestWorld, send: &str) -> Client {
    let mut filler = connected(world, "");
    // One at a time, since a run would be published as a whole.
    (0..ENOUGH).for_each(|_| filler.send(world, send.as_bytes()));
    assert_eq!(filler.next, Next::Parked, "it has filled the queue");
    assert!(
        filler.connection.intake().parking.waits_for_queue()
            && !filler.connection.intake().parking.has_parked()
    );
    filler
}

fn text(client: &mut Client, world: &TestWorld) -> String {
    String::from_utf8(client.output(world)).unwrap()
}

/// Counts the messages in the queue by consuming them.
fn count(world: &TestWorld) -> usize {
    let mut reader = connected(world, "");
    reader.send(world, b"SUBSCRIBE\nid:1\ndestination:/queue/long\nack:auto\n\n\0");
    text(&mut reader, world).matches("MESSAGE\n").count()
}

#[test]
fn who_only_publishes_is_read_no_further_and_goes_on_with_what_it_sent() {
    for send in [SEND, "SEND\ndestination:/queue/long\ncontent-length:1\n\nx\0"] {
        let world = world();
        let mut filler = throttle(&world, send);
        // The end of an alarm does not wake a publisher that waits for a queue.
        filler.alarm_ended(&world);
        assert_eq!(filler.next, Next::Parked);
        assert_eq!(world.end_pages(), [filler.id]);
        filler.unthrottled(&world);
        assert_eq!(filler.next, Next::More { frame_bytes: None });
        assert_eq!(count(&world), ENOUGH, "all of them, each once");
    }
}

#[test]
fn who_reads_too_is_heard_and_its_receipts_keep_their_order() {
    let world = world();
    let mut client = connected(&world, "/queue/other");
    throttle(&world, SEND);
    let mut other = connected(&world, "");
    other.send(&world, b"SEND\ndestination:/queue/other\n\nfor it\0");
    assert_eq!(other.next, Next::More { frame_bytes: None }, "this queue is short");
    let delivery = text(&mut client, &world);
    let ack = delivery.lines().find_map(|line| line.strip_prefix("ack:")).unwrap();
    let frames = format!(
        "SEND\ndestination:/queue/long\nreceipt:1\n\nx\0SEND\ndestination:/queue/other\nreceipt:2\n\ny\0\
         ACK\nid:{ack}\nreceipt:3\n\n\0"
    );
    client.send(&world, frames.as_bytes());
    assert!(
        client.connection.intake().parking.waits_for_queue()
            && client.connection.intake().parking.has_parked()
    );
    assert_eq!(client.next, Next::More { frame_bytes: None }, "it is read");
    assert_eq!(text(&mut client, &world), "", "what is behind the SEND waits with it");
    other.send(&world, b"SEND\ndestination:/queue/other\n\nnext\0");
    assert!(text(&mut client, &world).contains("next"), "its ACK was obeyed, or it had no credit");
    let unthrottled = world.end_pages();
    assert!(unthrottled.contains(&client.id));
    client.unthrottled(&world);
    let receipts: Vec<String> = text(&mut client, &world)
        .lines()
        .filter_map(|line| line.strip_prefix("receipt-id:").map(String::from))
        .collect();
    assert_eq!(receipts, ["1", "2", "3"]);
    assert!(
        !client.connection.intake().parking.has_parked()
            && !client.connection.intake().parking.waits_for_queue()
    );
}

/// The turn that reports the end of the alarm also has to read input that arrived meanwhile.
#[test]
fn what_comes_while_an_alarm_ends_is_read_though_a_queue_is_waited_for() {
    let world = world();
    let mut client = connected(&world, "/queue/other");
    throttle(&world, SEND);
    let mut other = connected(&world, "");
    other.send(&world, b"SEND\ndestination:/queue/other\n\nfor it\0");
    let delivery = text(&mut client, &world);
    let ack = delivery.lines().find_map(|line| line.strip_prefix("ack:")).unwrap();
    client.send(&world, SEND.as_bytes());
    assert!(client.connection.intake().parking.waits_for_queue());
    client.arrive(format!("ACK\nid:{ack}\n\n\0").as_bytes());
    client.alarm_ended(&world);
    other.send(&world, b"SEND\ndestination:/queue/other\n\nnext\0");
    assert!(text(&mut client, &world).contains("next"), "its ACK was obeyed, or it had no credit");
    assert!(client.connection.intake().parking.waits_for_queue());
}

#[test]
fn a_transaction_waits_with_its_commit_and_is_whole_afterwards() {
    for subscription in ["", "/queue/other"] {
        let world = world();
        let mut client = connected(&world, subscription);
        throttle(&world, SEND);
        let frame = |destination: &str| format!("SEND\ndestination:{destination}\ntransaction:t\n\nx\0");
        let (long, other) = (frame("/queue/long"), frame("/queue/other"));
        client.send(&world, format!("BEGIN\ntransaction:t\n\n\0{long}{other}").as_bytes());
        assert!(!client.connection.intake().parking.waits_for_queue(), "nothing is published yet");
        client.send(&world, b"COMMIT\ntransaction:t\nreceipt:c\n\n\0");
        assert!(client.connection.intake().parking.waits_for_queue());
        assert_eq!(text(&mut client, &world), "");
        assert!(world.end_pages().contains(&client.id));
        client.unthrottled(&world);
        let output = text(&mut client, &world);
        assert!(output.contains("receipt-id:c") && !output.contains("ERROR"), "{output}");
        assert_eq!(output.contains("MESSAGE"), !subscription.is_empty(), "{output}");
    }
}

#[test]
fn who_says_goodbye_while_it_waits_leaves_when_all_is_done() {
    let world = world();
    let mut client = connected(&world, "/queue/other");
    throttle(&world, SEND);
    client.send(&world, [SEND, "DISCONNECT\nreceipt:bye\n\n\0"].concat().as_bytes());
    assert_eq!(client.next, Next::Parked);
    world.end_pages();
    client.unthrottled(&world);
    assert!(text(&mut client, &world).contains("receipt-id:bye"));
    assert_eq!(client.next, Next::Close);
}

#[test]
fn a_queue_that_is_deleted_keeps_nobody() {
    let world = world();
    let mut filler = throttle(&world, SEND);
    world.delete_queue("long");
    assert_eq!(world.unthrottled.take(), [filler.id]);
    filler.unthrottled(&world);
    assert_eq!(filler.next, Next::More { frame_bytes: None });
    let left = count(&world);
    assert!((1..ENOUGH).contains(&left), "{left} went to the queue that was made anew");
}

#[test]
fn an_alarm_that_begins_meanwhile_is_waited_for_behind_the_queue() {
    let world = world();
    let mut client = connected(&world, "/queue/other");
    throttle(&world, SEND);
    client.send(&world, SEND.as_bytes());
    world.set_alarmed(true);
    client.alarm_ended(&world);
    world.end_pages();
    client.unthrottled(&world);
    assert!(
        client.connection.intake().parking.has_parked()
            && !client.connection.intake().parking.waits_for_queue()
    );
    world.set_alarmed(false);
    client.alarm_ended(&world);
    assert!(!client.connection.intake().parking.has_parked());
}
