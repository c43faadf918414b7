//! Random rights, actions and routes, compared with a model that enumerates: SECURITY AUTH-01, AUTH-02 and
//! AUTH-03.
//!
//! The model knows every subject over a small alphabet. It treats a pattern as the set of subjects that it
//! matches, with a matcher of its own, so that covering and overlapping become inclusion and intersection. It
//! shares no code with the broker.

#![allow(clippy::unwrap_used, reason = "a test that meets the unexpected has failed")]

use std::collections::BTreeMap;
use std::sync::LazyLock;

use imori_core::authorize::{
    Action, AllowDeny, Grants, Identity, Object, Rights, SubjectGrants, Tag, Tags, TopicGrant, authorize,
};
use imori_core::broker::{self, Actor, Repetition, SubscribeOptions};
use imori_core::id::VhostId;
use imori_core::message::{Address, OriginId, Properties, Publication};
use imori_core::name::Name;
use imori_core::outbound::SessionId;
use imori_core::queue::{DeadLetterTarget, QueueSettings};
use imori_core::route::{Arguments, BindingKey, ExchangeKind, Settings, Syntax};
use imori_testkit::{Caller, TestWorld, VHOST};

/// The variable that sets the number of cases, and its default.
const CASES: (&str, u64) = ("IMORI_RIGHTS_CASES", 50_000);

/// Maximum tokens of a subject: one more than in a pattern, so that open patterns differ from closed ones.
const TOKENS_MAX: usize = 4;

#[test]
fn rights_are_as_a_model_enumerates_them() {
    #[expect(clippy::disallowed_methods, reason = "a longer run is asked for from outside")]
    let asked = std::env::var(CASES.0).ok().and_then(|text| text.parse().ok());
    let model = Model::new();
    let mut stage = Stage::new();
    for case in 0..asked.unwrap_or(CASES.1) {
        if case % 256 == 255 {
            stage = Stage::new();
        }
        let mut random = Random(case);
        decide(&model, &mut random, case);
        deliver(&model, &stage, &mut random, case);
    }
}

/// The SplitMix64 generator.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }

    fn several(&mut self, max: usize, mut one: impl FnMut(&mut Random) -> String) -> Vec<String> {
        (0..self.below(max + 1)).map(|_| one(self)).collect()
    }
}

/// A set of the enumerated subjects, by index.
type Set = Vec<bool>;

struct Model {
    subjects: Vec<String>,
    nats: BTreeMap<String, Set>,
    amqp: BTreeMap<String, Set>,
}

impl Model {
    fn new() -> Model {
        let mut subjects = vec![String::new()];
        let mut last = subjects.clone();
        for _ in 0..TOKENS_MAX {
            let join = |begin: &String, token| {
                if begin.is_empty() { String::from(token) } else { format!("{begin}.{token}") }
            };
            last = last.iter().flat_map(|begin| ["a", "b", "c"].map(|token| join(begin, token))).collect();
            subjects.extend(last.iter().cloned());
        }
        Model { subjects, nats: BTreeMap::new(), amqp: BTreeMap::new() }
            .with_patterns(&["a", "b", "*"], true)
            .with_patterns(&["a", "b", "*", "#"], false)
    }

    fn with_patterns(mut self, tokens: &[&str], is_nats: bool) -> Model {
        let mut texts: Vec<Vec<&str>> = vec![Vec::new()];
        let mut from = 0;
        for _ in 0..TOKENS_MAX - 1 {
            let until = texts.len();
            for at in from..until {
                for token in tokens {
                    let longer = [texts[at].as_slice(), &[token]].concat();
                    texts.push(longer);
                }
            }
            from = until;
        }
        for tokens in texts {
            let ends: &[&[&str]] =
                if is_nats && tokens.len() < TOKENS_MAX - 1 { &[&[], &[">"]] } else { &[&[]] };
            for end in ends {
                let pattern = [tokens.as_slice(), end].concat();
                if pattern.is_empty() {
                    continue;
                }
                let set = self.subjects.iter().map(|subject| is_match(&pattern, &split(subject))).collect();
                let patterns = if is_nats { &mut self.nats } else { &mut self.amqp };
                patterns.insert(pattern.join("."), set);
            }
        }
        self
    }

    fn set(&self, syntax: Syntax, text: &str) -> &Set {
        if syntax == Syntax::Nats { &self.nats[text] } else { &self.amqp[text] }
    }

