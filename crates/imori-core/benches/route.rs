//! Measures the cost of routing: time and memory of a million subscriptions, of a look-up and of a cache hit.
//!
//! Prints one line per measurement. Each group runs in its own process, so that memory is the growth of the
//! resident set, including the allocator. Times are processor times of the thread, which other work on the
//! machine disturbs less. `-- NAME` runs one group.

#![allow(clippy::print_stdout, reason = "a benchmark prints its results")]

use std::env;
use std::fs;
use std::hint::black_box;
use std::process::Command;
use std::sync::Arc;

use imori_core::id::{ConnectionId, QueueId, Reader, ReaderId, VhostId};
use imori_core::name::Name;
use imori_core::route::hamt::Seed;
use imori_core::route::{Arguments, BindingKey, NoHeaders, Router, Syntax, Table, TableLimits, Target};

const VHOST: VhostId = VhostId(0);
const TOPIC: &[u8] = b"amq.topic";
const MILLION: u32 = 1_000_000;
const PAGE_BYTES: usize = 4096;

/// When the writer publishes the table to its readers.
#[derive(Clone, Copy, PartialEq)]
enum Publish {
    /// Once, after all changes.
    AtTheEnd,
    /// After each change, as a broker with one client subscribing does.
    Always,
}

fn main() {
    let groups = ["literal", "wild", "deep", "inbox", "same"];
    let publishes = [("once", Publish::AtTheEnd), ("always", Publish::Always)];
    let mut names = vec!["hits".to_owned(), "long".to_owned()];
    for (suffix, _) in publishes {
        names.extend(groups.map(|group| format!("{group}-{suffix}")));
    }
    let Some(name) = env::args().skip(1).find(|argument| !argument.starts_with("--")) else {
        return names.iter().for_each(|name| run_alone(name));
    };
    match name.as_str() {
        "hits" => hits(),
        "remembered" | "literal" | "wild" => count(&name),
        "long" => long_subjects(),
        _ => {
            let (group, suffix) = name.split_once('-').unwrap_or((&name, "once"));
            let publish = publishes.iter().find(|(known, _)| *known == suffix).map(|(_, publish)| *publish);
            subscribe(&name, group, publish.unwrap_or(Publish::AtTheEnd));
        }
    }
}

fn run_alone(name: &str) {
    let program = env::current_exe().expect("a running program has a path");
    let status = Command::new(program).arg(name).status();
    assert!(status.is_ok_and(|status| status.success()), "{name} did not finish");
}

/// The pattern of a group's subscription, and a subject that it matches.
fn texts(group: &str, number: u32) -> (String, String) {
    match group {
        "literal" => (format!("device.{number}.telemetry"), format!("device.{number}.telemetry")),
        "wild" => (format!("device.{number}.*"), format!("device.{number}.telemetry")),
        "deep" => {
            let site = number % 1000;
            (format!("site.{site}.device.{number}.>"), format!("site.{site}.device.{number}.a.b"))
        }
        "inbox" => {
            let id = u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            (format!("_INBOX.{id:022}.*"), format!("_INBOX.{id:022}.7"))
        }
        _ => ("news.all".to_owned(), "news.all".to_owned()),
    }
}

fn target(number: u32) -> Target {
    let connection = ConnectionId { cell: 0, slot: number / 100, generation: 0 };
    Target::Subscription(Reader { connection, id: ReaderId { slot: number % 100, generation: 0 } })
}

fn empty_table() -> Table {
    let mut table = Table::new(Seed(1), TableLimits::default());
    table.add_vhost(VHOST, Name::from("/"));
    table
}

fn bind(table: &mut Table, text: &str, target: &Target) {
    let key = BindingKey::new(Syntax::Nats, text.as_bytes());
    let is_new = table.bind(VHOST, TOPIC, &key, &Arguments::default(), target);
    assert_eq!(is_new, Ok(true), "{text}");
}

