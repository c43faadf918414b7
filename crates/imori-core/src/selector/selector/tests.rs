//! Selectors as the JMS specification describes them.

use std::borrow::Cow;

use super::Selector;
use crate::limits::{SELECTOR_BYTES_MAX, SELECTOR_NESTING_MAX, SELECTOR_WORDS_MAX};
use crate::message::{HeaderReader, MessageView, OriginId, Properties, Property, Span, Value};
use crate::selector::{FieldName, Fields, MessageFields, Number, Operand};

/// A message as a list of properties.
struct Sample(Vec<(&'static str, Operand<'static>)>);

impl Fields for Sample {
    fn field(&self, name: &FieldName) -> Operand<'_> {
        let FieldName::Property(name) = name else { return Operand::Null };
        let found = self.0.iter().find(|(known, _)| known.as_bytes() == &**name);
        found.map_or(Operand::Null, |(_, value)| value.clone())
    }
}

fn int(number: i64) -> Operand<'static> {
    Operand::Number(Number::Int(number))
}

fn float(number: f64) -> Operand<'static> {
    Operand::Number(Number::Float(number))
}

fn text(text: &'static str) -> Operand<'static> {
    Operand::Text(Cow::Borrowed(text.as_bytes()))
}

fn untyped(text: &'static str) -> Operand<'static> {
    Operand::Untyped(Cow::Borrowed(text.as_bytes()))
}

fn sample() -> Sample {
    Sample(vec![
        ("age", int(17)),
        ("weight", float(2500.5)),
        ("large", int(i64::MAX)),
        ("color", text("blue")),
        ("empty", text("")),
        ("yes", Operand::Bool(true)),
        ("no", Operand::Bool(false)),
        ("bytes", Operand::Other),
        ("nan", float(f64::NAN)),
        ("u17", untyped("17")),
        ("u1.5", untyped("1.5")),
        ("ublue", untyped("blue")),
        ("uyes", untyped("true")),
        ("content-type", untyped("a/b")),
    ])
}

/// The truth value of a selector for the sample; unknown if both it and its negation do not match.
fn truth(selector: &str) -> Option<bool> {
    let matches = |text: &str| {
        Selector::parse(text).unwrap_or_else(|error| panic!("{text}: {error}")).matches(&sample())
    };
    match (matches(selector), matches(&format!("NOT ({selector})"))) {
        (true, false) => Some(true),
        (false, true) => Some(false),
        (false, false) => None,
        (true, true) => panic!("{selector} is true and false"),
    }
}

#[test]
fn conditions_have_three_values() {
    let (yes, no, unknown) = (Some(true), Some(false), None);
    for (selector, expected) in [
        // JMS, Message Selector Syntax: comparisons.
        ("age = 17", yes),
        ("age <> 17", no),
        ("age = 17.0", yes),
        ("age >= 17 AND age <= 17", yes),
        ("age > 17 OR age < 17", no),
        ("17 = age", yes),
        ("color = 'blue'", yes),
        ("color = 'Blue'", no),
        ("color <> 'red'", yes),
        ("yes = TRUE", yes),
        ("no <> true", yes),
        ("yes", yes),
        ("no", no),
        ("TRUE", yes),
        ("FALSE", no),
        ("missing = 1", unknown),
        ("missing", unknown),
        ("missing IS NULL", yes),
        ("missing IS NOT NULL", no),
        ("age IS NULL", no),
        ("empty IS NOT NULL", yes),
        ("bytes IS NOT NULL", yes),
        // Values of different types: false for every operator.
        ("age = 'blue'", no),
        ("age <> 'blue'", no),
        ("color > 1", no),
        ("color = TRUE", no),
        ("bytes = 1", no),
        ("bytes = bytes", no),
        ("yes > no", no),
        ("color < empty", no),
        // A value that is not a condition.
        ("color AND TRUE", unknown),
        ("age OR TRUE", yes),
        ("nan = nan", no),
        ("nan <> nan", yes),
        ("nan < 1", no),
        // Logic.
        ("no AND missing", no),
        ("missing AND no", no),
        ("yes AND missing", unknown),
        ("yes OR missing", yes),
        ("missing OR yes", yes),
        ("no OR missing", unknown),
        ("NOT missing", unknown),
        ("NOT no AND yes", yes),
        ("NOT no OR yes", yes),
        ("NOT (no OR yes)", no),
        ("no AND no OR yes", yes),
        ("no AND (no OR yes)", no),
        ("yes OR yes AND no", yes),
        ("NOT NOT yes", yes),
        ("NOT age = 18", yes),
        ("(age = 17) = yes", yes),
        // Arithmetic.
        ("age + 1 = 18", yes),
        ("age - 1 - 1 = 15", yes),
        ("age - (1 - 1) = 17", yes),
        ("2 + 3 * 4 = 14", yes),
        ("(2 + 3) * 4 = 20", yes),
        ("age / 2 = 8", yes),
        ("age / 2.0 = 8.5", yes),
        ("-age = -17", yes),
        ("- -age = +17", yes),
        ("-(age + 1) < -17", yes),
        ("2 * -3 = -6", yes),
        ("missing + 1 = 1", unknown),
        ("color + 1 = 1", unknown),
        ("age / 0 = 1", unknown),
        ("age / 0.0 > 1", yes),
        ("large + 1 < 0", yes),
        ("-9223372036854775808 < 0", yes),
        ("large = 9223372036854775807", yes),
        ("large < 9223372036854775808.0", yes),
        ("0x10 = 16 AND 017 = 15", yes),
        // BETWEEN, IN, LIKE.
        ("age BETWEEN 17 AND 17", yes),
        ("age BETWEEN 18 AND 20", no),
        ("age NOT BETWEEN 18 AND 20", yes),
        ("age BETWEEN 10 + 5 AND 2 * 10 AND yes", yes),
        ("age BETWEEN missing AND 20", unknown),
        ("age BETWEEN missing AND 10", no),
        ("missing BETWEEN 1 AND 2", unknown),
        ("color BETWEEN 1 AND 2", no),
        ("age * 2 BETWEEN 33 AND 35", yes),
        ("color IN ('red', 'blue')", yes),
        ("color IN ('red')", no),
        ("color NOT IN ('red')", yes),
        ("missing IN ('red')", unknown),
        ("missing NOT IN ('red')", unknown),
        ("age IN ('17')", no),
        ("color LIKE 'b_u%'", yes),
        ("color LIKE 'B%'", no),
        ("color NOT LIKE 'b%'", no),
        ("color LIKE 'b\\%' ESCAPE '\\'", no),
        ("missing LIKE '%'", unknown),
        ("missing NOT LIKE '%'", unknown),
        ("age LIKE '17'", no),
        ("age NOT LIKE '17'", yes),
        ("empty LIKE ''", yes),
        // Untyped texts take the type of the other operand.
        ("u17 = 17", yes),
        ("u17 = '17'", yes),
        ("u17 = 17.0", yes),
        ("u17 > 9", yes),
        ("u17 + 1 = 18", yes),
        ("\"u1.5\" * 2 = 3", yes),
        ("u1.5 < u17", yes),
        ("u17 = age", yes),
        ("u17 BETWEEN 1 AND 20", yes),
        ("u17 IN ('17')", yes),
        ("ublue = 'blue'", yes),
        ("ublue = color", yes),
        ("ublue > 1", no),
        ("ublue <> 1", no),
        ("ublue + 1 = 1", unknown),
        ("uyes", yes),
        ("uyes = TRUE", yes),
        ("uyes = 'true'", yes),
        ("(uyes OR no) = 'true'", no),
        ("u17 = u17", yes),
        ("NOT uyes", no),
        ("\"content-type\" = 'a/b'", yes),
    ] {
        assert_eq!(truth(selector), expected, "{selector}");
    }
}

/// JMS 2.0, 3.8.1.1: the examples of the specification.
#[test]
fn the_examples_of_the_specification_hold() {
    for (selector, property, yes, no) in [
        ("age BETWEEN 15 and 19", "age", &[int(15), int(19)][..], &[int(14), int(20)][..]),
        ("age >= 15 AND age <= 19", "age", &[int(15), int(19)], &[int(14), int(20)]),
        ("age NOT BETWEEN 15 and 19", "age", &[int(14), int(20)], &[int(15), int(19), Operand::Null]),
        ("age < 15 OR age > 19", "age", &[int(14), int(20)], &[int(15), int(19), Operand::Null]),
        ("Country IN ('UK', 'US', 'France')", "Country", &[text("UK")], &[text("Peru"), Operand::Null]),
        (
            "(Country = 'UK') OR (Country = 'US') OR (Country = 'France')",
            "Country",
            &[text("UK")],
            &[text("Peru"), Operand::Null],
        ),
        ("Country NOT IN ('UK', 'US', 'France')", "Country", &[text("Peru")], &[text("UK"), Operand::Null]),
        (
            "NOT ((Country = 'UK') OR (Country = 'US') OR (Country = 'France'))",
            "Country",
            &[text("Peru")],
            &[text("UK"), Operand::Null],
        ),
        ("phone LIKE '12%3'", "phone", &[text("123"), text("12993")], &[text("1234")]),
        ("word LIKE 'l_se'", "word", &[text("lose")], &[text("loose")]),
        ("underscored LIKE '\\_%' ESCAPE '\\'", "underscored", &[text("_foo")], &[text("bar")]),
        ("phone NOT LIKE '12%3'", "phone", &[text("1234")], &[text("123"), text("12993"), Operand::Null]),
        ("prop_name IS NULL", "prop_name", &[Operand::Null], &[int(0)]),
        ("prop_name IS NOT NULL", "prop_name", &[int(0)], &[Operand::Null]),
    ] {
        let selector = Selector::parse(selector).unwrap();
        for (values, expected) in [(yes, true), (no, false)] {
            for value in values {
                let message = Sample(vec![(property, value.clone())]);
                assert_eq!(selector.matches(&message), expected, "{selector} of {value:?}");
            }
        }
    }
    let selector = Selector::parse("JMSType = 'car' AND color = 'blue' AND weight > 2500").unwrap();
    assert_eq!(selector.as_str(), "JMSType = 'car' AND color = 'blue' AND weight > 2500");
    assert!(!selector.matches(&sample()), "it has no type");
}

#[test]
fn an_error_says_where_and_why() {
    for (selector, expected) in [
        ("", "1: a value is expected, but the selector ends"),
        ("a =", "4: a value is expected, but the selector ends"),
        ("a = )", "5: a value is expected, not `)`"),
        ("a b", "3: an operator is expected, not `b`"),
        ("a = 1 'x'", "7: an operator is expected, not `'x'`"),
        ("ä = 'ö' = )", "11: a value is expected, not `)`"),
        ("(a = 1", "1: the parenthesis is not closed; add `)`"),
        ("a = 1)", "6: no parenthesis is open; remove `)`"),
        ("()", "2: a value is expected, not `)`"),
        ("a BETWEEN 1", "3: BETWEEN has no AND; write `BETWEEN 1 AND 2`"),
        ("(a BETWEEN 1) AND b", "4: BETWEEN has no AND; write `BETWEEN 1 AND 2`"),
        ("a BETWEEN 1 OR 2", "3: BETWEEN has no AND; write `BETWEEN 1 AND 2`"),
        ("a BETWEEN 'a' AND 'b'", "19: is a text, where a number is needed"),
        ("a NOT = 1", "7: BETWEEN, IN or LIKE is expected, not `=`"),
        ("a IN ()", "7: a text in single quotes is expected, not `)`"),
        ("a IN (1)", "7: a text in single quotes is expected, not `1`"),
        ("a IN ('b' 'c')", "11: `,` or `)` is expected, not `'c'`"),
        ("a IN 'b'", "6: `(` is expected, not `'b'`"),
        ("a LIKE b", "8: a text in single quotes is expected, not `b`"),
        ("a LIKE 'b' ESCAPE '__'", "19: one character in single quotes is expected, not `'__'`"),
        ("a LIKE 'b_' ESCAPE 'b'", ""),
        (
            "a LIKE 'b' ESCAPE 'b'",
            "8: the escape character stands before none of `%`, `_` or the escape character",
        ),
        ("a IS 1", "6: NULL is expected, not `1`"),
        ("a = NULL", "5: NULL is no value; write `IS NULL` behind a name"),
        ("NULL = 1", "1: NULL is no value; write `IS NULL` behind a name"),
        ("BETWEEN = 1", "1: a value is expected, not `BETWEEN`"),
        ("a = NOT b", "5: NOT cannot stand within a comparison; put it in parentheses"),
        ("'text'", "1: is a text, where a condition is needed"),
        ("a AND 5", "7: is a number, where a condition is needed"),
        ("5 + 5", "1: is a number, where a condition is needed"),
        ("NOT 'x'", "5: is a text, where a condition is needed"),
        ("a + 'x' = 1", "5: is a text, where a number is needed"),
        ("-TRUE = 1", "2: is a condition, where a number is needed"),
        ("a > 'x'", "5: is a text, where a number is needed"),
        ("a < b < c", "1: is a condition, where a number is needed"),
        ("5 LIKE '5'", "1: is a number, where a text is needed"),
        (
            "a = 9223372036854775808",
            "5: `9223372036854775808` is out of range; the largest number is 9223372036854775807",
        ),
        (
            "a = -9223372036854775809",
            "6: `9223372036854775809` is out of range; the largest number is 9223372036854775807",
        ),
        (
            "JMSExpiration > 1",
            "1: `JMSExpiration` cannot be selected by; expired messages are not delivered anyway",
        ),
    ] {
        let error = Selector::parse(selector).err();
        let told = error.map(|error| error.to_string()).unwrap_or_default();
        let expected =
            if expected.is_empty() { String::new() } else { format!("selector, character {expected}") };
        assert_eq!(told, expected, "{selector}");
    }
}

/// SECURITY LIM-09 and LIM-10, on a thread with a small stack.
#[test]
fn each_limit_of_a_selector_is_an_error_and_the_stack_stays_flat() {
    let deep = |count| format!("{}a = 1{}", "(".repeat(count), ")".repeat(count));
    let nots = |count| format!("{}a", "NOT ".repeat(count));
    let signs = |count| format!("1 = {}a", "- ".repeat(count));
    let words = |count: usize| format!("a{}", " OR a".repeat((count - 1) / 2));
    let padded = |len: usize| format!("a{}", " ".repeat(len - 1));
    // A pending operator is a level too: here the last comparison, and the one before the signs.
    let rows: Vec<(String, Option<&str>)> = vec![
        (deep(SELECTOR_NESTING_MAX - 1), None),
        (deep(SELECTOR_NESTING_MAX), Some("is nested too deeply")),
        (deep(10_000), Some("is nested too deeply")),
        (nots(SELECTOR_NESTING_MAX), None),
        (nots(SELECTOR_NESTING_MAX + 1), Some("is nested too deeply")),
        (signs(SELECTOR_NESTING_MAX - 1), None),
        (signs(10_000), Some("is nested too deeply")),
        ("a BETWEEN a AND ".repeat(2_000), Some("is a condition, where a number is needed")),
        (words(SELECTOR_WORDS_MAX - 1), None),
        (words(SELECTOR_WORDS_MAX + 1), Some("has too many words; use at most 8192")),
        (padded(SELECTOR_BYTES_MAX), None),
        (padded(SELECTOR_BYTES_MAX + 1), Some("has 65537 bytes; use at most 65536")),
        (format!("a = '{}'", "x".repeat(1 << 20)), Some("use at most 65536")),
    ];
    let check = move || {
        for (selector, expected) in rows {
            let told = Selector::parse(&selector).err().map(|error| error.to_string());
            let shown = selector.get(..selector.floor_char_boundary(40));
            match expected {
                Some(expected) => {
                    assert!(told.as_ref().is_some_and(|told| told.contains(expected)), "{shown:?}: {told:?}");
                }
                None => {
                    assert_eq!(told, None, "{shown:?}");
                    Selector::parse(&selector).unwrap().matches(&sample());
                }
            }
        }
    };
    let thread = std::thread::Builder::new().stack_size(256 << 10).spawn(check).unwrap();
    thread.join().unwrap();
}

#[test]
fn a_blank_selector_is_none_and_bytes_have_to_be_utf_8() {
    assert_eq!(Selector::read(b" \t\n"), Ok(None));
    assert_eq!(Selector::read(b"a").unwrap().unwrap().as_str(), "a");
    let error = Selector::read(b"a = '\xc3\xa9\xff'").unwrap_err();
    assert_eq!(error.to_string(), "selector, character 7: is not UTF-8");
    assert_eq!(error.position(), Some(6));
}

/// Reads `name=value` lines as texts.
struct Lines {
    is_typed: bool,
}

impl HeaderReader for Lines {
    fn visit_headers<'t>(&self, text: &'t [u8], visit: &mut dyn FnMut(Cow<'t, [u8]>, Value<'t>)) {
        for line in text.split(|byte| *byte == b'\n') {
            if let Some(middle) = line.iter().position(|byte| *byte == b'=') {
                visit(Cow::Borrowed(&line[..middle]), Value::text(&line[middle + 1..]));
            }
        }
    }

    fn is_typed(&self) -> bool {
        self.is_typed
    }
}

#[test]
fn headers_of_jms_are_those_of_any_message() {
    let text = b"color=blue\ncolor=red\nsize=7\nJMSXGroupID=g\nid-1type-1";
    let mut properties = Properties::new(OriginId(1));
    let at = text.len() - 10;
    properties.set(Property::MessageId, Span::new(at, 4).unwrap());
    properties.set(Property::Type, Span::new(at + 4, 6).unwrap());
    properties.timestamp = Some(1_700_000_000);
    let fields = |properties, is_typed: bool, failures| MessageFields {
        message: MessageView { properties, text, body: b"" },
        headers: if is_typed { &Lines { is_typed: true } } else { &Lines { is_typed: false } },
        subject: b"orders",
        failures,
        is_redelivered: failures > 0,
    };
    let matches =
        |selector: &str, fields: &MessageFields<'_>| Selector::parse(selector).unwrap().matches(fields);
    for selector in [
        "JMSMessageID = 'id-1' AND amqp.message_id = 'id-1' AND AMQUserID LIKE 'id-_'",
        "JMSType = 'type-1' AND amqp.subject = 'type-1'",
        "JMSTimestamp = 1700000000000",
        "JMSDestination = 'orders'",
        "JMSDeliveryMode = 'NON_PERSISTENT' AND NOT amqp.durable",
        "JMSPriority = 4",
        "JMSCorrelationID IS NULL AND JMSReplyTo IS NULL AND JMSXUserID IS NULL",
        "JMSRedelivered = FALSE AND JMSXDeliveryCount = 1 AND amqp.delivery_count = 0",
        "color = 'blue' AND size = 7 AND JMSXGroupID = 'g'",
    ] {
        assert!(matches(selector, &fields(&properties, false, 0)), "{selector}");
    }
    assert!(!matches("size = 7", &fields(&properties, true, 0)), "a text with a type is no number");
    assert!(matches("size = '7'", &fields(&properties, true, 0)));
    let mut urgent = properties;
    urgent.priority = Some(9);
    urgent.is_persistent = true;
    for selector in [
        "JMSPriority > 8 AND JMSDeliveryMode = 'PERSISTENT' AND AMQDurable",
        "JMSRedelivered AND JMSXDeliveryCount = 3 AND amqp.delivery_count = 2",
    ] {
        assert!(matches(selector, &fields(&urgent, false, 2)), "{selector}");
    }
}
