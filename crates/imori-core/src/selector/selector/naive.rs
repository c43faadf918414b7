//! Random selectors for random messages, checked against a naive evaluator.
//!
//! The naive evaluator walks a boxed tree, evaluates everything, copies each value, compares
//! numbers digit by digit and matches patterns by trying all splits. It was written independently
//! of the real one.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::Selector;
use crate::selector::{FieldName, Fields, Number, Operand};

/// The number of cases per run; an environment variable of this name overrides it.
const CASES: (&str, u64) = ("IMORI_SELECTOR_CASES", 50_000);

/// Names of properties; no message has the last one.
const NAMES: [&str; 6] = ["a", "b", "c", "$d", "e-f", "gone"];

const TEXTS: [&str; 9] = ["", "a", "ab", "aab", "it's", "1", "-2.5", "true", "größe"];

const INTS: [i64; 10] =
    [0, 1, -1, 2, 7, i64::MAX, i64::MIN, i64::MAX - 1, 9_007_199_254_740_993, -9_007_199_254_740_993];

const FLOATS: [f64; 9] =
    [0.0, 1.0, -1.0, 2.5, -2.5, 0.1, 9_223_372_036_854_775_808.0, 9_007_199_254_740_992.0, 1e300];

#[derive(Debug, Clone, PartialEq)]
enum Plain {
    Null,
    Bool(bool),
    Int(i128),
    Float(f64),
    Text(String),
    Untyped(String),
    Other,
}