    /// The set of subjects that an item of a grant covers, and its group.
    fn item<'a>(&self, item: &'a str) -> (Set, Option<&'a str>) {
        let (pattern, group) = item.split_once(' ').map_or((item, None), |(text, group)| (text, Some(group)));
        let all = || vec![true; self.subjects.len()];
        (if pattern == ">" { all() } else { self.nats[pattern].clone() }, group)
    }

    fn subject(&self, random: &mut Random) -> String {
        random.of(&self.subjects).clone()
    }

    fn pattern(&self, random: &mut Random) -> (Syntax, String) {
        match random.chance(50) {
            true => (Syntax::Nats, any_key(random, &self.nats)),
            false => (Syntax::Amqp, any_key(random, &self.amqp)),
        }
    }

    fn grants(&self, random: &mut Random) -> Grants {
        let name = |random: &mut Random| String::from(*random.of(&NAMES));
        let key = |random: &mut Random| String::from(*random.of(&KEYS));
        let mut topics = Vec::new();
        for exchange in ["amq.topic", "t"] {
            if random.chance(25) {
                topics.push(TopicGrant { exchange: exchange.into(), write: key(random), read: key(random) });
            }
        }
        Grants {
            configure: name(random),
            write: name(random),
            read: name(random),
            topics,
            subjects: random.chance(80).then(|| self.subject_grants(random)),
        }
    }

    fn subject_grants(&self, random: &mut Random) -> SubjectGrants {
        let pattern = |random: &mut Random| any_key(random, &self.nats);
        let grouped = |random: &mut Random| {
            let group = *random.of(&["", "", "", " g", " h", " *", " g.>"]);
            format!("{}{group}", any_key(random, &self.nats))
        };
        SubjectGrants {
            publish: AllowDeny {
                allow: random.chance(50).then(|| random.several(4, pattern)),
                deny: random.several(3, pattern),
            },
            subscribe: AllowDeny {
                allow: random.chance(40).then(|| random.several(5, grouped)),
                deny: random.several(4, grouped),
            },
            responses: None,
        }
    }

    // The rules, as the documents state them.

    fn may_publish(&self, grants: &Grants, exchange: &str, subject: &str, is_topic: bool) -> bool {
        let topic = grants.topics.iter().find(|topic| topic.exchange.as_bytes() == exchange.as_bytes());
        let has = |item: &String| self.item(item).0[self.index(subject)];
        let subjects = grants.subjects.as_ref().filter(|_| exchange == "amq.topic");
        is_found(&grants.write, if exchange.is_empty() { "amq.default" } else { exchange })
            && (!is_topic || topic.is_none_or(|topic| is_found(&topic.write, subject)))
            && subjects.is_none_or(|subjects| {
                let AllowDeny { allow, deny } = &subjects.publish;
                allow.as_ref().is_none_or(|allow| allow.iter().any(has)) && !deny.iter().any(has)
            })
    }

    fn may_hear(
        &self,
        grants: &Grants,
        exchange: &str,
        (syntax, text): (Syntax, &str),
        group: Option<&str>,
        is_kept: bool,
    ) -> bool {
        let key = match (syntax, text.strip_suffix('>')) {
            (Syntax::Nats, Some(begin)) => format!("{begin}#"),
            _ => String::from(text),
        };
        let topic = grants.topics.iter().find(|topic| topic.exchange.as_bytes() == exchange.as_bytes());
        let heard = self.set(syntax, text);
        let includes = |all: &Set| heard.iter().zip(all).all(|(heard, has)| !heard || *has);
        let touches = |all: &Set| heard.iter().zip(all).any(|(heard, has)| *heard && *has);
        let subjects = grants.subjects.as_ref().filter(|_| exchange == "amq.topic");
        is_found(&grants.read, exchange)
            && topic.is_none_or(|topic| is_found(&topic.read, &key))
            && subjects.is_none_or(|subjects| {
                let AllowDeny { allow, deny } = &subjects.subscribe;
                let is_allowed = allow.as_ref().is_none_or(|allow| {
                    let covering: Vec<Option<&str>> = allow
                        .iter()
                        .map(|item| self.item(item))
                        .filter_map(|(set, group)| includes(&set).then_some(group))
                        .collect();
                    let named: Vec<&str> = covering.iter().filter_map(|group| *group).collect();
                    match group {
                        Some(group) if !named.is_empty() => named.iter().any(|name| is_of(name, group)),
                        _ => covering.contains(&None),
                    }
                });
                let denies = |item: &String| {
                    let (set, denied) = self.item(item);
                    let is_it = if is_kept { touches(&set) } else { includes(&set) };
                    is_it && denied.is_none_or(|name| group.is_some_and(|group| is_of(name, group)))
                };
                is_allowed && !deny.iter().any(denies)
            })
    }

    /// Whether a live reader is denied this subject.
    fn is_denied(&self, grants: &Grants, subject: &str, group: Option<&str>) -> bool {
        let deny = grants.subjects.as_ref().map_or(&[][..], |subjects| &subjects.subscribe.deny);
        deny.iter().any(|item| {
            let (set, denied) = self.item(item);
            set[self.index(subject)]
                && denied.is_none_or(|name| group.is_some_and(|group| is_of(name, group)))
        })
    }

    fn index(&self, subject: &str) -> usize {
        self.subjects.iter().position(|other| other == subject).expect("all subjects are enumerated")
    }
}

