use std::borrow::Cow;

use proptest::prelude::*;

use super::*;
use crate::id::{ConnectionId, Reader, ReaderId};
use crate::limits::SUBJECT_BYTES_MAX;
use crate::message::Value;
use crate::route::header::NoHeaders;
use crate::route::pattern::{Pattern, Syntax, is_match};
use crate::route::router::Router;

const VHOST: VhostId = VhostId(0);

fn table() -> Table {
    let mut table = Table::new(Seed(11), TableLimits::default());
    table.add_vhost(VHOST, Name::from("/"));
    table
}

fn declare(table: &mut Table, name: &str, kind: ExchangeKind, settings: Settings) {
    assert_eq!(table.declare_exchange(VHOST, name.as_bytes(), kind, settings), Ok(true));
}

fn queue(slot: u32) -> Target {
    Target::Queue(QueueId { slot, generation: 0 })
}

fn exchange(name: &str) -> Target {
    Target::Exchange(Name::from(name))
}

fn reader(slot: u32) -> Reader {
    let connection = ConnectionId { cell: 0, slot: 0, generation: 0 };
    Reader { connection, id: ReaderId { slot, generation: 0 } }
}

fn member(group: &str, slot: u32) -> Target {
    Target::Member { group: Name::from(group), reader: reader(slot) }
}

fn key(text: &str) -> BindingKey {
    BindingKey::new(Syntax::Amqp, text.as_bytes())
}

fn bind(table: &mut Table, from: &str, text: &str, target: &Target) {
    assert_eq!(table.bind(VHOST, from.as_bytes(), &key(text), &Arguments::default(), target), Ok(true));
}

fn unbind(table: &mut Table, from: &str, text: &str, target: &Target) -> Removal {
    table.unbind(VHOST, from.as_bytes(), &key(text), &Arguments::default(), target).unwrap()
}

fn route(table: &Table, exchange: &str, subject: &str) -> Route {
    table.route(VHOST, exchange.as_bytes(), subject.as_bytes(), &NoHeaders).unwrap()
}

fn queues(table: &Table, exchange: &str, subject: &str) -> Vec<u32> {
    route(table, exchange, subject).queues.iter().map(|id| id.slot).collect()
}

fn with_alternate(name: &str) -> Settings {
    Settings { alternate: Some(Name::from(name)), ..Settings::default() }
}

#[test]
fn a_vhost_begins_with_its_exchanges() {
    let table = table();
    for (name, kind) in [
        ("", ExchangeKind::Direct),
        ("amq.direct", ExchangeKind::Direct),
        ("amq.fanout", ExchangeKind::Fanout),
        ("amq.topic", ExchangeKind::Topic),
        ("amq.headers", ExchangeKind::Headers),
        ("amq.match", ExchangeKind::Headers),
    ] {
        assert_eq!(table.exchange(VHOST, name.as_bytes()).map(Exchange::kind), Some(kind), "{name}");
    }
    assert_eq!(table.exchanges(VHOST).count(), 6);
}

#[test]
fn the_default_exchange_knows_each_queue_by_its_name() {
    let mut table = table();
    let id = QueueId { slot: 4, generation: 2 };
    assert_eq!(table.add_queue(VHOST, b"orders", id), Ok(true));
    assert_eq!(table.add_queue(VHOST, b"orders", QueueId { slot: 5, generation: 0 }), Ok(false));
    assert_eq!(table.queue(VHOST, b"orders"), Some(id));
    assert_eq!(route(&table, "", "orders").queues, [id]);
    assert!(route(&table, "", "other").is_empty());
    assert!(table.remove_queue(VHOST, b"orders").unwrap().was_there);
    assert!(route(&table, "", "orders").is_empty());
}

#[test]
fn each_kind_chooses_in_its_way() {
    let mut table = table();
    for name in ["amq.direct", "amq.fanout", "amq.topic"] {
        bind(&mut table, name, "a.b", &queue(1));
        bind(&mut table, name, "a.*", &queue(2));
    }
    for (name, subject, expected) in [
        ("amq.direct", "a.b", &[1][..]),
        ("amq.direct", "a.*", &[2]),
        ("amq.fanout", "x", &[1, 2]),
        ("amq.topic", "a.b", &[1, 2]),
        ("amq.topic", "a.c", &[2]),
        ("amq.topic", "a", &[]),
    ] {
        assert_eq!(queues(&table, name, subject), expected, "{name} {subject}");
    }
}

