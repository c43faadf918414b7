//! Publishers wait while a queue grows faster than the disk takes its pages.

use std::sync::Arc;

use imori_conversations::nats::{Client, world};
use imori_core::authorize::Identity;
use imori_core::broker::{self, Actor};
use imori_core::id::VhostId;
use imori_core::inbound::Inbound;
use imori_core::queue::QueueSettings;
use imori_core::route::{Arguments, BindingKey, Syntax};
use imori_core::turn::Next;
use imori_nats::settings::Settings;
use imori_testkit::TestWorld;

/// More messages than the queue takes before it throttles.
const ENOUGH: usize = 60;

fn connected(world: &TestWorld, connect: &str) -> Client {
    let mut client = Client::new(world, &Arc::new(Settings::default()), true);
    client.send(world, connect.as_bytes());
    client.output(world);
    client
}

/// Creates a world with little memory and a throttled queue bound to `long.*`.
fn throttled() -> (TestWorld, Client) {
    let world = world();
    let mut filler = connected(&world, "CONNECT {\"verbose\":false}\r\n");
    let identity = Identity::guest();
    let actor = Actor { identity: &identity, connection: filler.id, vhost: VhostId(0) };
    let queue = broker::declare_queue(&world, &actor, b"long", &QueueSettings::default(), true).unwrap();
    let key = BindingKey::new(Syntax::Amqp, b"long.*");
    broker::bind_queue(&world, &actor, b"amq.topic", &key, &Arguments::NONE, queue.id).unwrap();
    world.share.set(2_000);
    // One at a time, since a run would be published as a whole.
    (0..ENOUGH).for_each(|_| filler.send(&world, b"PUB long.a 1\r\nx\r\n"));
    assert_eq!(filler.next, Next::Parked, "it has filled the queue");
    assert!(filler.connection.intake().parking.waits_for_queue());
    (world, filler)
}

fn text(client: &mut Client, world: &TestWorld) -> String {
    String::from_utf8(client.output(world)).unwrap()
}

#[test]
fn who_only_publishes_is_read_no_further_and_goes_on_with_what_it_sent() {
    let (world, mut filler) = throttled();
    filler.alarm_ended(&world);
    assert_eq!(filler.next, Next::Parked, "an alarm that ends meanwhile is not what it waits for");
    assert_eq!(world.end_pages(), [filler.id]);
    filler.unthrottled(&world);
    assert_eq!(filler.next, Next::More { frame_bytes: None });
    assert_eq!(world.ready_len("long"), ENOUGH);
}

#[test]
fn who_reads_too_is_heard_and_others_hear_at_once_what_no_queue_gets() {
    let (world, _) = throttled();
    let mut client = connected(&world, "CONNECT {\"verbose\":false}\r\nSUB short 1\r\n");
    let mut other = connected(&world, "CONNECT {\"verbose\":false}\r\n");
    other.send(&world, b"PUB short 1\r\na\r\n");
    assert_eq!(text(&mut client, &world), "MSG short 1 1\r\na\r\n");
    let before = world.ready_len("long");
    client.send(&world, b"PUB long.b 1\r\nx\r\nPING\r\nPUB short 1\r\nb\r\nSUB more 2\r\n");
    assert_eq!(client.next, Next::More { frame_bytes: None }, "it is read");
    assert_eq!((text(&mut client, &world), world.ready_len("long")), (String::new(), before));
    other.send(&world, b"PUB more 1\r\nc\r\n");
    assert_eq!(text(&mut client, &world), "MSG more 2 1\r\nc\r\n", "its SUB was obeyed");
    assert!(world.end_pages().contains(&client.id));
    client.unthrottled(&world);
    assert_eq!(text(&mut client, &world), "PONG\r\nMSG short 1 1\r\nb\r\n");
    assert_eq!(world.ready_len("long"), before + 1);
}

/// The turn that reports the end of the alarm also has to read input that arrived meanwhile.
#[test]
fn what_comes_while_an_alarm_ends_is_read_though_a_queue_is_waited_for() {
    let (world, _) = throttled();
    let mut client = connected(&world, "CONNECT {\"verbose\":false}\r\nSUB short 1\r\n");
    client.send(&world, b"PUB long.b 1\r\nx\r\n");
    assert!(client.connection.intake().parking.waits_for_queue());
    client.arrive(b"SUB more 2\r\n");
    client.alarm_ended(&world);
    let mut other = connected(&world, "CONNECT {\"verbose\":false}\r\n");
    other.send(&world, b"PUB more 1\r\nc\r\n");
    assert_eq!(text(&mut client, &world), "MSG more 2 1\r\nc\r\n", "its SUB was obeyed");
    assert!(client.connection.intake().parking.waits_for_queue());
}

#[test]
fn what_waited_is_answered_once() {
    for subscribe in ["", "SUB s 1\r\n"] {
        let (world, _) = throttled();
        let connect = format!("CONNECT {{\"verbose\":true,\"pedantic\":true}}\r\n{subscribe}");
        let mut client = connected(&world, &connect);
        client.send(&world, b"PUB long.* 1\r\nx\r\n");
        assert_eq!(text(&mut client, &world), "", "{subscribe}");
        world.end_pages();
        client.unthrottled(&world);
        let expected = "-ERR 'Invalid Publish Subject'\r\n+OK\r\n";
        assert_eq!(text(&mut client, &world), expected, "{subscribe}");
    }
}
