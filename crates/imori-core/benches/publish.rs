//! Measures the cost of a message: time from publish to delivery, and memory while it waits.
//!
//! Prints one line per measurement. Each one runs in its own process, so that memory is the growth of the
//! resident set, including the allocator. Times are processor times of the thread. The world has one thread
//! and a trivial encoder, so that only the core is measured.
//!
//! `-- NAME` runs one measurement. `--rounds=N` sends N messages without timing, for counting instructions.

#![allow(clippy::print_stdout, reason = "a benchmark prints its results")]

use std::env;
use std::fs;
use std::hint::black_box;
use std::process::Command;

use imori_core::authorize::{AllowDeny, Grants, Identity, Rights, SubjectGrants, Tags};
use imori_core::broker::{self, Actor, ConsumeOptions, SubscribeOptions};
use imori_core::delivery::{Delivery, Outcome};
use imori_core::id::ConnectionId;
use imori_core::message::{OriginId, Properties, Property, Publication, Span};
use imori_core::name::Name;
use imori_core::outbound::{
    AfterCancel, Credit, CutReason, Encoder, EncoderKind, EncoderKinds, Numbers, OutboundLimits, Recipient,
    SessionId, SharedHeaders,
};
use imori_core::queue::QueueSettings;
use imori_core::route::{BindingKey, Syntax};
use imori_core::stream::CursorOptions;
use imori_core::world::World;
use imori_testkit::{TestWorld, VHOST};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const MILLION: u64 = 1_000_000;
const PAGE_BYTES: usize = 4096;
/// Header lines as a STOMP client sends them.
const TEXT: &[u8] = b"destination:/queue/orders\ncontent-type:text/plain\n";

/// Runs the measurement with this name.
type Run = fn(&str);

fn main() {
    let groups: [(&str, Run); 15] = [
        ("queue-16", |name| queue(name, 16, false)),
        ("queue-1024", |name| queue(name, 1024, false)),
        ("settled-16", |name| queue(name, 16, true)),
        ("live-1-16", |name| live(name, 16, 1)),
        ("live-1-1024", |name| live(name, 1024, 1)),
        ("live-10-16", |name| live(name, 16, 10)),
        ("live-10-1024", |name| live(name, 1024, 10)),
        ("live-100-16", |name| live(name, 16, 100)),
        ("limited-1-16", |name| limited(name, 16, 1)),
        ("limited-10-16", |name| limited(name, 16, 10)),
        ("limited-100-16", |name| limited(name, 16, 100)),
        ("sessions-100-16", |name| sessions(name, 16, 100)),
        ("reply-16", |name| reply(name, 16)),
        ("waiting-16", |name| waiting(name, 16)),
        ("unsettled-16", |name| unsettled(name, 16)),
    ];
    let wanted = env::args().skip(1).find(|argument| !argument.starts_with("--"));
    for (name, run) in groups {
        match &wanted {
            Some(wanted) if wanted == name => run(name),
            Some(_) => {}
            None => run_alone(name),
        }
    }
}

fn run_alone(name: &str) {
    let program = env::current_exe().expect("a running program has a path");
    let status = Command::new(program).arg(name).status();
    assert!(status.is_ok_and(|status| status.success()), "{name} did not finish");
}

/// Publishes through a queue to a consumer with credit.
fn queue(name: &str, body_bytes: usize, settles: bool) {
    let mut stage = Stage::new(2);
    stage.declare();
    stage.consume(1, settles);
    let body = vec![7; body_bytes];
    let mut number = 0;
    stage.measure(name, MILLION, |stage| {
        stage.publish(b"", b"orders", &body);
        stage.write(1);
        if settles {
            number += 1;
            stage.accept(1, number);
        }
    });
}

/// Publishes through the topic exchange to live subscriptions.
fn live(name: &str, body_bytes: usize, receivers: u32) {
    live_on(Stage::new(1 + receivers), name, body_bytes, receivers);
}

/// Like [`live`], for a user with a hundred patterns of each kind. The published subject is allowed by one of
/// the last, and the subscriptions are partly denied.
fn limited(name: &str, body_bytes: usize, receivers: u32) {
    let user = Name::from("service");
    let allow = |first| {
        let others = (1..100).map(|number| format!("service-{number}.*.events.>"));
        Some(others.chain([String::from(first)]).collect())
    };
    let deny = |last: &str| (1..100).map(|number| format!("orders.secret-{number}.{last}")).collect();
    let subjects = SubjectGrants {
        publish: AllowDeny { allow: allow("orders.*"), deny: deny("x") },
        subscribe: AllowDeny { allow: allow("orders.>"), deny: deny(">") },
        responses: None,
    };
    let expression = || String::from(r"^(amq\.topic|orders-.*)$");
    let (configure, write, read) = (expression(), expression(), expression());
    let grants = Grants { configure, write, read, topics: Vec::new(), subjects: Some(subjects) };
    let rights = Rights::new(&user, Tags::NONE, [(VHOST, &Name::from("/"), &grants)]);
    let rights = rights.expect("the grants are right").into();
    let stage = Stage { identity: Identity { user, rights }, ..Stage::new(1 + receivers) };
    live_on(stage, name, body_bytes, receivers);
}

