//! The table as a whole: what each argument takes, sets, shows and records.

use super::*;
use crate::message::Value;
use crate::name::Name;
use crate::policy::{PolicySettings, QueueKind};
use crate::queue::QueueSettings;
use crate::route::Arguments;

/// A value that an argument takes and that is not its default, and one that it does not take.
fn values(argument: &Argument) -> (Value<'static>, Value<'static>) {
    match argument.takes {
        Takes::Milliseconds { .. } => (Value::Int(1000), Value::Int(MILLISECONDS_MAX + 1)),
        Takes::Whole { min, max: i64::MAX } => (Value::Int(min + 3), Value::Int(min - 1)),
        Takes::Whole { min, max } => ((Value::Int(min + 1)), Value::Int(max + 1)),
        Takes::Name => (Value::text(b"amq.fanout"), Value::Int(1)),
        Takes::Words(words) => (Value::text(words[words.len() - 1].as_bytes()), Value::text(b"none of them")),
        Takes::Flag => (Value::Bool(true), Value::text(b"true")),
        Takes::Text => (Value::text(b"x"), Value::text(b"")),
        Takes::Age => (Value::text(b"7D"), Value::text(b"7d")),
        Takes::Anything => (Value::List(vec![Value::Bool(true)]), Value::Null),
    }
}

/// Arguments that have to stand beside another.
fn beside(argument: &Argument) -> Vec<(&'static [u8], Value<'static>)> {
    let mut beside = Vec::new();
    if let [kind @ (QueueKind::Quorum | QueueKind::Stream)] = argument.kinds {
        beside.push((&b"x-queue-type"[..], Value::text(kind.name().as_bytes())));
    }
    if argument.name == "x-dead-letter-routing-key" {
        beside.push((&b"x-dead-letter-exchange"[..], Value::text(b"amq.fanout")));
    }
    beside
}

fn read(argument: &Argument, value: Value<'static>) -> Result<QueueSettings, ArgumentError> {
    let declared = QueueSettings { is_durable: true, ..QueueSettings::default() };
    let given = beside(argument).into_iter().chain([(argument.name.as_bytes(), value)]);
    read_arguments(declared, given)
}

#[test]
fn each_argument_is_read_shown_compared_and_recorded() {
    for argument in &QUEUE_ARGUMENTS {
        let (value, bad) = values(argument);
        let settings = read(argument, value.clone()).unwrap();
        assert_eq!(argument.value(&settings), Some(value), "{argument:?}");
        let shown: Vec<_> = arguments_of(&settings).collect();
        let again = shown.iter().map(|(name, value)| (name.as_bytes(), value.clone()));
        let declared = QueueSettings { is_durable: true, ..QueueSettings::default() };
        assert_eq!(read_arguments(declared.clone(), again).as_ref(), Ok(&settings), "{argument:?}");
        let others = settings.others.clone();
        let kept = read_recorded(QueueSettings { others, ..declared.clone() }, &recorded(&settings));
        assert_eq!(kept.as_ref(), Some(&settings), "{argument:?}");
        let without = read_arguments(declared, beside(argument)).unwrap();
        let property = difference(&without, &settings).map(|difference| difference.property);
        assert_eq!(property, Some(argument.name), "{argument:?}");
        let refused = read(argument, bad.clone());
        match argument.takes {
            Takes::Anything => assert!(refused.is_ok(), "{argument:?}"),
            _ => assert_eq!(refused.unwrap_err().argument, argument.name, "{bad:?}"),
        }
    }
}

#[test]
fn an_argument_of_another_kind_of_queue_is_refused() {
    for argument in &QUEUE_ARGUMENTS {
        let (value, _) = values(argument);
        for kind in [QueueKind::Classic, QueueKind::Quorum, QueueKind::Stream] {
            if argument.name == "x-queue-type" {
                continue;
            }
            let mut given = beside(argument);
            given.retain(|(name, _)| *name != b"x-queue-type");
            given.push((b"x-queue-type", Value::text(kind.name().as_bytes())));
            given.push((argument.name.as_bytes(), value.clone()));
            let declared = QueueSettings { is_durable: true, ..QueueSettings::default() };
            let read = read_arguments(declared, given);
            let expected = match argument.kinds {
                kinds if kinds.contains(&kind) => None,
                _ => Some(Fault::NotOfKind(kind)),
            };
            assert_eq!(read.err().map(|error| error.fault), expected, "{argument:?} {kind:?}");
        }
    }
}

#[test]
fn a_number_is_equal_whatever_its_type() {
    for name in [&b"x-consumer-timeout"[..], b"x-max-length"] {
        let [signed, unsigned] = [Value::Int(5), Value::Uint(5)].map(|value| {
            let given = [(&b"x-queue-type"[..], Value::text(b"quorum")), (name, value)];
            read_arguments(QueueSettings { is_durable: true, ..QueueSettings::default() }, given).unwrap()
        });
        assert_eq!(difference(&signed, &unsigned), None);
        assert_eq!(signed, unsigned);
    }
}

#[test]
fn text_is_parsed_by_the_type_of_the_argument() {
    for (takes, text, expected) in [
        (Takes::Flag, "TRUE", Value::Bool(true)),
        (Takes::Flag, "yes", Value::text(b"yes")),
        (Takes::Milliseconds { min: 0 }, "5", Value::Uint(5)),
        (Takes::Milliseconds { min: 0 }, "+5", Value::text(b"+5")),
        (Takes::Milliseconds { min: 0 }, "", Value::text(b"")),
        (Takes::Milliseconds { min: 0 }, "99999999999999999999999", Value::Uint(u64::MAX)),
        (Takes::Whole { min: -1, max: 5 }, "-1", Value::Int(-1)),
        (Takes::Whole { min: -1, max: 5 }, "--1", Value::text(b"--1")),
        (Takes::Name, "5", Value::text(b"5")),
    ] {
        assert_eq!(takes.parse(text.as_bytes()), expected, "{takes:?} {text}");
    }
}

#[test]
fn a_policy_key_is_found_and_sets_something() {
    for argument in QUEUE_ARGUMENTS.iter().filter(|argument| argument.policy.is_some()) {
        let key = argument.policy.as_ref().unwrap();
        let (found, _) = find_policy_key(key.name).unwrap();
        assert_eq!(found.name, argument.name);
        let Some(effect) = &key.effect else { continue };
        let mut settings = PolicySettings::default();
        let (value, _) = values(argument);
        (effect.set)(&mut settings, argument.takes.check(&value).unwrap());
        assert_ne!(settings, PolicySettings::default(), "{key:?}");
    }
}

#[test]
fn a_record_with_an_argument_of_a_later_version_is_not_read() {
    let unknown = Arguments::new([(Name::from("x-later"), Value::Bool(true))]);
    assert_eq!(read_recorded(QueueSettings::default(), &unknown), None);
    let of_other_type = Arguments::new([(Name::from("x-expires"), Value::Bool(true))]);
    assert_eq!(read_recorded(QueueSettings::default(), &of_other_type), None);
}