#[test]
fn a_target_of_two_patterns_counts_once() {
    let mut table = table();
    bind(&mut table, "amq.topic", "#.a.#", &queue(1));
    bind(&mut table, "amq.topic", "a.*", &queue(1));
    bind(&mut table, "amq.topic", "a.a", &Target::Subscription(reader(1)));
    bind(&mut table, "amq.topic", "#", &Target::Subscription(reader(1)));
    bind(&mut table, "amq.topic", "#", &Target::Subscription(reader(2)));
    let found = route(&table, "amq.topic", "a.a");
    assert_eq!(found.queues.len(), 1);
    assert_eq!(found.subscriptions, [reader(1), reader(2)]);
}

#[test]
fn a_binding_is_its_key_arguments_and_target() {
    let mut table = table();
    let number = |number| Arguments::new([(Name::from("n"), Value::Int(number))]);
    for name in ["amq.direct", "amq.fanout", "amq.topic", "amq.headers"] {
        let mut add = |text: &str, arguments: &Arguments, slot| {
            table.bind(VHOST, name.as_bytes(), &key(text), arguments, &queue(slot)).unwrap()
        };
        for (text, arguments, slot, is_new) in [
            ("a", number(1), 1, true),
            ("a", number(1), 1, false),
            ("a", number(2), 1, true),
            ("b", number(1), 1, true),
            ("a", number(1), 2, true),
            ("a", Arguments::default(), 1, true),
            ("#.*", Arguments::default(), 1, true),
            ("*.#", Arguments::default(), 1, true),
            ("*.#", Arguments::default(), 1, false),
        ] {
            assert_eq!(add(text, &arguments, slot), is_new, "{name} {text}");
        }
        let mut keys = Vec::new();
        table.exchange(VHOST, name.as_bytes()).unwrap().for_each_binding(&mut |binding| {
            keys.push(String::from_utf8(binding.key.to_vec()).unwrap());
        });
        keys.sort();
        assert_eq!(keys, ["#.*", "*.#", "a", "a", "a", "a", "b"], "{name}");
        assert!(unbind(&mut table, name, "*.#", &queue(1)).was_there);
        assert!(!unbind(&mut table, name, "*.#", &queue(1)).was_there);
        assert!(unbind(&mut table, name, "#.*", &queue(1)).was_there);
    }
}

#[test]
fn exchanges_lead_to_exchanges_and_a_circle_ends() {
    let mut table = table();
    for name in ["one", "two", "three"] {
        declare(&mut table, name, ExchangeKind::Fanout, Settings::default());
    }
    for (number, (from, to)) in (0..).zip([("one", "two"), ("two", "three"), ("three", "one")]) {
        bind(&mut table, from, "", &exchange(to));
        bind(&mut table, from, "", &queue(number));
    }
    bind(&mut table, "one", "", &exchange("one"));
    bind(&mut table, "one", "", &exchange("amq.topic"));
    bind(&mut table, "amq.topic", "a.#", &queue(7));
    assert_eq!(queues(&table, "two", "a.b"), [0, 1, 2, 7]);
    assert_eq!(queues(&table, "two", "b"), [0, 1, 2]);
}

#[test]
fn the_alternate_takes_what_no_binding_takes() {
    let mut table = table();
    declare(&mut table, "last", ExchangeKind::Fanout, Settings::default());
    declare(&mut table, "middle", ExchangeKind::Direct, with_alternate("last"));
    declare(&mut table, "first", ExchangeKind::Direct, with_alternate("middle"));
    declare(&mut table, "loop", ExchangeKind::Direct, with_alternate("loop"));
    declare(&mut table, "astray", ExchangeKind::Direct, with_alternate("nowhere"));
    bind(&mut table, "first", "a", &queue(1));
    bind(&mut table, "middle", "b", &queue(2));
    bind(&mut table, "last", "", &queue(3));
    for (name, subject, expected) in [
        ("first", "a", &[1][..]),
        ("first", "b", &[2]),
        ("first", "c", &[3]),
        ("loop", "a", &[]),
        ("astray", "a", &[]),
    ] {
        assert_eq!(queues(&table, name, subject), expected, "{name} {subject}");
    }
    // A binding to an exchange that routes no further still counts as taking the message.
    bind(&mut table, "first", "c", &exchange("loop"));
    assert_eq!(queues(&table, "first", "c"), []);
}

