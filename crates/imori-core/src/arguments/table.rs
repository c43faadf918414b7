//! The table of arguments.

use std::time::Duration;

use super::argument::{Argument, PolicyKey};
use super::takes::{Taken, Takes};
use crate::confirm::Level;
use crate::message::Value;
use crate::name::Name;
use crate::policy::{DeliveryLimit, Overflow, QueueKind};
use crate::queue::{DeadLetterTarget, QueueSettings};
use crate::stream::parse_age;

const CLASSIC: &[QueueKind] = &[QueueKind::Classic];
const QUORUM: &[QueueKind] = &[QueueKind::Quorum];
const STREAMS: &[QueueKind] = &[QueueKind::Stream];
const ALL: &[QueueKind] = &[QueueKind::Classic, QueueKind::Quorum, QueueKind::Stream];
const NATURAL: Takes = Takes::Whole { min: 0, max: i64::MAX };
const POSITIVE: Takes = Takes::Whole { min: 1, max: i64::MAX };
const KINDS: Takes = Takes::Words(&["classic", "quorum", "stream"]);
const OVERFLOWS: Takes = Takes::Words(&["drop-head", "reject-publish", "reject-publish-dlx"]);
const LEVELS: Takes = Takes::Words(&["memory", "os", "disk"]);
const LOCATORS: Takes = Takes::Words(&["client-local", "balanced", "random", "least-leaders"]);
const STRATEGIES: Takes = Takes::Words(&["at-most-once", "at-least-once"]);

/// The largest segment of a stream in RabbitMQ.
const SEGMENT_BYTES_MAX: i64 = 3_000_000_000;

/// Whether operator policies may have a key.
const LIMIT: bool = true;
const NO_LIMIT: bool = false;

/// Finds the argument of this name.
pub fn find_argument(name: &[u8]) -> Option<&'static Argument> {
    QUEUE_ARGUMENTS.iter().find(|argument| argument.name.as_bytes() == name)
}

/// Finds the argument with this policy key.
pub fn find_policy_key(name: &str) -> Option<(&'static Argument, &'static PolicyKey)> {
    let with_key = |argument: &'static Argument| Some((argument, argument.policy.as_ref()?));
    QUEUE_ARGUMENTS.iter().filter_map(with_key).find(|(_, key)| key.name == name)
}