fn any_key(random: &mut Random, patterns: &BTreeMap<String, Set>) -> String {
    patterns.keys().nth(random.below(patterns.len())).expect("it is one of them").clone()
}

fn split(subject: &str) -> Vec<&str> {
    if subject.is_empty() { Vec::new() } else { subject.split('.').collect() }
}

/// Matches by trying every length of a wildcard.
fn is_match(pattern: &[&str], subject: &[&str]) -> bool {
    match pattern {
        [] => subject.is_empty(),
        [">"] => !subject.is_empty(),
        ["#", rest @ ..] => (0..=subject.len()).any(|len| is_match(rest, &subject[len..])),
        [token, rest @ ..] => subject
            .split_first()
            .is_some_and(|(first, behind)| (*token == "*" || token == first) && is_match(rest, behind)),
    }
}

fn is_of(name: &str, group: &str) -> bool {
    name == group || is_match(&split(name), &split(group))
}

/// Expressions of names and keys for the grants.
const NAMES: [&str; 11] =
    [".*", ".*", ".*", "", "^$", "^amq", "amq.topic", "^a", "[qt]$", "^(q|amq\\.default)$", "opic"];
const KEYS: [&str; 7] = [".*", "", "^a", "b$", r"\*|#", "^a\\.[ab]$", "^[^c]*$"];

static EXPRESSIONS: LazyLock<BTreeMap<&str, regex::Regex>> = LazyLock::new(|| {
    let compiled = |text: &'static str| {
        let meaning = if text.is_empty() { "^$" } else { text };
        (text, regex::Regex::new(meaning).unwrap())
    };
    NAMES.into_iter().chain(KEYS).map(compiled).collect()
});

fn is_found(expression: &str, name: &str) -> bool {
    EXPRESSIONS[expression].is_match(name)
}

fn identity(grants: &Grants, tags: Tags) -> Identity {
    let user = Name::from("eve");
    let rights = Rights::new(&user, tags, [(VHOST, &Name::from("/"), grants)]).unwrap();
    Identity { user, rights: rights.into() }
}

