//! What routing costs: time and memory of a million subscriptions, of a look-up and of a hit.
//!
//! Prints one line a measurement. Each runs in a table of its own; memory is what the resident
//! set grew by, so it includes what the allocator adds.

#![allow(clippy::print_stdout, reason = "a benchmark prints its results")]
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock; the core does not")]

use std::fs;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use imori_core::id::{ConnectionId, QueueId, Reader, ReaderId, VhostId};
use imori_core::route::hamt::Seed;
use imori_core::route::{Arguments, BindingKey, NoHeaders, Router, Syntax, Table, TableLimits, Target};

const VHOST: VhostId = VhostId(0);
const TOPIC: &[u8] = b"amq.topic";
const MILLION: u32 = 1_000_000;
const PAGE_BYTES: usize = 4096;

/// How the writer hands the table to the readers.
#[derive(Clone, Copy, PartialEq)]
enum Publish {
    /// Once, after all changes.
    AtTheEnd,
    /// After each change, as a broker with one client subscribing does.
    Always,
}

fn main() {
    let subject = |number: u32| format!("device.{number}.telemetry");
    let wild = |number: u32| format!("device.{number}.*");
    let deep = |number: u32| format!("site.{}.device.{number}.>", number % 1000);
    let inbox =
        |number: u32| format!("_INBOX.{:022}.*", u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    for publish in [Publish::AtTheEnd, Publish::Always] {
        subscribe("literal subjects", publish, subject);
        subscribe("`device.N.*`", publish, wild);
        subscribe("`site.M.device.N.>`", publish, deep);
        subscribe("inboxes `_INBOX.ID.*`", publish, inbox);
        subscribe("one subject", publish, |_| "news.all".to_owned());
    }
    matches("1 M literal subjects", subject, |number| format!("device.{number}.telemetry"));
    matches("1 M `device.N.*`", wild, |number| format!("device.{number}.telemetry"));
    matches("1 M inboxes `_INBOX.ID.*`", inbox, |number| inbox(number).replace('*', "x"));
    hits();
    long_subjects();
}

fn target(number: u32) -> Target {
    let connection = ConnectionId { cell: 0, slot: number / 100, generation: 0 };
    Target::Subscription(Reader { connection, id: ReaderId { slot: number % 100, generation: 0 } })
}

fn empty_table() -> Table {
    let mut table = Table::new(Seed(1), TableLimits::default());
    table.add_vhost(VHOST);
    table
}

fn bind(table: &mut Table, text: &str, target: &Target) {
    let key = BindingKey::new(Syntax::Nats, text.as_bytes());
    let is_new = table.bind(VHOST, TOPIC, &key, &Arguments::default(), target);
    assert_eq!(is_new, Ok(true), "{text}");
}

fn subscribe(name: &str, publish: Publish, text: impl Fn(u32) -> String) {
    let before = resident_bytes();
    let mut table = empty_table();
    let mut published = Arc::new(table.clone());
    let start = Instant::now();
    for number in 0..MILLION {
        bind(&mut table, &text(number), &target(number));
        if publish == Publish::Always {
            published = Arc::new(table.clone());
        }
    }
    let built = start.elapsed();
    let bytes = resident_bytes().saturating_sub(before) / MILLION as usize;
    let start = Instant::now();
    for number in 0..MILLION {
        let key = BindingKey::new(Syntax::Nats, text(number).as_bytes());
        let removal = table.unbind(VHOST, TOPIC, &key, &Arguments::default(), &target(number));
        assert!(removal.is_ok_and(|removal| removal.was_there));
        if publish == Publish::Always {
            published = Arc::new(table.clone());
        }
    }
    let removed = start.elapsed();
    let how = if publish == Publish::Always { "published each time" } else { "published once" };
    println!(
        "1 M on {name}, {how}: {:.2} s to add, {:.2} s to remove, {bytes} B each",
        built.as_secs_f64(),
        removed.as_secs_f64(),
    );
    drop(published);
}

fn matches(name: &str, text: impl Fn(u32) -> String, subject: impl Fn(u32) -> String) {
    let mut table = empty_table();
    for number in 0..MILLION {
        bind(&mut table, &text(number), &target(number));
    }
    // A step that is prime to the million visits subjects far from each other.
    let subjects: Vec<String> = (0..200_000u32).map(|number| subject(number * 7_919 % MILLION)).collect();
    let ns = measure(subjects.len(), |index| {
        let route = table.route(VHOST, TOPIC, subjects[index].as_bytes(), &NoHeaders);
        assert_eq!(route.map(|route| route.subscriptions.len()), Ok(1));
    });
    println!("route without memory among {name}, cold: {ns:.0} ns");
    let ns = measure(1_000_000, |index| {
        let subject = &subjects[index % 16];
        black_box(table.route(VHOST, TOPIC, subject.as_bytes(), &NoHeaders).is_ok());
    });
    println!("route without memory among {name}, warm: {ns:.0} ns");
}

fn hits() {
    let mut table = empty_table();
    for (slot, name) in (0..).zip(["orders.eu.created", "news.all", "rpc.server.requests"]) {
        let added = table.add_queue(VHOST, name.as_bytes(), QueueId { slot, generation: 0 });
        assert_eq!(added, Ok(true));
        bind(&mut table, name, &target(slot));
    }
    let mut router = Router::new();
    for (exchange, subject) in
        [(&b""[..], "orders.eu.created"), (TOPIC, "orders.eu.created"), (TOPIC, "news.all")]
    {
        let ns = measure(20_000_000, |_| {
            let route = router.route(&table, VHOST, exchange, black_box(subject.as_bytes()), &NoHeaders);
            black_box(route.is_ok());
        });
        println!("remembered route of `{subject}`: {ns:.1} ns");
    }
    let subjects: Vec<String> = (0..700).map(|number| format!("orders.eu.{number}.created")).collect();
    let ns = measure(7_000_000, |index| {
        let subject = subjects[index % subjects.len()].as_bytes();
        black_box(router.route(&table, VHOST, TOPIC, subject, &NoHeaders).is_ok());
    });
    println!("one of 700 routes in turn: {ns:.1} ns");
}

fn long_subjects() {
    let subject = vec!["a"; 128].join(".");
    let with_other = |text: String| {
        let mut table = empty_table();
        let key = BindingKey::new(Syntax::Amqp, text.as_bytes());
        let is_new = table.bind(VHOST, TOPIC, &key, &Arguments::default(), &target(0));
        assert_eq!(is_new, Ok(true), "{text}");
        // Any wildcard makes the trie be walked.
        bind(&mut table, "zzz.*", &target(1));
        table
    };
    for (name, text) in [
        ("literal".to_owned(), subject.clone()),
        ("`a` and wildcards".to_owned(), format!("a{}", ".*".repeat(127))),
        ("`#` 128 times".to_owned(), vec!["#"; 128].join(".")),
        ("`#.b`".to_owned(), "#.b".to_owned()),
        ("`#.a.a.a.#.b`".to_owned(), "#.a.a.a.#.b".to_owned()),
        ("`#.a.a.b.#`".to_owned(), "#.a.a.b.#".to_owned()),
    ] {
        let table = with_other(text);
        let ns = measure(200_000, |_| {
            black_box(table.route(VHOST, TOPIC, subject.as_bytes(), &NoHeaders).is_ok());
        });
        println!("128 tokens against {name}: {ns:.0} ns");
    }
}

/// Nanoseconds of one call, on average.
fn measure(count: usize, mut call: impl FnMut(usize)) -> f64 {
    let start = Instant::now();
    for index in 0..count {
        call(index);
    }
    start.elapsed().as_secs_f64() * 1e9 / count as f64
}

/// Bytes of the resident set: the second number of `statm`, in pages.
fn resident_bytes() -> usize {
    let text = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok());
    pages.unwrap_or_default() * PAGE_BYTES
}