/// Every argument, in the order in which declarations are compared.
pub static QUEUE_ARGUMENTS: [Argument; 31] = [
    Argument::setting(
        ("x-queue-type", "the kind of the queue; `quorum` gives it the limits and defaults of RabbitMQ's quorum queues, and a `stream` keeps its messages"),
        KINDS,
        |queue, kind| {
            queue.kind = match kind {
                Taken::Text(b"quorum") => QueueKind::Quorum,
                Taken::Text(b"stream") => QueueKind::Stream,
                _ => QueueKind::Classic,
            };
        },
        |queue| (queue.kind != QueueKind::Classic).then(|| Value::text(queue.kind.name().as_bytes())),
    )
    .of(ALL),
    // A queue that expires at once could not be used.
    Argument::setting(
        ("x-expires", "milliseconds after which an unused queue is deleted"),
        Takes::Milliseconds { min: 1 },
        |queue, time| queue.expires = time.milliseconds(),
        |queue| milliseconds(queue.expires),
    )
    .policy(("expires", LIMIT), |policy, time| policy.expires = time.milliseconds(), |from| from.expires),
    Argument::setting(
        ("x-message-ttl", "milliseconds that a message may wait"),
        Takes::Milliseconds { min: 0 },
        |queue, time| queue.message_ttl = time.milliseconds(),
        // An age that was given as `x-max-age` is shown so.
        |queue| milliseconds(queue.message_ttl.filter(|_| max_age(queue).is_none())),
    )
    .policy(
        ("message-ttl", LIMIT),
        |policy, time| policy.message_ttl = time.milliseconds(),
        |from| from.message_ttl,
    ),
    Argument::setting(
        ("x-max-length", "messages that may wait"),
        NATURAL,
        |queue, max| queue.length_max = max.natural(),
        |queue| number(queue.length_max),
    )
    .policy(
        ("max-length", LIMIT),
        |policy, max| policy.length_max = max.natural(),
        |from| from.length_max,
    ),
    Argument::setting(
        ("x-max-length-bytes", "bytes of bodies that may wait"),
        NATURAL,
        |queue, max| queue.length_bytes_max = max.natural(),
        |queue| number(queue.length_bytes_max),
    )
    .of(ALL)
    .policy(
        ("max-length-bytes", LIMIT),
        |policy, max| policy.length_bytes_max = max.natural(),
        |from| from.length_bytes_max,
    ),
    Argument::setting(
        ("x-overflow", "the treatment of messages beyond these limits; `drop-head` by default"),
        OVERFLOWS,
        |queue, word| queue.overflow = overflow(word),
        |queue| {
            (queue.overflow != Overflow::default()).then(|| Value::text(queue.overflow.name().as_bytes()))
        },
    )
    .policy(
        ("overflow", LIMIT),
        |policy, word| policy.overflow = Some(overflow(word)),
        |from| from.overflow,
    ),
    Argument::setting(
        ("x-dead-letter-exchange", "the exchange for messages that are rejected, expire or overflow"),
        Takes::Name,
        |queue, name| {
            queue.dead_letter = name.name().map(|exchange| DeadLetterTarget { exchange, routing_key: None });
        },
        |queue| name(Some(&queue.dead_letter.as_ref()?.exchange)),
    )
    .policy(
        ("dead-letter-exchange", NO_LIMIT),
        |policy, name| policy.dead_letter_exchange = name.name(),
        |from| from.dead_letter_exchange,
    ),
    Argument::setting(
        ("x-dead-letter-routing-key", "the routing key that these messages get; their own by default"),
        Takes::Name,
        |queue, key| {
            if let Some(target) = &mut queue.dead_letter {
                target.routing_key = key.name();
            }
        },
        |queue| name(queue.dead_letter.as_ref()?.routing_key.as_ref()),
    )
    .policy(
        ("dead-letter-routing-key", NO_LIMIT),
        |policy, key| policy.dead_letter_routing_key = key.name(),
        |from| from.dead_letter_routing_key,
    ),
    // Zero is no priorities.
    Argument::setting(
        ("x-max-priority", "the highest priority that the queue tells apart; 0 is none"),
        Takes::Whole { min: 0, max: u8::MAX as i64 },
        |queue, max| {
            queue.priority_max = max.natural().and_then(|max| u8::try_from(max).ok()).filter(|max| *max > 0);
        },
        |queue| number(queue.priority_max.map(u64::from)),
    )
    .of(CLASSIC),
    // RabbitMQ has it with quorum queues alone. There, minus one is no limit.
    Argument::setting(
        ("x-delivery-limit", "failed deliveries of a message before it is dead-lettered; -1 is no limit, 20 the default of a quorum queue"),
        Takes::Whole { min: -1, max: u32::MAX as i64 },
        |queue, limit| queue.delivery_limit = limit.natural().and_then(|limit| u32::try_from(limit).ok()),
        |queue| match queue.delivery_limit {
            limit if limit == queue.kind.delivery_limit() => None,
            Some(limit) => number(Some(u64::from(limit))),
            None => Some(Value::Int(-1)),
        },
    )
    .policy(
        ("delivery-limit", LIMIT),
        |policy, limit| policy.delivery_limit = Some(delivery_limit(limit)),
        |from| from.delivery_limit,
    ),
    Argument::setting(
        ("x-dedup-window", "milliseconds in which the queue takes a message id once"),
        Takes::Milliseconds { min: 0 },
        |queue, time| queue.dedup_window = time.milliseconds().filter(|window| !window.is_zero()),
        |queue| milliseconds(queue.dedup_window),
    )
    .of(ALL),
    Argument::setting(
        ("x-single-active-consumer", "one consumer at a time gets messages, the others wait to take its place"),
        Takes::Flag,
        |queue, is_single| queue.is_single_active = is_single.flag(),
        |queue| queue.is_single_active.then_some(Value::Bool(true)),
    ),
    Argument::setting(
        ("x-level", "how safe a persistent message is when it is confirmed; the broker's default where it is left out"),
        LEVELS,
        |queue, word| queue.level = if let Taken::Text(word) = word { Level::parse(word) } else { None },
        |queue| queue.level.map(|level| Value::text(level.as_str().as_bytes())),
    )
    .of(ALL),
    Argument::noted("x-dead-letter-strategy", STRATEGIES)
        .of(QUORUM)
        .noted_policy("dead-letter-strategy", NO_LIMIT),
    Argument::noted("x-max-in-memory-length", NATURAL).of(QUORUM).noted_policy("max-in-memory-length", LIMIT),
    Argument::noted("x-max-in-memory-bytes", NATURAL).of(QUORUM).noted_policy("max-in-memory-bytes", LIMIT),
    Argument::noted("x-queue-mode", Takes::Words(&["default", "lazy"]))
        .of(CLASSIC)
        .noted_policy("queue-mode", NO_LIMIT),
    // RabbitMQ 4 takes 2 alone; declarations with 1 are all over the world.
    Argument::noted("x-queue-version", Takes::Whole { min: 1, max: 2 })
        .of(CLASSIC)
        .noted_policy("queue-version", LIMIT),
    Argument::noted("x-queue-master-locator", Takes::Anything)
        .of(CLASSIC)
        .noted_policy("queue-master-locator", LIMIT),
    Argument::noted("x-consumer-timeout", NATURAL).of(QUORUM).noted_policy("consumer-timeout", NO_LIMIT),
    Argument::noted("x-consumer-disconnected-timeout", NATURAL)
        .of(QUORUM)
        .noted_policy("consumer-disconnected-timeout", NO_LIMIT),
    Argument::noted("x-delayed-retry-type", Takes::Anything)
        .of(QUORUM)
        .noted_policy("delayed-retry-type", LIMIT),
    Argument::noted("x-delayed-retry-min", Takes::Anything)
        .of(QUORUM)
        .noted_policy("delayed-retry-min", LIMIT),
    Argument::noted("x-delayed-retry-max", Takes::Anything)
        .of(QUORUM)
        .noted_policy("delayed-retry-max", LIMIT),
    Argument::noted("x-quorum-initial-group-size", POSITIVE).of(QUORUM),
    Argument::noted("x-queue-leader-locator", LOCATORS).of(ALL).noted_policy("queue-leader-locator", NO_LIMIT),
    Argument::noted("x-member-placement-tag", Takes::Text)
        .of(QUORUM)
        .noted_policy("member-placement-tag", LIMIT),
    Argument::setting(
        ("x-max-age", "the age at which a message leaves a stream"),
        Takes::Age,
        |queue, age| {
            if let Taken::Text(text) = age {
                queue.message_ttl = parse_age(text);
                queue.stream.get_or_insert_default().max_age = Some(Box::from(text));
            }
        },
        |queue| max_age(queue).map(|text| Value::text(text).into_owned()),
    )
    .of(STREAMS)
    .policy(("max-age", NO_LIMIT), |policy, age| policy.max_age = age.age(), |from| from.message_ttl),
    Argument::noted("x-stream-max-segment-size-bytes", Takes::Whole { min: 0, max: SEGMENT_BYTES_MAX })
        .of(STREAMS)
        .noted_policy("stream-max-segment-size-bytes", NO_LIMIT),
    Argument::noted("x-stream-filter-size-bytes", Takes::Whole { min: 16, max: 255 })
        .of(STREAMS)
        .noted_policy("stream-filter-size-bytes", NO_LIMIT),
    Argument::noted("x-initial-cluster-size", POSITIVE)
        .of(STREAMS)
        .noted_policy("initial-cluster-size", NO_LIMIT),
];