/// Compares single decisions.
fn decide(model: &Model, random: &mut Random, case: u64) {
    let grants = model.grants(random);
    let tags: Tags = Tag::ALL.into_iter().filter(|_| random.chance(20)).collect();
    let eve = identity(&grants, tags);
    let vhost = if random.chance(90) { VHOST } else { VhostId(1) };
    let is_in = vhost == VHOST;
    let exchange = *random.of(&["", "amq.topic", "amq.topic", "t", "amq.fanout"]);
    let is_topic = matches!(exchange, "amq.topic" | "t");
    let whole = Object::Exchange(exchange.as_bytes());
    let named = if exchange.is_empty() { "amq.default" } else { exchange };
    let queue = *random.of(&["q", "a.q", "amq.gen", ""]);
    let in_queue = Object::Queue(queue.as_bytes());
    let subject = model.subject(random);
    let (syntax, text) = model.pattern(random);
    let key = BindingKey::new(syntax, text.as_bytes());
    let group = *random.of(&[None, None, Some("g"), Some("h"), Some("g.x")]);
    let pattern = |group: Option<&'static str>| Object::Pattern {
        exchange: exchange.as_bytes(),
        key: &key,
        group: group.map(str::as_bytes),
        is_topic,
    };
    let to_subject = Object::Subject { exchange: exchange.as_bytes(), subject: subject.as_bytes(), is_topic };
    let hears = |group, is_kept| {
        let in_topic = !is_topic;
        let plain = Grants { topics: Vec::new(), ..grants.clone() };
        let grants = if in_topic { &plain } else { &grants };
        model.may_hear(grants, named, (syntax, &text), group, is_kept)
    };
    // A message that is forwarded to an exchange may have any key.
    let writes_all = is_found(&grants.write, named)
        && grants
            .topics
            .iter()
            .all(|topic| topic.exchange.as_bytes() != exchange.as_bytes() || topic.write == ".*")
        && (exchange != "amq.topic"
            || grants
                .subjects
                .as_ref()
                .is_none_or(|subjects| subjects.publish.allow.is_none() && subjects.publish.deny.is_empty()));
    let has_any_right =
        [&grants.configure, &grants.write, &grants.read].iter().any(|rule| is_found(rule, queue));
    let is_own = |name: &str| !name.starts_with("amq.") && !name.starts_with("imori.");
    let has = |tag| tags.has(Tag::Administrator) || tags.has(tag);
    let rows = [
        (Action::Enter, Object::Vhost, is_in),
        (Action::Settle, Object::Vhost, is_in),
        (Action::Receive, Object::Inbox, is_in),
        (Action::Inspect, whole, is_in),
        (Action::Inspect, in_queue, is_in && has_any_right),
        (Action::Publish, to_subject, is_in && model.may_publish(&grants, exchange, &subject, is_topic)),
        (Action::Reply, Object::Inbox, is_in && is_found(&grants.write, "amq.default")),
        (Action::Answer, to_subject, false),
        (Action::Consume, in_queue, is_in && is_found(&grants.read, queue)),
        (Action::Purge, in_queue, is_in && is_found(&grants.read, queue)),
        (Action::ForwardFrom, whole, is_in && is_found(&grants.read, named)),
        (Action::Subscribe, pattern(group), is_in && hears(group, false)),
        (Action::BindTo, pattern(None), is_in && hears(None, true)),
        (Action::Bind, in_queue, is_in && is_found(&grants.write, queue)),
        (Action::Bind, whole, is_in && writes_all),
        (Action::Forward, whole, is_in && writes_all),
        (Action::Declare, in_queue, is_in && is_found(&grants.configure, queue)),
        (Action::DeclareUnnamed, in_queue, is_in && is_found(&grants.configure, queue)),
        (Action::Create, in_queue, is_in && is_own(queue) && is_found(&grants.configure, queue)),
        (Action::Delete, in_queue, is_in && is_found(&grants.configure, queue)),
        (Action::Delete, whole, is_in && is_own(exchange) && is_found(&grants.configure, named)),
        (Action::Manage, Object::Broker, tags != Tags::NONE),
        (Action::Monitor, Object::Broker, has(Tag::Monitoring)),
        (
            Action::SetPolicy,
            Object::Vhost,
            tags.has(Tag::Administrator) || is_in && tags.has(Tag::Policymaker),
        ),
        (Action::Administer, Object::Broker, tags.has(Tag::Administrator)),
    ];
    for (action, object, expected) in rows {
        let allowed = authorize(&eve, action, vhost, object).is_ok();
        assert_eq!(allowed, expected, "case {case}: {action:?} {object:?} in {vhost:?} by {grants:?}");
    }
}

/// Exchanges and a queue that lead messages to `amq.topic`.
struct Stage {
    world: TestWorld,
}

/// The routes of messages to the exchange `amq.topic`.
const WAYS: [&str; 4] = ["amq.topic", "front", "lost", "dying"];

impl Stage {
    fn new() -> Stage {
        let world = TestWorld::new();
        let client = world.connect(1);
        client.exchange("front", ExchangeKind::Fanout);
        let key = BindingKey::new(Syntax::Amqp, b"");
        let (actor, arguments) = (client.actor(), Arguments::NONE);
        broker::bind_exchange(&world, &actor, b"front", &key, &arguments, b"amq.topic").unwrap();
        let settings = Settings { alternate: Some("amq.topic".into()), ..Settings::default() };
        broker::declare_exchange(&world, &actor, b"lost", ExchangeKind::Direct, settings).unwrap();
        client.exchange("dying", ExchangeKind::Fanout);
        let dead_letter = Some(DeadLetterTarget { exchange: "amq.topic".into(), routing_key: None });
        let settings = QueueSettings { dead_letter, length_max: Some(0), ..QueueSettings::default() };
        let queue = client.declare_with("full", &settings).unwrap();
        client.bind("dying", "", queue).unwrap();
        Stage { world }
    }
}

/// A live subscription of one case.
struct Heard {
    label: String,
    syntax: Syntax,
    text: String,
    group: Option<&'static str>,
    is_there: bool,
}