struct Format(&'static [u8]);

impl Headers for Format {
    fn visit<'a>(&'a self, visit: &mut dyn FnMut(Cow<'a, [u8]>, Value<'a>)) {
        visit(Cow::Borrowed(b"format"), Value::text(self.0));
    }
}

#[test]
fn a_route_by_headers_holds_for_one_message() {
    let mut table = table();
    let pdf = Arguments::new([(Name::from("format"), Value::text(b"pdf"))]);
    table.bind(VHOST, b"amq.headers", &key(""), &pdf, &queue(1)).unwrap();
    bind(&mut table, "amq.fanout", "", &exchange("amq.headers"));
    for name in ["amq.headers", "amq.fanout"] {
        for (format, expected) in [(&b"pdf"[..], 1), (b"doc", 0)] {
            let found = table.route(VHOST, name.as_bytes(), b"", &Format(format)).unwrap();
            assert_eq!((found.queues.len(), found.is_cacheable), (expected, false), "{name}");
        }
    }
    assert!(route(&table, "amq.topic", "a").is_cacheable);
}

#[test]
fn members_of_a_group_come_together_over_all_patterns() {
    let mut table = table();
    bind(&mut table, "amq.topic", "a.*", &member("workers", 1));
    bind(&mut table, "amq.topic", "a.b", &member("workers", 2));
    bind(&mut table, "amq.topic", "#", &member("workers", 1));
    bind(&mut table, "amq.topic", "a.#", &member("audit", 3));
    bind(&mut table, "amq.topic", "b", &member("workers", 4));
    let groups: Vec<_> = route(&table, "amq.topic", "a.b")
        .groups
        .into_iter()
        .map(|group| (group.name, group.members))
        .collect();
    let expected =
        [(Name::from("audit"), vec![reader(3)]), (Name::from("workers"), vec![reader(1), reader(2)])];
    assert_eq!(groups, expected);
}

#[test]
fn a_route_says_whether_the_last_token_had_a_part_in_it() {
    let mut table = table();
    declare(&mut table, "fan", ExchangeKind::Fanout, Settings::default());
    declare(&mut table, "to direct", ExchangeKind::Topic, Settings::default());
    declare(&mut table, "to fan", ExchangeKind::Topic, Settings::default());
    bind(&mut table, "to direct", "#", &exchange("amq.direct"));
    bind(&mut table, "amq.direct", "k.k", &queue(3));
    bind(&mut table, "to fan", "#", &exchange("fan"));
    for text in
        ["in.*", "in.x.*", "in.*.x.y", "on.x.*", "*.c.*", "lit.a", "lit.a.b", "end.#.z", "all.#", "*.w"]
    {
        bind(&mut table, "amq.topic", text, &queue(1));
    }
    for (name, subject, expected) in [
        // `in.*.x.y` makes the last token matter only behind the `x`.
        ("amq.topic", "in.x.1", true),
        ("amq.topic", "on.x.1", false),
        ("amq.topic", "on.x.x", false),
        ("amq.topic", "in.y.x.1", true),
        ("amq.topic", "a.c.1", false),
        ("amq.topic", "all.a.b.1", false),
        ("amq.topic", "lit.1", true),
        ("amq.topic", "lit.a.1", true),
        ("amq.topic", "lit.b.1", false),
        ("amq.topic", "end.1", true),
        // `*.w`.
        ("amq.topic", "in.1", true),
        ("amq.topic", "1", true),
        ("amq.topic", "", true),
        ("", "a.1", true),
        ("amq.direct", "a.1", true),
        ("to direct", "a.1", true),
        ("fan", "a.1", false),
        ("to fan", "a.1", false),
    ] {
        assert_eq!(route(&table, name, subject).asks_last, expected, "{name} {subject}");
    }
}