/// The age of a stream's messages, as its declaration wrote it.
fn max_age(queue: &QueueSettings) -> Option<&[u8]> {
    queue.stream.as_ref()?.max_age.as_deref()
}

fn number(number: Option<u64>) -> Option<Value<'static>> {
    Some(Value::Int(i64::try_from(number?).unwrap_or(i64::MAX)))
}

fn milliseconds(time: Option<Duration>) -> Option<Value<'static>> {
    Some(Value::Int(i64::try_from(time?.as_millis()).unwrap_or(i64::MAX)))
}

fn name(name: Option<&Name>) -> Option<Value<'static>> {
    Some(Value::text(name?.as_bytes()).into_owned())
}

fn overflow(word: Taken<'_>) -> Overflow {
    match word {
        Taken::Text(b"reject-publish") => Overflow::RejectPublish,
        Taken::Text(b"reject-publish-dlx") => Overflow::RejectPublishDeadLetter,
        _ => Overflow::DropHead,
    }
}

/// A number below zero is no limit, as in RabbitMQ.
fn delivery_limit(limit: Taken<'_>) -> DeliveryLimit {
    let failures = limit.natural().and_then(|limit| u32::try_from(limit).ok());
    failures.map_or(DeliveryLimit::Unlimited, DeliveryLimit::Failures)
}
