//! Measures the cost of selectors: of compiling one, and of one evaluation on a message's encoded headers.
//!
//! Prints one line per measurement: the median of nine rounds, in processor time of the thread.

#![allow(clippy::print_stdout, reason = "a benchmark prints its results")]

use std::borrow::Cow;
use std::fs;
use std::hint::black_box;

use imori_core::message::{HeaderReader, MessageView, OriginId, Properties, Property, Span, Value};
use imori_core::selector::{MessageFields, Selector};

const ROUNDS: usize = 9;
const EVALUATIONS: u32 = 1_000_000;

/// Time allowed for one evaluation of three comparisons.
const GOAL_NS: f64 = 200.0;

/// Reads `name:value` lines, as in text protocols.
struct Lines;

impl HeaderReader for Lines {
    fn visit_headers<'t>(&self, text: &'t [u8], visit: &mut dyn FnMut(Cow<'t, [u8]>, Value<'t>)) {
        lines(text).for_each(|(name, value)| visit(Cow::Borrowed(name), Value::text(value)));
    }

    fn header<'t>(&self, text: &'t [u8], name: &[u8]) -> Option<Value<'t>> {
        lines(text).find(|(known, _)| *known == name).map(|(_, value)| Value::text(value))
    }

    fn is_typed(&self) -> bool {
        false
    }
}

fn lines(text: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = memchr::memchr(b'\n', rest)?;
        let (line, after) = rest.split_at(end);
        rest = &after[1..];
        let colon = memchr::memchr(b':', line)?;
        Some((&line[..colon], &line[colon + 1..]))
    })
}

/// Reads names and typed values behind their lengths, as in binary protocols.
struct Typed;

impl HeaderReader for Typed {
    fn visit_headers<'t>(&self, text: &'t [u8], visit: &mut dyn FnMut(Cow<'t, [u8]>, Value<'t>)) {
        typed(text).for_each(|(name, value)| visit(Cow::Borrowed(name), value));
    }

    fn header<'t>(&self, text: &'t [u8], name: &[u8]) -> Option<Value<'t>> {
        typed(text).find(|(known, _)| *known == name).map(|(_, value)| value)
    }
}

fn typed(text: &[u8]) -> impl Iterator<Item = (&[u8], Value<'_>)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (len, after) = rest.split_first()?;
        let (name, after) = after.split_at(usize::from(*len));
        let (kind, after) = after.split_first()?;
        let (len, after) = after.split_first()?;
        let (value, after) = after.split_at(usize::from(*len));
        rest = after;
        Some((
            name,
            if *kind == b'l' {
                Value::Int(i64::from_be_bytes(value.try_into().ok()?))
            } else {
                Value::text(value)
            },
        ))
    })
}

fn main() {
    let plain = b"color:blue\nweight:2600\nregion:europe\nsource:warehouse-17\nattempt:1\ntype-car\n";
    let mut encoded = Vec::new();
    for (name, value) in [("color", "blue"), ("weight", ""), ("region", "europe"), ("source", "warehouse-17")]
    {
        encoded.push(name.len() as u8);
        encoded.extend(name.as_bytes());
        let number = 2_600_i64.to_be_bytes();
        let (kind, value) = if value.is_empty() { (b'l', &number[..]) } else { (b'S', value.as_bytes()) };
        encoded.extend([kind, value.len() as u8]);
        encoded.extend(value);
    }
    let mut properties = Properties::new(OriginId(1));
    properties.set(Property::Type, Span::new(plain.len() - 4, 3).expect("it is short"));
    let samples: [(&str, &[u8], &dyn HeaderReader); 2] =
        [("text", plain, &Lines), ("typed", &encoded, &Typed)];
    let mut is_slow = false;
    for (name, comparisons, text) in [
        ("one comparison", 1, "color = 'blue'"),
        ("three comparisons", 3, "color = 'blue' AND weight > 2500 AND region <> 'asia'"),
        ("three of which the first is false", 3, "color = 'red' AND weight > 2500 AND region <> 'asia'"),
        (
            "three with headers of JMS",
            3,
            "JMSPriority >= 4 AND JMSDeliveryMode = 'NON_PERSISTENT' AND weight < 9000",
        ),
        (
            "LIKE, IN, BETWEEN",
            3,
            "source LIKE 'ware%_17' AND region IN ('asia', 'europe') AND weight BETWEEN 1 AND 9000",
        ),
    ] {
        let selector = Selector::parse(text).expect("it is one");
        for (origin, text, headers) in samples {
            let message = MessageView { properties: &properties, text, body: b"" };
            let fields =
                MessageFields { message, headers, subject: b"orders", failures: 0, is_redelivered: false };
            let nanoseconds = median(EVALUATIONS, || black_box(&selector).matches(black_box(&fields)));
            println!("{name}, {origin}: {nanoseconds:.0} ns");
            is_slow |= comparisons == 3 && nanoseconds > GOAL_NS;
        }
    }
    let text = "JMSType = 'car' AND color = 'blue' AND weight > 2500";
    println!(
        "compiling three comparisons: {:.0} ns",
        median(100_000, || Selector::parse(black_box(text)).is_ok())
    );
    assert!(!is_slow, "three comparisons take over {GOAL_NS} ns");
}

/// Nanoseconds of one call.
fn median(calls: u32, mut call: impl FnMut() -> bool) -> f64 {
    let mut rounds: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let begin = processor_time();
            for _ in 0..calls {
                black_box(call());
            }
            (processor_time() - begin) as f64 / f64::from(calls)
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    rounds[ROUNDS / 2]
}

/// Processor time of this thread in nanoseconds.
fn processor_time() -> u64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").expect("Linux tells it");
    text.split_whitespace().next().and_then(|number| number.parse().ok()).expect("it is a number")
}