#[derive(Debug)]
enum Tree {
    Field(usize),
    Literal(Plain),
    Not(Box<Tree>),
    Negate(Box<Tree>),
    Plus(Box<Tree>),
    Binary(Box<Tree>, &'static str, Box<Tree>),
    Between(Box<Tree>, Box<Tree>, Box<Tree>, bool),
    In(Box<Tree>, Vec<&'static str>, bool),
    Like(Box<Tree>, String, Option<char>, bool),
    IsNull(Box<Tree>, bool),
}

struct Sample(BTreeMap<&'static str, Plain>);

impl Fields for Sample {
    fn field(&self, name: &FieldName) -> Operand<'_> {
        let FieldName::Property(name) = name else { panic!("no header of JMS is asked for") };
        let value = NAMES.iter().find(|known| known.as_bytes() == &**name).and_then(|name| self.0.get(name));
        match value {
            None | Some(Plain::Null) => Operand::Null,
            Some(Plain::Bool(value)) => Operand::Bool(*value),
            Some(Plain::Int(number)) => Operand::Number(match i64::try_from(*number) {
                Ok(number) => Number::Int(number),
                Err(_) => Number::Large(u64::try_from(*number).unwrap()),
            }),
            Some(Plain::Float(number)) => Operand::Number(Number::Float(*number)),
            Some(Plain::Text(text)) => Operand::Text(Cow::Borrowed(text.as_bytes())),
            Some(Plain::Untyped(text)) => Operand::Untyped(Cow::Borrowed(text.as_bytes())),
            Some(Plain::Other) => Operand::Other,
        }
    }
}

#[test]
fn selectors_are_evaluated_as_a_naive_evaluator_does() {
    #[expect(clippy::disallowed_methods, reason = "a longer run is asked for from outside")]
    let asked = std::env::var(CASES.0).ok().and_then(|text| text.parse().ok());
    let (mut counts, mut refused) = ([0_u64; 3], 0);
    for case in 0..asked.unwrap_or(CASES.1) {
        let mut random = Random(case);
        let depth = random.below(5);
        let tree = condition(&mut random, depth);
        let mut text = String::new();
        write(&tree, 0, &mut random, &mut text);
        let selector = match Selector::parse(&text) {
            Ok(selector) => selector,
            Err(error) => {
                // Patterns are arbitrary, so some end in an escape character.
                assert!(error.to_string().contains("escape character"), "case {case}: {text}: {error}");
                refused += 1;
                continue;
            }
        };
        let negated = Selector::parse(&format!("NOT ({text})")).unwrap();
        for _ in 0..2 {
            let message = Sample(message(&mut random));
            let expected = as_truth(&evaluate(&tree, &message.0));
            counts[expected.map_or(2, usize::from)] += 1;
            let row = || format!("case {case}: {text} of {:?}", message.0);
            assert_eq!(selector.matches(&message), expected == Some(true), "{}", row());
            assert_eq!(negated.matches(&message), expected == Some(false), "{}", row());
        }
    }
    let all: u64 = counts.iter().sum();
    assert!(counts.iter().all(|count| *count > all / 20), "each truth comes often: {counts:?}");
    assert!(refused < all / 20, "{refused} of {all} are refused");
}

/// SplitMix64.
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

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

fn message(random: &mut Random) -> BTreeMap<&'static str, Plain> {
    let mut message = BTreeMap::new();
    for name in &NAMES[..NAMES.len() - 1] {
        let value = match random.below(9) {
            0 => continue,
            1 => Plain::Bool(random.chance(50)),
            2 | 3 => Plain::Int(random.of(&INTS).into()),
            4 => Plain::Float(if random.chance(10) { f64::NAN } else { random.of(&FLOATS) }),
            5 => Plain::Text(random.of(&TEXTS).into()),
            6 | 7 => Plain::Untyped(random.of(&TEXTS).into()),
            _ if random.chance(50) => Plain::Other,
            _ => Plain::Int(u64::MAX.into()),
        };
        message.insert(*name, value);
    }
    message
}

fn field(random: &mut Random) -> Tree {
    Tree::Field(random.below(NAMES.len()))
}

fn condition(random: &mut Random, depth: usize) -> Tree {
    if depth == 0 {
        return match random.below(6) {
            0 => Tree::Literal(Plain::Bool(random.chance(50))),
            _ => field(random),
        };
    }
    let below = depth - 1;
    match random.below(10) {
        0 => Tree::Not(Box::new(condition(random, below))),
        1 | 2 => {
            let operator = random.of(&["AND", "OR"]);
            Tree::Binary(Box::new(condition(random, below)), operator, Box::new(condition(random, below)))
        }
        3 | 4 => {
            let operator = random.of(&["=", "<>", "<", "<=", ">", ">="]);
            Tree::Binary(Box::new(number(random, below)), operator, Box::new(number(random, below)))
        }
        5 => {
            let operator = random.of(&["=", "<>"]);
            let literal = match random.below(3) {
                0 => condition(random, 0),
                _ => Tree::Literal(Plain::Text(random.of(&TEXTS).into())),
            };
            Tree::Binary(Box::new(field(random)), operator, Box::new(literal))
        }
        6 => {
            let (value, low, high) = (number(random, below), number(random, 0), number(random, below));
            Tree::Between(Box::new(value), Box::new(low), Box::new(high), random.chance(40))
        }
        7 => {
            let texts = (0..=random.below(3)).map(|_| random.of(&TEXTS)).collect();
            Tree::In(Box::new(field(random)), texts, random.chance(40))
        }
        8 => {
            let pattern = (0..random.below(6)).map(|_| random.of(&['a', 'b', '%', '_', '\\', 'ö', '1']));
            let pattern: String = pattern.collect();
            let escape = random.chance(30).then_some('\\');
            Tree::Like(Box::new(field(random)), pattern, escape, random.chance(40))
        }
        _ => Tree::IsNull(Box::new(field(random)), random.chance(50)),
    }
}

fn number(random: &mut Random, depth: usize) -> Tree {
    if depth == 0 {
        return match random.below(4) {
            0 => Tree::Literal(Plain::Int(random.of(&INTS).into())),
            1 => Tree::Literal(Plain::Float(random.of(&FLOATS))),
            _ => field(random),
        };
    }
    let below = depth - 1;
    match random.below(8) {
        0 => Tree::Negate(Box::new(number(random, below))),
        1 => Tree::Plus(Box::new(number(random, below))),
        2..=4 => {
            let operator = random.of(&["+", "-", "*", "/"]);
            Tree::Binary(Box::new(number(random, below)), operator, Box::new(number(random, below)))
        }
        _ => number(random, 0),
    }
}

/// The precedence of a tree's operator, as in SQL.
fn precedence(tree: &Tree) -> u8 {
    match tree {
        Tree::Binary(_, "OR", _) => 1,
        Tree::Binary(_, "AND", _) => 2,
        Tree::Not(_) => 3,
        Tree::Binary(_, "=" | "<>", _) | Tree::IsNull(..) => 4,
        Tree::Between(..) | Tree::In(..) | Tree::Like(..) | Tree::Binary(_, "<" | "<=" | ">" | ">=", _) => 5,
        Tree::Binary(_, "+" | "-", _) => 6,
        Tree::Binary(..) => 7,
        Tree::Negate(_) | Tree::Plus(_) => 8,
        Tree::Literal(Plain::Int(number)) if *number < 0 => 8,
        Tree::Literal(Plain::Float(number)) if number.is_sign_negative() => 8,
        Tree::Field(_) | Tree::Literal(_) => 9,
    }
}

/// Writes a tree, with parentheses where they are needed and sometimes where they are not.
fn write(tree: &Tree, least: u8, random: &mut Random, out: &mut String) {
    let own = precedence(tree);
    if own < least || random.chance(5) {
        out.push('(');
        write_bare(tree, random, out);
        out.push(')');
    } else {
        write_bare(tree, random, out);
    }
}

fn write_bare(tree: &Tree, random: &mut Random, out: &mut String) {
    let own = precedence(tree);
    match tree {
        Tree::Field(name) if NAMES[*name].contains('-') => out.push_str(&format!("\"{}\"", NAMES[*name])),
        Tree::Field(name) => out.push_str(NAMES[*name]),
        Tree::Literal(Plain::Bool(value)) => word(if *value { "TRUE" } else { "FALSE" }, random, out),
        Tree::Literal(Plain::Int(number)) => out.push_str(&number.to_string()),
        Tree::Literal(Plain::Float(number)) => out.push_str(&format!("{number:?}")),
        Tree::Literal(Plain::Text(text)) => quote(text, out),
        Tree::Literal(_) => panic!("it has no literal"),
        Tree::Not(inner) => {
            word("NOT", random, out);
            out.push(' ');
            write(inner, own, random, out);
        }
        Tree::Negate(inner) | Tree::Plus(inner) => {
            out.push(if matches!(tree, Tree::Negate(_)) { '-' } else { '+' });
            // A space, so that the sign is not read as part of a literal.
            out.push(' ');
            write(inner, if matches!(**inner, Tree::Literal(_)) { 10 } else { own }, random, out);
        }
        Tree::Binary(left, operator, right) => {
            write(left, own, random, out);
            blank(operator.starts_with(char::is_alphabetic), random, out);
            word(operator, random, out);
            blank(true, random, out);
            write(right, own + 1, random, out);
        }
        Tree::Between(value, low, high, is_not) => {
            write(value, own, random, out);
            test(*is_not, "BETWEEN", random, out);
            write(low, 6, random, out);
            out.push_str(" and ");
            write(high, 6, random, out);
        }
        Tree::In(value, texts, is_not) => {
            write(value, own, random, out);
            test(*is_not, "IN", random, out);
            out.push('(');
            for (index, text) in texts.iter().enumerate() {
                out.push_str(if index > 0 { " ," } else { "" });
                quote(text, out);
            }
            out.push(')');
        }
        Tree::Like(value, pattern, escape, is_not) => {
            write(value, own, random, out);
            test(*is_not, "LIKE", random, out);
            quote(pattern, out);
            if escape.is_some() {
                out.push_str(" escape '\\'");
            }
        }
        Tree::IsNull(value, is_not) => {
            write(value, own, random, out);
            out.push_str(if *is_not { " IS not NULL" } else { " is NULL" });
        }
    }
}

fn test(is_not: bool, name: &str, random: &mut Random, out: &mut String) {
    out.push_str(if is_not { " NOT\t" } else { " " });
    word(name, random, out);
    out.push(' ');
}

fn word(word: &str, random: &mut Random, out: &mut String) {
    out.push_str(&if random.chance(50) { word.to_lowercase() } else { word.to_owned() });
}

fn blank(is_needed: bool, random: &mut Random, out: &mut String) {
    if is_needed || random.chance(50) {
        out.push_str(random.of(&[" ", "\n", "  \t"]));
    }
}

fn quote(text: &str, out: &mut String) {
    out.push('\'');
    out.push_str(&text.replace('\'', "''"));
    out.push('\'');
}

fn evaluate(tree: &Tree, message: &BTreeMap<&'static str, Plain>) -> Plain {
    let value = |tree: &Tree| evaluate(tree, message);
    let turned =
        |truth: Option<bool>, is_not: bool| truth.map_or(Plain::Null, |truth| Plain::Bool(truth != is_not));
    match tree {
        Tree::Field(name) => message.get(NAMES[*name]).cloned().unwrap_or(Plain::Null),
        Tree::Literal(value) => value.clone(),
        Tree::Not(inner) => turned(as_truth(&value(inner)), true),
        Tree::Plus(inner) => as_number(&value(inner)).unwrap_or(Plain::Null),
        Tree::Negate(inner) => match as_number(&value(inner)) {
            Some(Plain::Int(number)) if number > i64::MAX.into() => Plain::Float(-(number as f64)),
            Some(Plain::Int(number)) => Plain::Int(wrap(-number)),
            Some(Plain::Float(number)) => Plain::Float(-number),
            _ => Plain::Null,
        },
        Tree::Binary(left, operator @ ("AND" | "OR"), right) => {
            let deciding = *operator == "OR";
            let truths = [as_truth(&value(left)), as_truth(&value(right))];
            if truths.contains(&Some(deciding)) {
                Plain::Bool(deciding)
            } else if truths.contains(&None) {
                Plain::Null
            } else {
                Plain::Bool(!deciding)
            }
        }
        Tree::Binary(left, operator @ ("+" | "-" | "*" | "/"), right) => {
            calculate(as_number(&value(left)), operator, as_number(&value(right)))
        }
        Tree::Binary(left, operator, right) => turned(compare(&value(left), operator, &value(right)), false),
        Tree::Between(inner, low, high, is_not) => {
            let inner = value(inner);
            let sides = [compare(&inner, ">=", &value(low)), compare(&inner, "<=", &value(high))];
            let truth = match sides {
                [Some(true), Some(true)] => Some(true),
                sides if sides.contains(&Some(false)) => Some(false),
                _ => None,
            };
            turned(truth, *is_not)
        }
        Tree::In(inner, texts, is_not) => match value(inner) {
            Plain::Null => Plain::Null,
            Plain::Text(text) | Plain::Untyped(text) => turned(Some(texts.contains(&text.as_str())), *is_not),
            _ => turned(Some(false), *is_not),
        },
        Tree::Like(inner, pattern, escape, is_not) => match value(inner) {
            Plain::Null => Plain::Null,
            Plain::Text(text) | Plain::Untyped(text) => {
                let (text, pattern): (Vec<_>, Vec<_>) = (text.chars().collect(), pattern.chars().collect());
                turned(Some(is_like(&text, &pattern, *escape)), *is_not)
            }
            _ => turned(Some(false), *is_not),
        },
        Tree::IsNull(inner, is_not) => Plain::Bool((value(inner) == Plain::Null) != *is_not),
    }
}

fn as_truth(value: &Plain) -> Option<bool> {
    match value {
        Plain::Bool(value) => Some(*value),
        Plain::Untyped(text) => text.to_lowercase().parse().ok(),
        _ => None,
    }
}

fn as_number(value: &Plain) -> Option<Plain> {
    match value {
        Plain::Int(_) | Plain::Float(_) => Some(value.clone()),
        Plain::Untyped(text) => {
            let exact = text.parse().ok().map(Plain::Int);
            exact.or_else(|| text.parse().ok().map(Plain::Float))
        }
        _ => None,
    }
}

fn wrap(number: i128) -> i128 {
    (number as i64).into()
}

fn calculate(left: Option<Plain>, operator: &str, right: Option<Plain>) -> Plain {
    let is_long = |number: i128| i64::try_from(number).is_ok();
    match (left, right) {
        (Some(Plain::Int(a)), Some(Plain::Int(b))) if is_long(a) && is_long(b) => match operator {
            "+" => Plain::Int(wrap(a + b)),
            "-" => Plain::Int(wrap(a - b)),
            "*" => Plain::Int(wrap(a * b)),
            _ if b == 0 => Plain::Null,
            _ => Plain::Int(wrap(a / b)),
        },
        (Some(a), Some(b)) => {
            let float = |value| match value {
                Plain::Int(number) => number as f64,
                Plain::Float(number) => number,
                _ => f64::NAN,
            };
            let (a, b) = (float(a), float(b));
            Plain::Float(match operator {
                "+" => a + b,
                "-" => a - b,
                "*" => a * b,
                _ => a / b,
            })
        }
        _ => Plain::Null,
    }
}

fn compare(left: &Plain, operator: &str, right: &Plain) -> Option<bool> {
    use Plain::{Bool, Text, Untyped};
    if *left == Plain::Null || *right == Plain::Null {
        return None;
    }
    let equality = |is_equal: bool| match operator {
        "=" => is_equal,
        "<>" => !is_equal,
        _ => false,
    };
    Some(match (left, right) {
        (Text(a) | Untyped(a), Text(b)) | (Text(a), Untyped(b)) => equality(a == b),
        (Untyped(a), Untyped(b)) if operator == "=" || operator == "<>" => equality(a == b),
        (Bool(_), Bool(_) | Untyped(_)) | (Untyped(_), Bool(_)) => match (as_truth(left), as_truth(right)) {
            (Some(a), Some(b)) => equality(a == b),
            _ => false,
        },
        _ => match (as_number(left), as_number(right)) {
            (Some(a), Some(b)) => {
                let order = order(&a, &b);
                match operator {
                    "=" => order == Some(Ordering::Equal),
                    "<>" => order != Some(Ordering::Equal),
                    "<" => order.is_some_and(Ordering::is_lt),
                    "<=" => order.is_some_and(Ordering::is_le),
                    ">" => order.is_some_and(Ordering::is_gt),
                    _ => order.is_some_and(Ordering::is_ge),
                }
            }
            _ => false,
        },
    })
}

/// Compares numbers by all their decimal digits.
fn order(a: &Plain, b: &Plain) -> Option<Ordering> {
    let digits = |value: &Plain| match value {
        Plain::Int(number) => (*number < 0, format!("{}.{:01100}", number.unsigned_abs(), 0)),
        Plain::Float(number) => (*number < 0.0, format!("{:.1100}", number.abs())),
        _ => panic!("it is a number"),
    };
    if [a, b].into_iter().any(|value| matches!(value, Plain::Float(number) if number.is_nan())) {
        return None;
    }
    if let (Plain::Float(a), Plain::Float(b)) = (a, b) {
        return a.partial_cmp(b);
    }
    let infinite = |value: &Plain| match value {
        Plain::Float(number) if number.is_infinite() => number.signum() as i8,
        _ => 0,
    };
    if infinite(a) != 0 || infinite(b) != 0 {
        return Some(infinite(a).cmp(&infinite(b)));
    }
    let ((a_negative, a), (b_negative, b)) = (digits(a), digits(b));
    let magnitude = a.len().cmp(&b.len()).then_with(|| a.cmp(&b));
    Some(match (a_negative, b_negative) {
        (false, true) => Ordering::Greater,
        (true, false) => Ordering::Less,
        (false, false) => magnitude,
        (true, true) => magnitude.reverse(),
    })
}

fn is_like(text: &[char], pattern: &[char], escape: Option<char>) -> bool {
    match pattern {
        [] => text.is_empty(),
        [mark, plain, rest @ ..] if Some(*mark) == escape => {
            text.first() == Some(plain) && is_like(&text[1..], rest, escape)
        }
        ['%', rest @ ..] => (0..=text.len()).any(|skip| is_like(&text[skip..], rest, escape)),
        ['_', rest @ ..] => !text.is_empty() && is_like(&text[1..], rest, escape),
        [plain, rest @ ..] => text.first() == Some(plain) && is_like(&text[1..], rest, escape),
    }
}
