//! Publishers wait if their queue grows faster than its pages are written; other publishers do not.

use imori_core::authorize::Identity;
use imori_core::broker::{
    self, Actor, Step, must_wait_to_commit, must_wait_to_publish, page_failed, page_written, pages_copied,
};
use imori_core::entries::PagePlace;
use imori_core::id::QueueId;
use imori_core::internal::OutgoingMessage;
use imori_core::message::{Address, MessageView, OriginId, Properties, Publication};
use imori_core::paging::{PageDraft, PageWork};
use imori_core::queue::QueueSettings;
use imori_core::world::{Counter, World};
use imori_testkit::{Caller, TestMessage, TestWorld};

use crate::durable::durable;
use crate::internal::{Inside, to_queue};

/// Bytes of memory that a queue may keep here.
const SHARE: usize = 4_000;

fn must_wait_as(world: &TestWorld, actor: &Actor<'_>, exchange: &str, subject: &str) -> bool {
    let properties = Properties::new(OriginId::BROKER);
    let view = MessageView { properties: &properties, text: b"", body: b"x" };
    must_wait_to_publish(world, actor, exchange.as_bytes(), subject.as_bytes(), &view)
}

fn must_wait(world: &TestWorld, client: &Caller<'_>, exchange: &str, subject: &str) -> bool {
    must_wait_as(world, &client.actor(), exchange, subject)
}

/// Fills a queue until its publishers have to wait; returns the pages that it asks to be written.
fn throttle(world: &TestWorld, client: &Caller<'_>, name: &str) -> Vec<PageDraft> {
    world.share.set(SHARE);
    let before = world.gauge().throttling();
    for _ in 0..1_000 {
        client.outgoing("", name, &TestMessage { body: "a message", ..TestMessage::default() });
        if world.gauge().throttling() > before {
            let work = world.work.take().into_iter();
            let drafts = work
                .filter_map(|(_, work)| if let PageWork::Write(drafts) = work { Some(drafts) } else { None });
            return drafts.flatten().collect();
        }
    }
    Vec::new()
}

/// Fails the writes of a queue, so that its publishers resume.
fn fail(world: &TestWorld, queue: QueueId, drafts: Vec<PageDraft>) {
    drafts.into_iter().for_each(|draft| page_failed(world, queue, draft));
}

#[test]
fn an_internal_client_waits_for_a_queue_and_for_an_alarm() {
    let world = TestWorld::new();
    let client = world.connect(1);
    let long = client.declare_with("long", &durable()).unwrap();
    let drafts = throttle(&world, &client, "long");
    let inside = Inside::new(&world);
    inside.publish(&to_queue("long"), OutgoingMessage::new("m"));
    assert_eq!(inside.published(), []);
    world.set_alarmed(true);
    fail(&world, long, drafts);
    inside.unthrottled();
    assert_eq!(inside.published(), [], "there is an alarm now");
    world.set_alarmed(false);
    inside.alarm_ended();
    assert_eq!(inside.published(), [1]);
}

#[test]
fn publishers_of_a_throttling_queue_wait_and_no_others() {
    let world = TestWorld::new();
    let (client, other) = (world.connect(1), world.connect(2));
    let long = client.declare_with("long", &durable()).unwrap();
    client.declare_with("short", &QueueSettings::default()).unwrap();
    client.bind("amq.topic", "a.#", long).unwrap();
    let drafts = throttle(&world, &client, "long");
    assert!(!drafts.is_empty());
    for (exchange, subject, expected) in [
        ("", "long", true),
        ("amq.topic", "a.b", true),
        ("amq.topic", "b", false),
        ("", "short", false),
        ("", "nobody", false),
        ("none", "key", false),
        ("", "imori.inbox.x", false),
    ] {
        assert_eq!(must_wait(&world, &other, exchange, subject), expected, "{exchange} {subject}");
    }
    let nobody = Identity::nobody();
    let eve = Actor { identity: &nobody, ..other.actor() };
    assert!(!must_wait_as(&world, &eve, "", "long"), "they are refused at once");
    assert_eq!(world.counted(Counter::Throttled), 2);
    fail(&world, long, drafts);
    assert_eq!(world.unthrottled.take(), [other.id]);
    assert!(!must_wait(&world, &other, "", "long"), "nothing is being written any more");
}

#[test]
fn a_transaction_waits_if_one_of_its_messages_has_to() {
    let world = TestWorld::new();
    let client = world.connect(1);
    let long = client.declare_with("long", &durable()).unwrap();
    client.declare_with("short", &durable()).unwrap();
    let drafts = throttle(&world, &client, "long");
    let properties = Properties::new(OriginId::BROKER);
    let step = |subject: &str| Step::Publish {
        address: Address::new(b"", subject.as_bytes()),
        copies: Vec::new(),
        message: Publication::new(&properties, b"", b"x").stored(world.gauge()),
    };
    let wait = |steps: &[Step]| must_wait_to_commit(&world, &client.actor(), steps);
    assert!(!wait(&[]) && !wait(&[step("short")]));
    assert!(wait(&[step("short"), step("long")]));
    fail(&world, long, drafts);
    assert!(!wait(&[step("short"), step("long")]));
}

#[test]
fn each_end_of_throttling_tells_those_who_wait() {
    for end in ["written", "failed", "deleted", "copied", "consumed"] {
        let world = TestWorld::new();
        let (client, waits) = (world.connect(1), world.connect(2));
        let queue = client.declare_with("q", &durable()).unwrap();
        let drafts = throttle(&world, &client, "q");
        assert!(must_wait(&world, &waits, "", "q"));
        match end {
            "written" => {
                for (segment, draft) in (0..).zip(drafts) {
                    page_written(&world, queue, draft, PagePlace { segment, index: 0 });
                }
            }
            "failed" => fail(&world, queue, drafts),
            "deleted" => {
                broker::delete_queue(&world, &client.actor(), b"q").unwrap();
            }
            "copied" => {
                world.share.set(usize::MAX);
                pages_copied(&world, queue);
            }
            _ => {
                let reader = world.connect(3);
                reader.consume("q", "c", 0);
                while world.gauge().throttling() > 0 && !reader.read_all().is_empty() {}
            }
        }
        assert_eq!(world.unthrottled.take(), [waits.id], "{end}");
        assert_eq!(world.gauge().throttling(), 0, "{end}");
    }
}

#[test]
fn what_repeats_itself_is_asked_for_too() {
    let world = TestWorld::new();
    let client = world.connect(1);
    let long = client.declare_with("q", &durable()).unwrap();
    let properties = Properties::new(OriginId::BROKER);
    let mut repetition = broker::Repetition::default();
    let (address, run) = (Address::new(b"", b"q"), [Publication::new(&properties, b"", b"x")]);
    assert!(!repetition.is_throttled(&world, &client.actor()), "it is not known where it goes");
    broker::publish_again(&world, &client.actor(), &address, &run, &mut repetition).unwrap();
    let drafts = throttle(&world, &client, "q");
    assert!(repetition.is_throttled(&world, &client.actor()));
    fail(&world, long, drafts);
    assert!(!repetition.is_throttled(&world, &client.actor()));
}