fn live_on(mut stage: Stage, name: &str, body_bytes: usize, receivers: u32) {
    let key = BindingKey::new(Syntax::Nats, b"orders.>");
    for slot in 1..=receivers {
        let options =
            SubscribeOptions { session: SessionId(0), label: LABEL.into(), group: None, selector: None };
        broker::subscribe(&stage.world, &stage.actor(slot), b"amq.topic", &key, options)
            .expect("the exchange is there");
    }
    let body = vec![7; body_bytes];
    stage.measure(name, MILLION / u64::from(receivers), |stage| {
        stage.publish(b"amq.topic", b"orders.new", &body);
        for slot in 1..=receivers {
            stage.write(slot);
        }
    });
}

/// Publishes through the topic exchange to live subscriptions, each in its own session of one connection.
fn sessions(name: &str, body_bytes: usize, receivers: u16) {
    let mut stage = Stage::new(2);
    let key = BindingKey::new(Syntax::Nats, b"orders.>");
    for session in (1..=receivers).map(SessionId) {
        broker::open_session(&stage.world, &stage.actor(1), session).expect("it is below the limit");
        let options = SubscribeOptions { session, label: LABEL.into(), group: None, selector: None };
        broker::subscribe(&stage.world, &stage.actor(1), b"amq.topic", &key, options)
            .expect("the exchange is there");
    }
    let body = vec![7; body_bytes];
    stage.measure(name, MILLION / u64::from(receivers), |stage| {
        stage.publish(b"amq.topic", b"orders.new", &body);
        stage.write(1);
    });
}

fn reply(name: &str, body_bytes: usize) {
    let mut stage = Stage::new(2);
    let inbox = stage.world.with_outbound(connection(1), |outbound| {
        outbound.inbox(SessionId::FIRST, b"i", || (LABEL.into(), [7; 16])).expect("it is the first")
    });
    let key = inbox.expect("it is connected").to_key();
    let body = vec![7; body_bytes];
    stage.measure(name, MILLION, |stage| {
        stage.publish(b"", &key, &body);
        stage.write(1);
    });
}

/// Memory of messages in a queue without consumers.
fn waiting(name: &str, body_bytes: usize) {
    let mut stage = Stage::new(2);
    stage.declare();
    let body = vec![7; body_bytes];
    stage.grow(name, &mut |stage| stage.publish(b"", b"orders", &body));
}

/// Memory of messages that a consumer does not settle.
fn unsettled(name: &str, body_bytes: usize) {
    let mut stage = Stage::new(2);
    stage.declare();
    stage.consume(1, true);
    let body = vec![7; body_bytes];
    stage.grow(name, &mut |stage| {
        stage.publish(b"", b"orders", &body);
        stage.write(1);
    });
}

const LABEL: &[u8] = b"subscription:0\n";

struct Stage {
    world: TestWorld,
    identity: Identity,
    properties: Properties,
    spare: Vec<u8>,
}

impl Stage {
    fn new(connections: u32) -> Stage {
        let mut properties = Properties::new(OriginId(1));
        properties.set(Property::ContentType, Span::new(38, 10).expect("it is short"));
        let identity = Identity::guest();
        Stage { world: world(connections), identity, properties, spare: Vec::with_capacity(1 << 17) }
    }

