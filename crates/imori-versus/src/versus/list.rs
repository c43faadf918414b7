//! Lists of scenarios: several named measurements that one comparison runs.
//!
//! A list is text. Each line has a name, a protocol, a scenario and its options. The protocol is `stomp`,
//! `nats`, `amqp`, `amqp10`, or `own` if each peer uses its own. Lines that begin with `#` are comments.

use std::fs;

use anyhow::{Context, Result, bail, ensure};
use imori_bench::url::Scheme;

/// The built-in lists: name and text.
const KNOWN: [(&str, &str); 5] = [
    ("brokers", include_str!("../../lists/brokers.txt")),
    ("amqp", include_str!("../../lists/amqp.txt")),
    ("amqp10", include_str!("../../lists/amqp10.txt")),
    ("builds", include_str!("../../lists/builds.txt")),
    ("brokerless", include_str!("../../lists/brokerless.txt")),
];

/// The most lines of a list; each one takes seconds for each peer and turn.
const LINES_MAX: usize = 1_000;

/// The protocol of a line in which each peer uses its own.
const OWN: &str = "own";

/// One measurement of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    /// Name of the measurement in tables.
    pub(crate) name: String,
    /// The protocol for all peers; `None` if each uses its own.
    pub(crate) protocol: Option<Scheme>,
    /// The scenario and its options.
    pub(crate) arguments: Vec<String>,
}

/// Names of the built-in lists, for error messages.
pub(crate) fn names() -> String {
    let quoted: Vec<String> = KNOWN.iter().map(|(name, _)| format!("`{name}`")).collect();
    quoted.join(", ")
}

/// Reads the built-in list or file with this name; `None` if the word is neither.
pub(crate) fn read(word: &str) -> Result<Option<Vec<Line>>> {
    if let Some((_, text)) = KNOWN.iter().find(|(name, _)| *name == word) {
        return parse(text).with_context(|| format!("in list `{word}`")).map(Some);
    }
    let is_file = word.contains('/') || word.ends_with(".txt");
    if !is_file {
        return Ok(None);
    }
    let text = fs::read_to_string(word)
        .with_context(|| format!("list `{word}` cannot be read; name a file, or {}", names()))?;
    parse(&text).with_context(|| format!("in list `{word}`")).map(Some)
}

fn parse(text: &str) -> Result<Vec<Line>> {
    let mut lines: Vec<Line> = Vec::new();
    for (number, text) in (1..).zip(text.lines()) {
        let words: Vec<&str> = text.split_whitespace().collect();
        let (name, protocol, arguments) = match words.as_slice() {
            [] => continue,
            [first, ..] if first.starts_with('#') => continue,
            [name, protocol, arguments @ ..] if !arguments.is_empty() => (*name, *protocol, arguments),
            _ => bail!("line {number} is too short; write `name protocol scenario --options`"),
        };
        let protocol = match protocol {
            OWN => None,
            "stomp" => Some(Scheme::Stomp),
            "nats" => Some(Scheme::Nats),
            "amqp" => Some(Scheme::Amqp),
            "amqp10" => Some(Scheme::Amqp10),
            _ => bail!(
                "line {number} has protocol `{protocol}`; use `stomp`, `nats`, `amqp`, `amqp10` or `{OWN}`"
            ),
        };
        ensure!(
            lines.iter().all(|line| line.name != name),
            "line {number} has the name `{name}` again; give it another"
        );
        let arguments = arguments.iter().map(|&word| word.to_owned()).collect();
        lines.push(Line { name: name.to_owned(), protocol, arguments });
        ensure!(lines.len() <= LINES_MAX, "a list has at most {LINES_MAX} lines; split it");
    }
    ensure!(!lines.is_empty(), "there is no line; write `name protocol scenario --options`");
    Ok(lines)
}

/// Keeps the lines whose names begin with one of `beginnings`; all lines if that is empty.
pub(crate) fn only(lines: Vec<Line>, beginnings: &[String]) -> Result<Vec<Line>> {
    for beginning in beginnings {
        let is_known = lines.iter().any(|line| line.name.starts_with(beginning));
        let all: Vec<&str> = lines.iter().map(|line| line.name.as_str()).collect();
        ensure!(is_known, "`--only {beginning}` begins no name of the list; it has {}", all.join(", "));
    }
    let is_kept = |line: &Line| beginnings.iter().any(|beginning| line.name.starts_with(beginning));
    Ok(lines.into_iter().filter(|line| beginnings.is_empty() || is_kept(line)).collect())
}

