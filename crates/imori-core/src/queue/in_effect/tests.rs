use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;

use super::super::test_stage::{Stage, UNLIMITED, dead_lettering, properties_with};
use super::*;
use crate::delivery::Outcome;
use crate::name::Name;
use crate::policy::{AppliesTo, Policy, PolicySettings};

fn policy(settings: PolicySettings) -> Option<Arc<Policy>> {
    let policy = Policy::new(Name::from("p"), (".*", AppliesTo::All), 0, settings);
    Some(Arc::new(policy.expect("it is an expression")))
}

fn under(settings: PolicySettings) -> Matched {
    Matched { policy: policy(settings), operator: None }
}

/// A declaration, a policy and an operator policy, each with values small enough to be enumerated.
#[derive(Debug, Clone)]
struct Said {
    is_quorum: bool,
    number: [Option<u32>; 3],
    /// The delivery limits; 3 stands for no limit.
    limit: [Option<u32>; 3],
    overflow: [Option<Overflow>; 3],
    /// Operator policies cannot set it.
    exchange: [Option<&'static str>; 2],
    key: [Option<&'static str>; 2],
}

fn said() -> impl Strategy<Value = Said> {
    let three = || prop::array::uniform3(prop::option::of(0..4_u32));
    let overflow = prop::option::of(prop::sample::select(vec![
        Overflow::DropHead,
        Overflow::RejectPublish,
        Overflow::RejectPublishDeadLetter,
    ]));
    let two = || prop::array::uniform2(prop::option::of(prop::sample::select(vec!["a", "b"])));
    let overflow = prop::array::uniform3(overflow);
    (any::<bool>(), three(), three(), overflow, two(), two()).prop_map(
        |(is_quorum, number, limit, overflow, exchange, key)| Said {
            is_quorum,
            number,
            limit,
            overflow,
            exchange,
            // A declaration names a key only together with an exchange.
            key: [key[0].filter(|_| exchange[0].is_some()), key[1]],
        },
    )
}

impl Said {
    fn declared(&self) -> QueueSettings {
        let target = |exchange: &str| DeadLetterTarget {
            exchange: Name::from(exchange),
            routing_key: self.key[0].map(Name::from),
        };
        let default = if self.is_quorum { Some(20) } else { None };
        QueueSettings {
            length_max: self.number[0].map(u64::from),
            message_ttl: self.number[0].map(|ms| Duration::from_millis(u64::from(ms))),
            overflow: self.overflow[0].unwrap_or_default(),
            delivery_limit: self.limit[0].map_or(default, |limit| Some(limit).filter(|limit| *limit < 3)),
            dead_letter: self.exchange[0].map(target),
            kind: if self.is_quorum { QueueKind::Quorum } else { QueueKind::Classic },
            ..QueueSettings::default()
        }
    }

    fn policy(&self, at: usize) -> Option<Arc<Policy>> {
        let limit = |limit| if limit < 3 { DeliveryLimit::Failures(limit) } else { DeliveryLimit::Unlimited };
        policy(PolicySettings {
            length_max: self.number[at].map(u64::from),
            message_ttl: self.number[at].map(|ms| Duration::from_millis(u64::from(ms))),
            overflow: self.overflow[at],
            delivery_limit: self.limit[at].map(limit),
            dead_letter_exchange: self.exchange.get(at).copied().flatten().map(Name::from),
            dead_letter_routing_key: self.key.get(at).copied().flatten().map(Name::from),
            ..PolicySettings::default()
        })
    }
}

const SOURCES: [Source; 3] = [Source::Argument, Source::Policy, Source::OperatorPolicy];

/// The lowest value, and its first source.
fn lowest(said: [Option<u32>; 3]) -> (Option<u32>, Source) {
    let value = said.into_iter().flatten().min();
    let source = value.and_then(|_| said.iter().position(|said| *said == value));
    (value, source.map_or(Source::Default, |at| SOURCES[at]))
}

proptest! {
    /// The rules of RabbitMQ, restated in the plainest way.
    #[test]
    fn settings_in_effect_are_those_of_the_model(said in said()) {
        let matched = Matched { policy: said.policy(1), operator: said.policy(2) };
        let (settings, sources) = in_effect(&said.declared(), &matched);

        let (number, source) = lowest(said.number);
        prop_assert_eq!((settings.length_max, sources.length_max), (number.map(u64::from), source));
        let ttl = number.map(|ms| Duration::from_millis(u64::from(ms)));
        prop_assert_eq!((settings.message_ttl, sources.message_ttl), (ttl, source));
        prop_assert_eq!((settings.expires, sources.expires), (None, Source::Default));

        // A classic queue without the argument and one with -1 are declared alike.
        let mut limits = said.limit;
        limits[0] = limits[0].filter(|limit| said.is_quorum || *limit < 3);
        let (limit, source) = match lowest(limits) {
            (None, source) => (said.declared().delivery_limit, source),
            (limit, source) => (limit.filter(|limit| *limit < 3), source),
        };
        prop_assert_eq!((settings.delivery_limit, sources.delivery_limit), (limit, source));

        let argument = said.overflow[0].filter(|overflow| *overflow != Overflow::DropHead);
        let policies = said.overflow[2].or(said.overflow[1]);
        let overflow = if said.is_quorum { policies.or(argument) } else { argument.or(policies) };
        prop_assert_eq!(settings.overflow, overflow.unwrap_or_default());

        let exchange = said.exchange[0].or(said.exchange[1]);
        let key = said.key[0].or(said.key[1]);
        let target = exchange.map(|exchange| DeadLetterTarget {
            exchange: Name::from(exchange),
            routing_key: key.map(Name::from),
        });
        prop_assert_eq!(settings.dead_letter, target);
        let source = said.exchange.iter().position(Option::is_some);
        let source = source.map_or(Source::Default, |at| SOURCES[at]);
        prop_assert_eq!(sources.dead_letter_exchange, source);
    }
}

#[test]
fn a_declaration_is_compared_without_its_policies() {
    let declared = QueueSettings { length_max: Some(5), ..QueueSettings::default() };
    let mut stage = Stage::new(declared.clone());
    for settings in [
        PolicySettings { length_max: Some(2), ..PolicySettings::default() },
        PolicySettings { length_max: Some(9), ..PolicySettings::default() },
    ] {
        let lower = settings.length_max.min(declared.length_max);
        stage.queue.govern(under(settings), stage.now);
        assert_eq!((stage.queue.declared(), stage.queue.settings().length_max), (&declared, lower));
    }
    stage.queue.govern(Matched::default(), stage.now);
    assert_eq!((stage.queue.declared(), stage.queue.settings()), (&declared, &declared));
    assert!(stage.queue.governed.is_none(), "a queue without policies keeps nothing for them");
}

/// Applies a policy to the queue of a stage.
fn act(stage: &mut Stage, settings: PolicySettings) {
    stage.queue.govern(under(settings), stage.now);
    stage.queue.enforce(stage.now, &mut stage.effects);
}

#[test]
fn what_waits_is_trimmed_to_the_length_as_the_overflow_says() {
    for (overflow, expected) in [
        (None, "a:maxlen b:maxlen"),
        (Some(Overflow::RejectPublish), ""),
        (Some(Overflow::RejectPublishDeadLetter), ""),
    ] {
        let mut stage = Stage::new(dead_lettering());
        for body in ["a", "b", "c"] {
            stage.publish(body).expect("there is room");
        }
        act(&mut stage, PolicySettings { length_max: Some(1), overflow, ..PolicySettings::default() });
        assert_eq!(stage.dead_lettered(), expected, "{overflow:?}");
        assert_eq!(stage.publish("d").is_err(), overflow.is_some(), "{overflow:?}");
    }
}

#[test]
fn a_time_to_live_counts_from_when_a_message_came_and_ends_with_its_policy() {
    let ttl =
        |ms| PolicySettings { message_ttl: Some(Duration::from_millis(ms)), ..PolicySettings::default() };
    let mut stage = Stage::new(dead_lettering());
    stage.publish("a").expect("there is room");
    stage.publish_with("own", &properties_with(None, Some(90)), None).expect("there is room");
    stage.pass(Duration::from_millis(50));
    act(&mut stage, ttl(60));
    assert_eq!(stage.queue.new_wake_up(), Some(stage.now.after(Duration::from_millis(10))));
    act(&mut stage, ttl(70));
    stage.pass(Duration::from_millis(10));
    assert_eq!(stage.dead_lettered(), "", "the later policy lets them wait longer");
    act(&mut stage, PolicySettings::default());
    stage.pass(Duration::from_millis(20));
    assert_eq!(stage.dead_lettered(), "", "without one the first waits for ever");
    act(&mut stage, ttl(79));
    assert_eq!(stage.dead_lettered(), "a:expired own:expired");
}

#[test]
fn an_idle_queue_is_as_old_as_the_policy_that_lets_it_go() {
    let mut stage = Stage::new(QueueSettings::default());
    stage.pass(Duration::from_secs(3600));
    let expires = Some(Duration::from_secs(60));
    act(&mut stage, PolicySettings { expires, ..PolicySettings::default() });
    assert_eq!(stage.queue.new_wake_up(), Some(stage.now.after(Duration::from_secs(60))));
    // Another setting changes: the idle time goes on.
    let since = stage.now;
    stage.pass(Duration::from_secs(30));
    act(&mut stage, PolicySettings { expires, length_max: Some(1), ..PolicySettings::default() });
    assert!(stage.queue.is_idle_too_long(since.after(Duration::from_secs(60))));
}

#[test]
fn a_delivery_limit_counts_failures_that_came_before_it() {
    let mut stage = Stage::with_reader(dead_lettering(), UNLIMITED);
    stage.publish("a").expect("there is room");
    for _ in 0..3 {
        stage.settle(1, Outcome::Release { failed: true });
    }
    let delivery_limit = Some(DeliveryLimit::Failures(3));
    act(&mut stage, PolicySettings { delivery_limit, ..PolicySettings::default() });
    assert_eq!(stage.dead_lettered(), "", "it is out");
    stage.settle(1, Outcome::Release { failed: true });
    assert_eq!(stage.dead_lettered(), "a:delivery_limit");
}