#[test]
fn deleting_takes_the_bindings_of_both_ends() {
    let mut table = table();
    let id = QueueId { slot: 1, generation: 0 };
    table.add_queue(VHOST, b"q", id).unwrap();
    declare(&mut table, "x", ExchangeKind::Topic, Settings::default());
    bind(&mut table, "x", "a.#", &queue(1));
    bind(&mut table, "x", "a.*", &queue(1));
    bind(&mut table, "amq.fanout", "", &queue(1));
    bind(&mut table, "amq.fanout", "", &exchange("x"));
    bind(&mut table, "x", "a.b", &queue(2));
    bind(&mut table, "x", "a.b", &Target::Subscription(reader(1)));
    table.remove_queue(VHOST, b"q").unwrap();
    assert_eq!(queues(&table, "amq.fanout", "a.b"), [2]);
    let removal = table.delete_exchange(VHOST, b"x").unwrap();
    assert_eq!(removal, Removal { was_there: true, auto_deleted: vec![] });
    assert!(!table.delete_exchange(VHOST, b"x").unwrap().was_there);
    assert!(table.exchange(VHOST, b"amq.fanout").unwrap().is_empty());
    let vhost = table.vhost(VHOST).unwrap();
    assert_eq!((vhost.binding_count(), vhost.subscription_count()), (0, 0));
}

#[test]
fn auto_delete_exchanges_go_with_their_last_binding_and_so_on() {
    let mut table = table();
    let auto_delete = Settings { is_auto_delete: true, ..Settings::default() };
    for name in ["one", "two", "three"] {
        let settings = Settings { is_durable: name == "two", ..auto_delete.clone() };
        declare(&mut table, name, ExchangeKind::Fanout, settings);
    }
    bind(&mut table, "one", "", &exchange("two"));
    bind(&mut table, "two", "", &exchange("three"));
    bind(&mut table, "three", "", &queue(1));
    bind(&mut table, "three", "", &queue(2));
    let mut other = table.clone();
    assert_eq!(unbind(&mut table, "three", "", &queue(1)).auto_deleted, []);
    let gone = |names: &[&str]| -> Vec<AutoDeleted> {
        let all =
            names.iter().map(|name| AutoDeleted { name: Name::from(*name), is_durable: *name == "two" });
        all.collect()
    };
    assert_eq!(unbind(&mut table, "three", "", &queue(2)).auto_deleted, gone(&["three", "two", "one"]));
    assert_eq!(table.exchanges(VHOST).count(), 6);
    let removal = other.delete_exchange(VHOST, b"three").unwrap();
    assert_eq!(removal.auto_deleted, gone(&["two", "one"]));
}