    fn actor(&self, slot: u32) -> Actor<'_> {
        Actor { identity: &self.identity, connection: connection(slot), vhost: VHOST }
    }

    fn declare(&self) {
        let settings = QueueSettings::default();
        broker::declare_queue(&self.world, &self.actor(0), b"orders", &settings, true)
            .expect("it is the first");
    }

    fn consume(&self, slot: u32, settles: bool) {
        let actor = self.actor(slot);
        let id = broker::find_queue(&self.world, &actor, b"orders").expect("it was declared");
        let options = ConsumeOptions {
            session: SessionId(0),
            label: LABEL.into(),
            settles,
            credit: Credit::Unlimited,
            priority: 0,
            is_exclusive: false,
            selector: None,
            drops_unwanted: false,
            is_browser: false,
            name: None,
            cursor: CursorOptions::default(),
        };
        broker::consume(&self.world, &actor, id, b"orders", options, |_, _| ()).expect("nobody reads it");
    }

    fn publish(&self, exchange: &[u8], subject: &[u8], body: &[u8]) {
        let publication = Publication::new(&self.properties, TEXT, body);
        let report = broker::publish(&self.world, &self.actor(0), exchange, subject, &publication);
        assert!(report.is_ok_and(|report| report.receivers > 0));
    }

    fn accept(&self, slot: u32, number: u64) {
        let settled = broker::settle(
            &self.world,
            &self.actor(slot),
            SessionId(0),
            Numbers::One(number),
            Outcome::Accept,
        );
        assert!(settled.is_ok());
    }

    /// Writes a connection's unsent bytes once they are enough for one write.
    fn write(&mut self, slot: u32) {
        let spare = &mut self.spare;
        self.world.with_outbound(connection(slot), |outbound| {
            if outbound.unsent() < 64 * 1024 {
                return;
            }
            while let Some((bytes, _)) = outbound.take_unsent() {
                black_box(&bytes);
                let len = bytes.len();
                *spare = outbound.put_back(bytes, len).expect("all of it is written");
            }
            outbound.written();
            outbound.lend(|| Some(std::mem::take(spare)));
        });
    }

    fn measure(&mut self, name: &str, times: u64, mut step: impl FnMut(&mut Stage)) {
        if let Some(rounds) = rounds_asked() {
            (0..rounds).for_each(|_| step(self));
            return;
        }
        for _ in 0..times / 10 {
            step(self);
        }
        let mut best = f64::MAX;
        for _ in 0..5 {
            let start = thread_ns();
            for _ in 0..times {
                step(self);
            }
            best = best.min((thread_ns() - start) as f64 / times as f64);
        }
        println!("{name:14} {best:7.1} ns a message");
    }

    fn grow(&mut self, name: &str, step: &mut dyn FnMut(&mut Stage)) {
        for _ in 0..10 {
            step(self);
        }
        let (resident, charged) = (resident_bytes(), self.world.charged());
        let start = thread_ns();
        for _ in 0..MILLION {
            step(self);
        }
        let ns = (thread_ns() - start) as f64 / MILLION as f64;
        let resident = (resident_bytes() - resident) as f64 / MILLION as f64;
        let charged = (self.world.charged() - charged) as f64 / MILLION as f64;
        println!(
            "{name:14} {ns:7.1} ns a message, {resident:5.0} B resident, {charged:5.0} B charged, ratio {:.2}",
            resident / charged
        );
    }
}

fn rounds_asked() -> Option<u64> {
    env::args().find_map(|argument| argument.strip_prefix("--rounds=")?.parse().ok())
}

fn connection(slot: u32) -> ConnectionId {
    ConnectionId { cell: 0, slot, generation: 0 }
}

/// A world with these connections.
fn world(connections: u32) -> TestWorld {
    let world = TestWorld::new();
    let limits =
        OutboundLimits { feed_bytes: 1 << 20, unsent_bytes_max: 1 << 28, inboxes_max: 9, sessions_max: 101 };
    (0..connections).for_each(|slot| world.open_at(connection(slot), Box::new(Lines), limits));
    world
}

const KIND: EncoderKind = EncoderKinds::of_protocol(1).kind(0);

/// Encodes deliveries as lines, much like STOMP.
struct Lines;

impl Encoder for Lines {
    fn deliver(
        &mut self,
        out: &mut Vec<u8>,
        recipient: &Recipient<'_>,
        delivery: &Delivery<'_>,
        shared: &mut SharedHeaders,
    ) {
        out.extend_from_slice(b"MESSAGE\n");
        out.extend_from_slice(recipient.label);
        out.extend_from_slice(&recipient.number.to_be_bytes());
        shared.append(KIND, out, |out| out.extend_from_slice(delivery.message.text));
        out.extend_from_slice(delivery.message.body);
        out.push(0);
    }

    fn cancelled(&mut self, _: &mut Vec<u8>, _: &[u8], _: &Name) -> AfterCancel {
        AfterCancel::GoOn
    }

    fn cut(&mut self, _: &mut Vec<u8>, _: &CutReason) {}
}

/// Processor time of this thread.
fn thread_ns() -> u64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or_default()
}

fn resident_bytes() -> usize {
    let text = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok());
    pages.unwrap_or_default() * PAGE_BYTES
}