fn subscribe(name: &str, group: &str, publish: Publish) {
    let before = resident_bytes();
    let mut table = empty_table();
    let mut published = Arc::new(table.clone());
    let add = measure(MILLION, |number| {
        bind(&mut table, &texts(group, number).0, &target(number));
        if publish == Publish::Always {
            published = Arc::new(table.clone());
        }
    });
    let bytes = resident_bytes().saturating_sub(before) / MILLION as usize;
    println!("{name}: {add:.0} ns to add, {bytes} B each");
    if group != "same" {
        matches(name, group, &table);
    }
    let remove = measure(MILLION, |number| {
        let key = BindingKey::new(Syntax::Nats, texts(group, number).0.as_bytes());
        let removal = table.unbind(VHOST, TOPIC, &key, &Arguments::default(), &target(number));
        assert!(removal.is_ok_and(|removal| removal.was_there));
        if publish == Publish::Always {
            published = Arc::new(table.clone());
        }
    });
    println!("{name}: {remove:.0} ns to remove");
}

fn matches(name: &str, group: &str, table: &Table) {
    // A step that is coprime to the million visits distant subjects.
    let subjects: Vec<String> =
        (0..200_000u32).map(|number| texts(group, number * 7_919 % MILLION).1).collect();
    let mut rest = subjects.iter();
    let cold = measure(200_000, |_| {
        let subject = rest.next().map(String::as_bytes).unwrap_or_default();
        let route = table.route(VHOST, TOPIC, subject, &NoHeaders);
        assert_eq!(route.map(|route| route.subscriptions.len()), Ok(1));
    });
    let mut few = subjects.iter().take(16).cycle();
    let warm = measure(MILLION, |_| {
        let subject = few.next().map(String::as_bytes).unwrap_or_default();
        black_box(table.route(VHOST, TOPIC, subject, &NoHeaders).is_ok());
    });
    println!(
        "{name}: {cold:.0} ns to route an address not remembered, {warm:.0} ns while in the CPU's cache"
    );
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
        [(TOPIC, "orders.eu.created"), (&b""[..], "orders.eu.created"), (TOPIC, "news.all")]
    {
        let ns = measure(20 * MILLION, |_| {
            let route = router.route(&table, VHOST, exchange, black_box(subject.as_bytes()), &NoHeaders);
            black_box(route.is_ok());
        });
        println!("remembered route of `{subject}`: {ns:.1} ns");
    }
    let subjects: Vec<String> = (0..700).map(|number| format!("orders.eu.{number}.created")).collect();
    let mut turns = subjects.iter().cycle();
    let ns = measure(7 * MILLION, |_| {
        let subject = turns.next().map(String::as_bytes).unwrap_or_default();
        black_box(router.route(&table, VHOST, TOPIC, subject, &NoHeaders).is_ok());
    });
    println!("one of 700 routes in turn: {ns:.1} ns");
}

/// Routes one of a thousand addresses `--rounds=N` times without timing, for counting instructions.
fn count(what: &str) {
    let mut table = empty_table();
    let group = if what == "wild" { "wild" } else { "literal" };
    for number in 0..1000 {
        bind(&mut table, &texts(group, number).0, &target(number));
    }
    let (mut router, subject) = (Router::new(), texts(group, 500).1);
    let rounds = env::args().find_map(|argument| argument.strip_prefix("--rounds=")?.parse().ok());
    for _ in 0..rounds.unwrap_or(1_u64) {
        let subject = black_box(subject.as_bytes());
        let receivers = match what {
            "remembered" => {
                router.route(&table, VHOST, TOPIC, subject, &NoHeaders).map(|route| route.subscriptions.len())
            }
            _ => table.route(VHOST, TOPIC, subject, &NoHeaders).map(|route| route.subscriptions.len()),
        };
        assert_eq!(receivers, Ok(1));
    }
}

fn long_subjects() {
    let subject = vec!["a"; 128].join(".");
    let with_other = |text: String| {
        let mut table = empty_table();
        let key = BindingKey::new(Syntax::Amqp, text.as_bytes());
        let is_new = table.bind(VHOST, TOPIC, &key, &Arguments::default(), &target(0));
        assert_eq!(is_new, Ok(true), "{text}");
        // Any wildcard forces a walk through the trie.
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

/// Average nanoseconds of one call.
fn measure(count: u32, mut call: impl FnMut(u32)) -> f64 {
    let start = processor_ns();
    for number in 0..count {
        call(number);
    }
    (processor_ns() - start) / f64::from(count)
}

/// Processor time of this thread in nanoseconds: the first number of `schedstat`.
fn processor_ns() -> f64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").expect("benchmarks run on Linux");
    text.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or_default()
}

/// Bytes of the resident set: the second number of `statm`, in pages.
fn resident_bytes() -> usize {
    let text = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok());
    pages.unwrap_or_default() * PAGE_BYTES
}