#[test]
fn what_cannot_be_is_refused_with_advice() {
    let mut table = table();
    let internal = Settings { is_internal: true, ..Settings::default() };
    declare(&mut table, "inner", ExchangeKind::Topic, internal);
    let none = Arguments::default();
    let some = Arguments::new([(Name::from("x-match"), Value::text(b"some"))]);
    let long = "a".repeat(SUBJECT_BYTES_MAX + 1);
    let deep = ".".repeat(200);
    let mut bind = |from: &str, text: &str, arguments: &Arguments, target: Target| {
        table.bind(VHOST, from.as_bytes(), &key(text), arguments, &target).unwrap_err()
    };
    let default =
        "the default exchange cannot be changed; use the queue's name as routing key, or another exchange";
    let mut rows = vec![
        (bind("", "a", &none, queue(1)), default),
        (bind("inner", "a", &none, exchange("")), default),
        (bind("nowhere", "a", &none, queue(1)), "exchange `nowhere` does not exist; declare it first"),
        (bind("inner", "a", &none, exchange("gone")), "exchange `gone` does not exist; declare it first"),
        (
            bind("amq.match", "", &some, queue(1)),
            "`x-match` is none of `all`, `any`, `all-with-x` and `any-with-x`; use one of them",
        ),
        (bind("inner", &long, &none, queue(1)), "subject has 1025 bytes; use at most 1024"),
        (bind("amq.direct", &long, &none, queue(1)), "subject has 1025 bytes; use at most 1024"),
    ];
    let refused = |name: &str, subject: &str| {
        table.route(VHOST, name.as_bytes(), subject.as_bytes(), &NoHeaders).unwrap_err()
    };
    rows.extend([
        (refused("inner", "a"), "exchange `inner` is internal; publish to an exchange that is bound to it"),
        (refused("nowhere", "a"), "exchange `nowhere` does not exist; declare it first"),
        (refused("amq.topic", &deep), "subject has 201 tokens; use at most 128"),
        (refused("", &long), "subject has 1025 bytes; use at most 1024"),
    ]);
    assert!(table.route(VHOST, b"amq.direct", deep.as_bytes(), &NoHeaders).is_ok());
    let version = table.version();
    let mut declare = |name: &str, kind| {
        table.declare_exchange(VHOST, name.as_bytes(), kind, Settings::default()).unwrap_err()
    };
    rows.extend([
        (
            declare("amq.new", ExchangeKind::Topic),
            "exchange name `amq.new` is reserved; use one that does not begin with `amq.`",
        ),
        (
            declare("inner", ExchangeKind::Topic),
            "exchange `inner` is there as `topic`, transient, internal; declare it so",
        ),
        (
            declare("amq.topic", ExchangeKind::Topic),
            "exchange `amq.topic` is there as `topic`, durable; declare it so",
        ),
    ]);
    rows.push((table.delete_exchange(VHOST, b"").unwrap_err(), default));
    rows.push((
        table.delete_exchange(VHOST, b"amq.topic").unwrap_err(),
        "exchange name `amq.topic` is reserved; use one that does not begin with `amq.`",
    ));
    rows.push((
        table.delete_exchange(VhostId(9), b"x").unwrap_err(),
        "vhost number `9` is gone; connect again",
    ));
    for (error, text) in rows {
        assert_eq!(error.to_string(), text);
    }
    assert_eq!(table.version(), version);
}

#[test]
fn names_are_limited_in_number() {
    let mut table = table();
    for number in 6..EXCHANGES_PER_VHOST_MAX {
        declare(&mut table, &number.to_string(), ExchangeKind::Direct, Settings::default());
    }
    let refused = table.declare_exchange(VHOST, b"x", ExchangeKind::Direct, Settings::default()).unwrap_err();
    assert_eq!(refused.to_string(), "vhost has 10000 exchanges already; remove some first");
}

#[test]
fn every_change_has_a_version_of_its_own_and_others_have_none() {
    let mut table = table();
    let mut versions = vec![table.version()];
    bind(&mut table, "amq.topic", "a", &queue(1));
    versions.push(table.version());
    assert_eq!(table.bind(VHOST, b"amq.topic", &key("a"), &Arguments::default(), &queue(1)), Ok(false));
    assert!(!unbind(&mut table, "amq.topic", "b", &queue(1)).was_there);
    assert_eq!(versions.last(), Some(&table.version()));
    unbind(&mut table, "amq.topic", "a", &queue(1));
    versions.push(table.version());
    assert!(versions.is_sorted_by(|one, other| one < other));
}

proptest! {
    #[test]
    fn an_old_table_routes_as_it_did(
        operations in prop::collection::vec((0u32..12, 0usize..10, any::<bool>()), 1..120),
    ) {
        let patterns = ["a", "a.b", "*", "a.*", "#", "a.#", "#.b", "*.b", "#.a.#", "b.*.#"];
        let subjects = ["a", "b", "a.b", "b.b", "a.a", "b.a.b", "", "$x"];
        let mut table = table();
        let mut bound = std::collections::BTreeSet::new();
        let mut history = Vec::new();
        for (slot, pattern, is_bind) in operations {
            let text = key(patterns[pattern]);
            let none = Arguments::default();
            if is_bind {
                let is_new = table.bind(VHOST, b"amq.topic", &text, &none, &queue(slot)).unwrap();
                prop_assert_eq!(is_new, bound.insert((slot, pattern)));
            } else {
                let removal = table.unbind(VHOST, b"amq.topic", &text, &none, &queue(slot)).unwrap();
                prop_assert_eq!(removal.was_there, bound.remove(&(slot, pattern)));
            }
            history.push((table.clone(), bound.clone()));
        }
        for (table, bound) in history {
            for subject in subjects {
                let mut expected: Vec<u32> = bound
                    .iter()
                    .filter(|(_, pattern)| {
                        let pattern = Pattern::amqp(patterns[*pattern].as_bytes()).unwrap();
                        is_match(&pattern, subject.as_bytes())
                    })
                    .map(|(slot, _)| *slot)
                    .collect();
                expected.dedup();
                prop_assert_eq!(queues(&table, "amq.topic", subject), expected, "{}", subject);
            }
        }
    }
}