/// Replaces the values of options in every line that has them.
pub(crate) fn replace(lines: &mut [Line], options: &[String]) -> Result<()> {
    let mut words = options.iter();
    while let Some(word) = words.next() {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, value.to_owned()),
            None => {
                let value =
                    words.next().with_context(|| format!("`{word}` needs a value; write it behind it"))?;
                (word.as_str(), value.clone())
            }
        };
        let mut has_it = false;
        for line in &mut *lines {
            has_it |= replace_value(&mut line.arguments, name, &value);
        }
        ensure!(has_it, "no line of the list has `{name}`, so there is nothing to replace; leave it out");
    }
    Ok(())
}

/// Replaces the value of an option; returns whether the words contain it.
pub(crate) fn replace_value(words: &mut [String], name: &str, value: &str) -> bool {
    let Some(at) = words.iter().position(|word| word == name) else { return false };
    let Some(old) = words.get_mut(at + 1) else { return false };
    value.clone_into(old);
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::versus::arguments::check;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn every_known_list_can_be_run() {
        for (name, _) in KNOWN {
            for line in read(name).unwrap().unwrap() {
                let (scenario, arguments) = line.arguments.split_first().unwrap();
                check(scenario, arguments).unwrap_or_else(|error| panic!("{name}, {}: {error}", line.name));
            }
        }
    }

    #[test]
    fn a_line_is_name_protocol_scenario_and_options() {
        let lines = parse("# comment\n\n one  nats rpc --depth 8\ntwo own idle").unwrap();
        let one =
            Line { name: "one".to_owned(), protocol: Some(Scheme::Nats), arguments: words("rpc --depth 8") };
        let two = Line { name: "two".to_owned(), protocol: None, arguments: words("idle") };
        assert_eq!(lines, [one, two]);
    }

    #[test]
    fn what_is_no_list_is_refused_with_its_line() {
        for (text, part) in [
            ("", "there is no line"),
            ("# nothing", "there is no line"),
            ("one nats", "line 1 is too short"),
            ("one mqtt rpc", "line 1 has protocol `mqtt`"),
            ("one own rpc\n\none own idle", "line 3 has the name `one` again"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
        assert_eq!(read("chaos").unwrap(), None);
        let error = format!("{:#}", read("./no/list.txt").unwrap_err());
        assert!(error.contains("cannot be read; name a file, or `brokers`"), "{error}");
    }

    #[test]
    fn lines_are_chosen_by_the_beginning_of_their_names() {
        let lines = parse("a-1 own rpc\na-2 own rpc\nb own rpc").unwrap();
        for (chosen, expected) in [("", "a-1 a-2 b"), ("a", "a-1 a-2"), ("b a-2", "a-2 b")] {
            let kept = only(lines.clone(), &words(chosen)).unwrap();
            let names: Vec<String> = kept.into_iter().map(|line| line.name).collect();
            assert_eq!(names.join(" "), expected, "{chosen}");
        }
        let error = only(lines, &words("c")).unwrap_err().to_string();
        assert!(error.contains("it has a-1, a-2, b"), "{error}");
    }

    #[test]
    fn options_replace_those_of_the_lines_that_have_them() {
        let mut lines = parse("a own rpc --time 4s --depth 8\nb own idle --hold 5s").unwrap();
        replace(&mut lines, &words("--time 1s --hold=2s")).unwrap();
        assert_eq!(lines[0].arguments.join(" "), "rpc --time 1s --depth 8");
        assert_eq!(lines[1].arguments.join(" "), "idle --hold 2s");
        for (options, part) in [("--size 9", "no line of the list has `--size`"), ("--time", "needs a value")]
        {
            let error = replace(&mut lines, &words(options)).unwrap_err().to_string();
            assert!(error.contains(part), "{options}: {error}");
        }
    }
}