/// Compares what live readers get by every route.
fn deliver(model: &Model, stage: &Stage, random: &mut Random, case: u64) {
    let world = &stage.world;
    let (publisher, other) = (world.connect(2), world.connect(3));
    let reader = world.connect(4);
    let mut grants = model.grants(random);
    let mut eve = identity(&grants, Tags::NONE);
    let mut heard = Vec::new();
    for number in 0..=random.below(3) {
        let (syntax, text) = model.pattern(random);
        let group = *random.of(&[None, None, Some("g"), Some("h")]);
        let group = group.filter(|group| heard.iter().all(|one: &Heard| one.group != Some(*group)));
        let label = format!("r{number}");
        let key = BindingKey::new(syntax, text.as_bytes());
        let options = SubscribeOptions {
            session: SessionId::FIRST,
            label: label.as_bytes().into(),
            group: group.map(Name::from),
            selector: None,
        };
        let actor = Actor { identity: &eve, connection: reader.id, vhost: VHOST };
        let made = broker::subscribe(world, &actor, b"amq.topic", &key, options).is_ok();
        let expected = model.may_hear(&grants, "amq.topic", (syntax, &text), group, false);
        assert_eq!(made, expected, "case {case}: subscribe {text} {group:?} by {grants:?}");
        heard.push(Heard { label, syntax, text, group, is_there: made });
    }
    // Another member of the group, which may have everything, gets what the first may not.
    let shared = heard.iter().find(|one| one.group.is_some() && one.syntax == Syntax::Amqp);
    let shared =
        shared.map(|one| (one.label.clone(), one.group.expect("it was looked for"), one.text.clone()));
    if let Some((_, group, text)) = &shared {
        other.join(group, text, "other");
    }
    for _ in 0..2 {
        send(model, random, case, (&publisher, &reader, &other), &heard, &grants, shared.as_ref());
        if random.chance(60) {
            grants = model.grants(random);
            eve = identity(&grants, Tags::NONE);
            let actor = Actor { identity: &eve, connection: reader.id, vhost: VHOST };
            broker::recheck_readers(world, &actor);
            for one in &mut heard {
                let pattern = (one.syntax, one.text.as_str());
                one.is_there &= model.may_hear(&grants, "amq.topic", pattern, one.group, false);
            }
        }
    }
    for caller in [publisher, other, reader] {
        let actor = Actor { identity: &eve, connection: caller.id, vhost: VHOST };
        assert!(broker::disconnect(world, &actor));
        world.forget(caller.id);
    }
}

fn send(
    model: &Model,
    random: &mut Random,
    case: u64,
    (publisher, reader, other): (&Caller<'_>, &Caller<'_>, &Caller<'_>),
    heard: &[Heard],
    grants: &Grants,
    shared: Option<&(String, &'static str, String)>,
) {
    let world = publisher.world;
    let way = *random.of(&WAYS);
    let subject = model.subject(random);
    let copies = match way {
        "amq.topic" if random.chance(30) => vec![model.subject(random), model.subject(random)],
        _ => Vec::new(),
    };
    let properties = Properties::new(OriginId::BROKER);
    let publication = Publication::new(&properties, b"", b"m");
    let actor = publisher.actor();
    let times = if copies.is_empty() && way == "amq.topic" && random.chance(50) { 3 } else { 1 };
    if times > 1 {
        let address = Address::new(way.as_bytes(), subject.as_bytes());
        let mut repetition = Repetition::new(false);
        let run: Vec<_> = (0..times - 1).map(|_| Publication::new(&properties, b"", b"m")).collect();
        for run in [&run[..1], &run[..]] {
            broker::publish_again(world, &actor, &address, run, &mut repetition).unwrap();
        }
    } else {
        let names: Vec<Name> = copies.iter().map(|copy| Name::from(copy.as_str())).collect();
        let to = (subject.as_bytes(), names.as_slice());
        broker::publish_with_copies(world, &actor, way.as_bytes(), to, &publication).unwrap();
    }
    let (got, others) = (reader.read(), other.read());
    for one in heard {
        let set = model.set(one.syntax, &one.text);
        let hears =
            |subject: &String| set[model.index(subject)] && !model.is_denied(grants, subject, one.group);
        let may = one.is_there
            && !model.is_denied(grants, &subject, one.group)
            && [&subject].into_iter().chain(&copies).any(hears);
        let is_shared = shared.is_some_and(|(label, ..)| *label == one.label);
        let count = got.matches(&format!("{}:m", one.label)).count();
        let told = || {
            format!(
                "case {case}: {subject} and {copies:?} by {way} to {} {:?} of {grants:?}: {got}",
                one.text, one.group
            )
        };
        if is_shared {
            let matches = [&subject].into_iter().chain(&copies).any(|subject| set[model.index(subject)]);
            let of_other = others.matches("other:m").count();
            assert_eq!(count + of_other, if matches { times } else { 0 }, "{}", told());
            assert!(may || count == 0, "{}", told());
        } else {
            assert_eq!(count, if may { times } else { 0 }, "{}", told());
        }
    }
}