/// Whether a NATS pattern matches a subject: token by token, from the texts alone.
fn nats_matches(pattern: &str, subject: &str) -> bool {
    let (patterns, subjects): (Vec<_>, Vec<_>) = (pattern.split('.').collect(), subject.split('.').collect());
    for (at, wanted) in patterns.iter().enumerate() {
        match (*wanted, subjects.get(at)) {
            (">", Some(_)) if at + 1 == patterns.len() => return true,
            ("*", Some(_)) => {}
            (wanted, Some(token)) if wanted == *token => {}
            _ => return false,
        }
    }
    patterns.len() == subjects.len()
}

/// The targets of a subject by the plain definition.
fn named(bound: &[(String, Target)], subject: &str) -> Vec<Target> {
    let matching = bound.iter().filter(|(pattern, _)| nats_matches(pattern, subject));
    let mut targets: Vec<Target> = matching.map(|(_, target)| target.clone()).collect();
    targets.sort_unstable();
    targets.dedup();
    targets
}

/// The targets of a route, in the same order as `named`.
fn targets(route: &Route) -> Vec<Target> {
    let queues = route.queues.iter().copied().map(Target::Queue);
    let subscriptions = route.subscriptions.iter().copied().map(Target::Subscription);
    let members = route.groups.iter().flat_map(|group| {
        group.members.iter().map(|reader| Target::Member { group: group.name.clone(), reader: *reader })
    });
    queues.chain(subscriptions).chain(members).collect()
}

/// Few tokens, so that patterns share steps and match often; some only look like wildcards.
fn nats_pattern() -> impl Strategy<Value = String> {
    let token = prop::sample::select(&["a", "b", "*", "*", "a*", ">b", "#", "_INBOX", "$x"][..]);
    (prop::collection::vec(token, 0..5), any::<bool>()).prop_map(|(mut tokens, goes_on)| {
        if goes_on || tokens.is_empty() {
            tokens.push(">");
        }
        tokens.join(".")
    })
}

fn nats_subject() -> impl Strategy<Value = String> {
    let token = prop::sample::select(&["a", "b", "a*", ">b", "#", "_INBOX", "$x"][..]);
    prop::collection::vec(token, 1..6).prop_map(|tokens| tokens.join("."))
}

