//! What a consumer does next, for each state of the consumer and its stream.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::confirm::Lsn;
use crate::id::VhostId;
use crate::memory::Gauge;
use crate::message::{Address, AddressView, OriginId, Properties, Publication, TOPIC_EXCHANGE};
use crate::policy::QueueKind;
use crate::queue::{Arrival, Effects, QueueSettings};
use crate::stream::{ConsumerSettings, Pace, PullRequest, Push, RequestTerms, Settlement};

const SECOND: Duration = Duration::from_secs(1);

/// A stream with three messages, stored a second after each other.
fn stream() -> Queue {
    let settings = QueueSettings { kind: QueueKind::Stream, ..QueueSettings::default() };
    let mut queue = Queue::new(VhostId(0), Name::from("s"), settings, Gauge::default(), Time(0));
    let properties = Properties::new(OriginId::BROKER);
    let address = Arc::new(Address::new(TOPIC_EXCHANGE, b"a"));
    for number in 1..=3 {
        let now = Time(number * 1_000_000);
        let arrival = Arrival { address: &AddressView::new(&address), deaths: None, lsn: Lsn::NONE, now };
        queue.append(&Publication::new(&properties, b"", b"0123456789"), &arrival, &mut Effects::default());
    }
    queue
}

fn request(bytes_left: Option<u64>) -> PullRequest {
    PullRequest {
        reply: Name::from("reply"),
        left: 9,
        got: 0,
        bytes_left,
        is_impatient: false,
        expires: None,
        heartbeat: None,
        terms: RequestTerms::default(),
    }
}

fn pushing(bytes_a_second_max: Option<u64>) -> ConsumerSettings {
    let push = Push {
        subject: Name::from("deliver"),
        group: None,
        has_flow_control: false,
        is_acked_by_flow: false,
        bytes_a_second_max,
        heartbeat: None,
    };
    ConsumerSettings { push: Some(push), ..ConsumerSettings::plain() }
}

fn consumer(settings: ConsumerSettings) -> StreamConsumer {
    let pace = Pace::of(&settings, 3, Some(50));
    let mut consumer = StreamConsumer::new(Name::from("c"), settings, (1, VecDeque::new()), 3, Time(0));
    consumer.pace = pace;
    consumer
}

/// Tells a step in words.
fn told(step: &Step) -> String {
    match step {
        Step::Stop(Progress::Idle) => String::from("idle"),
        Step::Stop(Progress::AtEnd) => String::from("at end"),
        Step::Stop(Progress::OnDisk(_)) => String::from("on disk"),
        Step::Stop(Progress::Busy) => String::from("busy"),
        Step::AskForAcks => String::from("ask for acks"),
        Step::SkipAcknowledged(sequence) => format!("skip acknowledged {sequence}"),
        Step::Skip(next, sequence) => format!("skip {sequence}, {next:?}"),
        Step::GiveUp(sequence) => format!("give up {sequence}"),
        Step::Offer(offer) => format!("offer {}, {:?}", offer.sequence(), offer.next),
    }
}

/// Performs steps of a consumer, a word each, and checks what it does next: `d` delivers the next message, `a1`
/// acknowledges message 1, `n1` gives it back, `x1` removes it from the stream, `r1` notes that it was acknowledged
/// before a restart.
fn check(mut consumer: StreamConsumer, steps: &str, expected: &str) {
    let mut queue = stream();
    for step in steps.split_whitespace() {
        let number = step.get(1..).and_then(|digits| digits.parse().ok()).unwrap_or(0);
        match step.as_bytes()[0] {
            b'd' => match queue.next_step(queue.stream().unwrap(), &consumer) {
                Step::Offer(offer) => drop(consumer.deliver(offer.next, offer.sequence(), Time(0))),
                step => panic!("{steps}: {}", told(&step)),
            },
            b'a' => drop(consumer.settle(number, Settlement::Ack, Time(0))),
            b'n' => drop(consumer.settle(number, Settlement::Nak(None), Time(0))),
            b'x' => drop(queue.delete_message(number, &mut Effects::default())),
            _ => drop(consumer.done.insert(number)),
        }
    }
    assert_eq!(told(&queue.next_step(queue.stream().unwrap(), &consumer)), expected, "{steps}");
}

#[test]
fn the_state_of_a_consumer_decides_its_next_step() {
    let pulling = |settings| {
        let mut consumer = consumer(settings);
        consumer.requests.add(request(None));
        consumer
    };
    let plain = || pulling(ConsumerSettings::plain());
    check(consumer(ConsumerSettings::plain()), "", "idle");
    check(consumer(pushing(None)), "", "offer 1, From(1)");
    for (steps, expected) in [
        ("", "offer 1, From(1)"),
        ("d d", "offer 3, From(3)"),
        ("d d d", "at end"),
        ("d d n1", "offer 1, Redelivery(1)"),
        ("d d n1 a1", "offer 3, From(3)"),
        ("d d n1 n2 a1", "offer 2, Redelivery(2)"),
        ("x1", "offer 2, From(1)"),
        ("r1", "skip acknowledged 1"),
        ("d x1 n1", "skip 1, Redelivery(1)"),
    ] {
        check(plain(), steps, expected);
    }
    let limited =
        ConsumerSettings { deliveries_max: Some(1), pending_max: Some(2), ..ConsumerSettings::plain() };
    check(pulling(limited.clone()), "d d", "ask for acks");
    check(pulling(limited), "d d n1", "give up 1");
    let late = ConsumerSettings { start: Start::Time(Time(1_500_000)), ..ConsumerSettings::plain() };
    check(pulling(late), "", "skip 1, From(1)");
    let mut chosen = plain();
    (chosen.first_ones, chosen.next) = (VecDeque::from([3]), 4);
    check(chosen, "", "offer 3, Initial(3)");
}

#[test]
fn an_offer_goes_to_a_reader_with_room_when_its_pace_allows() {
    let queue = stream();
    let offer = |consumer: &StreamConsumer| match queue.next_step(queue.stream().unwrap(), consumer) {
        Step::Offer(offer) => offer,
        step => panic!("{}", told(&step)),
    };
    let to = |consumer: &StreamConsumer| match offer(consumer).recipient(consumer, Time(0)) {
        Recipient::Readers(subject) => subject.to_string(),
        Recipient::Nobody => String::from("nobody"),
        Recipient::Later(time) => format!("later: {}", time.0),
        Recipient::FullRequest => String::from("full"),
    };
    let bytes = offer(&consumer(pushing(None))).bytes();
    for (left, expected) in [(None, "reply"), (Some(bytes), "reply"), (Some(bytes - 1), "full")] {
        let mut consumer = consumer(ConsumerSettings::plain());
        consumer.requests.add(request(left));
        assert_eq!(to(&consumer), expected, "{left:?}");
    }
    let mut paced = consumer(pushing(Some(bytes)));
    assert_eq!(to(&paced), "deliver");
    let first = offer(&paced);
    paced.deliver(first.next, first.sequence(), Time(0));
    paced.pace.as_mut().unwrap().delivered(first.sequence(), bytes, first.stored(), Time(0));
    assert_eq!(to(&paced), format!("later: {}", SECOND.as_micros()));
}