/// A reader, a member of a group, or a queue; small numbers, so that many bindings share one.
fn any_target() -> impl Strategy<Value = Target> {
    (0..4_u32, 0..4_u8).prop_map(|(slot, kind)| match kind {
        0 => queue(slot),
        1 => Target::Subscription(reader(slot)),
        2 => member("g", slot),
        _ => member("h", slot),
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn subjects_of_nats_reach_whom_the_plain_definition_names(
        changes in prop::collection::vec((any::<bool>(), nats_pattern(), any_target(), any::<prop::sample::Index>()), 1..40),
        subjects in prop::collection::vec(nats_subject(), 1..8),
    ) {
        let mut table = table();
        // One router for all changes, so that a stale cache entry would be noticed.
        let (mut router, mut used_once) = (Router::new(), 0);
        let mut bound: Vec<(String, Target)> = Vec::new();
        let nothing = Arguments::default();
        for (adds, pattern, target, index) in changes {
            if adds || bound.is_empty() {
                let key = BindingKey::new(Syntax::Nats, pattern.as_bytes());
                let is_new = !bound.contains(&(pattern.clone(), target.clone()));
                prop_assert_eq!(table.bind(VHOST, b"amq.topic", &key, &nothing, &target), Ok(is_new));
                if is_new {
                    bound.push((pattern, target));
                }
            } else {
                let (pattern, target) = bound.swap_remove(index.index(bound.len()));
                let key = BindingKey::new(Syntax::Nats, pattern.as_bytes());
                for was_there in [true, false] {
                    let removal = table.unbind(VHOST, b"amq.topic", &key, &nothing, &target).unwrap();
                    prop_assert_eq!(removal.was_there, was_there);
                }
            }
            for subject in &subjects {
                let expected = named(&bound, subject);
                let route = route(&table, "amq.topic", subject);
                prop_assert_eq!(targets(&route), expected.clone(), "{} among {:?}", subject, bound);
                // Subjects that recur, and some with the same stem that are used once.
                let stem = subject.rfind('.').map_or("", |dot| &subject[..=dot]);
                let once = |number: usize| format!("{stem}once{number}");
                used_once += 2;
                for subject in [subject.clone(), once(used_once - 1), once(used_once), subject.clone()] {
                    let way = router.way(&table, VHOST, b"amq.topic", subject.as_bytes(), &NoHeaders).unwrap();
                    prop_assert_eq!(targets(way.route), named(&bound, &subject), "{} among {:?}", subject, bound);
                    prop_assert_eq!(way.is_own, way.route.address.subject == Name::from(&*subject));
                    prop_assert!(way.is_own || !route.asks_last);
                }
                // A router to which the subject itself is new, after others with its stem.
                let mut fresh = Router::new();
                for other in [once(used_once - 1), once(used_once)] {
                    fresh.way(&table, VHOST, b"amq.topic", other.as_bytes(), &NoHeaders).unwrap();
                }
                let way = fresh.way(&table, VHOST, b"amq.topic", subject.as_bytes(), &NoHeaders).unwrap();
                prop_assert_eq!(targets(way.route), expected, "{} among {:?}", subject, bound);
            }
        }
    }
}

#[test]
fn a_binding_is_known_by_key_arguments_and_target() {
    let mut table = table();
    let none = Arguments::default();
    let pdf = Arguments::new([(Name::from("format"), Value::text(b"pdf"))]);
    let (one, other) = (queue(1), queue(2));
    let key = |syntax, text: &str| BindingKey::new(syntax, text.as_bytes());
    let (amqp, nats) = (key(Syntax::Amqp, "a.*"), key(Syntax::Nats, "a.*"));
    table.bind(VHOST, b"amq.topic", &amqp, &none, &one).unwrap();
    table.bind(VHOST, b"amq.headers", &amqp, &pdf, &one).unwrap();
    let all = |table: &Table| {
        let known = |exchange: &str, key, arguments, target| {
            table.has_binding(VHOST, exchange.as_bytes(), key, arguments, target)
        };
        [
            known("amq.topic", &amqp, &none, &one),
            known("amq.headers", &amqp, &pdf, &one),
            // None of these was bound.
            known("amq.topic", &nats, &none, &one),
            known("amq.topic", &amqp, &pdf, &one),
            known("amq.topic", &amqp, &none, &other),
            known("amq.headers", &amqp, &none, &one),
            known("amq.direct", &amqp, &none, &one),
            known("nowhere", &amqp, &none, &one),
        ]
    };
    assert_eq!(all(&table), [true, true, false, false, false, false, false, false]);
    // A binding made in one syntax is not removed in another that writes the same pattern.
    assert!(!table.unbind(VHOST, b"amq.topic", &nats, &none, &one).unwrap().was_there);
    assert!(!table.unbind(VHOST, b"amq.headers", &amqp, &none, &one).unwrap().was_there);
    assert_eq!(all(&table)[..2], [true, true]);
    assert!(table.unbind(VHOST, b"amq.topic", &amqp, &none, &one).unwrap().was_there);
    assert!(table.unbind(VHOST, b"amq.headers", &amqp, &pdf, &one).unwrap().was_there);
    assert_eq!(all(&table)[..2], [false, false]);
    assert_eq!(table.vhost(VHOST).unwrap().binding_count(), 0);
}
