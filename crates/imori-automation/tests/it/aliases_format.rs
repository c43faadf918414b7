//! Formats of aliases: the parameters of commands.

use imori_automation::aliases::{AliasError, AliasFormat};
use imori_automation::limits::{ALIAS_COMMAND_BYTES_MAX, ALIAS_FORMAT_BYTES_MAX};
use imori_automation::value::{Map, Value};

use crate::json;

/// A format, a command, and its parameters as StackStorm's `action_alias_utils.py` reads them: `none` where the command
/// does not have the format, `no value` where it has none, and `wrong` where the format is wrong.
const ROWS: &[(&str, &str, &str)] = &[
    ("", "", "{}"),
    ("", "k=v", r#"{"k": "v"}"#),
    ("", "x k=v", "none"),
    ("run", "run", "{}"),
    ("run", "run k=v", r#"{"k": "v"}"#),
    (
        "run",
        r#"run k='a b' l="c d" m={"x": 1} n=''"#,
        r#"{"k": "a b", "l": "c d", "m": "{\"x\": 1}", "n": ""}"#,
    ),
    ("run {{a}}", "run x y", r#"{"a": "x y"}"#),
    ("run {{ a }} on {{ b }}", r#"run "x y" on z"#, r#"{"a": "x y", "b": "z"}"#),
    ("run {{a}} on {{b=here}}", "run x", "none"),
    ("run {{a}}( on {{b=here}})?", "run x", r#"{"a": "x", "b": "here"}"#),
    ("run {{a}}( on {{b=here}})?", "run x on y", r#"{"a": "x", "b": "y"}"#),
    ("run {{a}}( on {{b}})?", "run x", r#"{"a": "x", "b": null}"#),
    ("run {{a=1}}", "run", r#"{"a": "1"}"#),
    ("run {{a='q r'}}", "run", r#"{"a": "q r"}"#),
    (r#"run {{a=""}}"#, "run", r#"{"a": ""}"#),
    (r#"run {{a=""}}"#, "", "none"),
    ("{{a}}", "", r#"{"a": " "}"#),
    ("{{a=x}}", "", r#"{"a": "x"}"#),
    ("{{a=''}}", "", "no value"),
    ("run {{a}}", r#"run 'it' k=v k2="a b""#, r#"{"a": "it", "k": "v", "k2": "a b"}"#),
    ("run {{a}}", r#"run {"j": 1}"#, r#"{"a": "{\"j\": 1}"}"#),
    ("run {{a}}", r#"run {"j": {"k": 2}} k=v"#, r#"{"a": "{\"j\": {\"k\": 2}}", "k": "v"}"#),
    (r#"{{g={"k": 1}}}"#, "", r#"{"g": "{\"k\": 1}"}"#),
    (r#"{{g={"k": 1}}}"#, "foo end k3='c d'", r#"{"g": "foo end", "k3": "c d"}"#),
    ("(foo|bar) {{a}}", "bar x", r#"{"a": "x"}"#),
    ("^go {{a}}$", "go x", "none"),
    ("^go {{a}}", "go x k=v", "none"),
    ("go {{a}}$", "please go x", "none"),
    ("^a {{x}}|^b {{y}}", "b 1", "none"),
    ("a|^b {{x}}", "b 1", "none"),
    ("^a|b {{x}}", "b 1", r#"{"x": "1"}"#),
    (r#"(?:^|\s+)go (?P<n>\d+)"#, "go 5", r#"{"n": "5"}"#),
    ("go (?P<n>[A-Z][A-Z0-9]+-[0-9]+)", "go ABC-1 k=v", r#"{"n": "ABC-1", "k": "v"}"#),
    (r#"go (?P<n>[A-Z]+-[0-9]+)\s*$"#, "then go ABC-1", "none"),
    (
        "set {{k}} to {{v}} {{w=1}} {{x = two}}",
        "set a to 'b c' 'd e'",
        r#"{"k": "a", "v": "b c", "w": "d e", "x": "two"}"#,
    ),
    ("say {{t}}", r#"say it's "fine""#, r#"{"t": "it's \"fine"}"#),
    ("say {{t}}", r#"say "a" and "b""#, r#"{"t": "a\" and \"b"}"#),
    ("say {{t}}", "say\nx\ny", "none"),
    ("say {{t}}", "say x k=v k=w", r#"{"t": "x", "k": "w"}"#),
    ("say {{t}}", "say k=v", "none"),
    ("say {{t}}", "say k=v and k=v", r#"{"t": "and", "k": "v"}"#),
    ("open {{ color = {{ a.b }} }}", "open", r#"{"color": "{{ a.b }}"}"#),
    (
        "{{ p0='http' }} g {{ p1=p }} a {{ url }} {{ p2={'a':'b'} }} {{ p3={{ e.i }} }}",
        "g a http://x {{ e.id }} p4='t' p5={'a':'c'}",
        r#"{"p0": "http", "p1": "p", "url": "http://x", "p2": "{{ e.id }}", "p3": "{{ e.i }}", "p4": "t", "p5": "{'a':'c'}"}"#,
    ),
    ("rep {n} {{a}}", "rep {n} x", r#"{"a": "x"}"#),
    (r#"num \d{2,} {{a}}"#, "num 123 x", r#"{"a": "x"}"#),
    ("dot. {{a}}", "dotx y", r#"{"a": "y"}"#),
    ("über {{a}}", "über öl k=ß", r#"{"a": "öl", "k": "ß"}"#),
    ("a {{b-c}}", "a x", "wrong"),
    ("a {{b}} {{b}}", "a x y", "wrong"),
    ("a (", "a (", "wrong"),
    ("run", "run\n", "{}"),
    ("run {{a}}", "run  'x", r#"{"a": " 'x"}"#),
    ("run {{a}} {{b=2}}", "run x y z", r#"{"a": "x", "b": "y z"}"#),
    ("run {{ a }}", "RUN x", "none"),
    ("(?i)^run {{ a }}", "RUN x", "none"),
    ("run {{a}}", "run a = b", r#"{"a": "a = b"}"#),
    ("run {{a}}", "run x a=b", r#"{"a": "b"}"#),
    ("run {{a}}", "run x =b", "none"),
    ("f {{a}}", r#"f x k="" l=''"#, r#"{"a": "x", "k": "", "l": ""}"#),
    ("f {{a}}", r#"f x k="a b"#, r#"{"a": "x k=\"a b"}"#),
    ("f {{a=1}} {{b=2}} {{c=3}}", "f x", r#"{"a": "x", "b": "2", "c": "3"}"#),
    ("f {{a=1}}x", "f 9x", r#"{"a": "9"}"#),
    ("f ({{a}}|all)", "f all", r#"{"a": "all"}"#),
    ("[^x]+ {{a}}", "yy b", r#"{"a": "b"}"#),
    ("a$|b {{x}}", "zz a", "none"),
];

#[test]
fn commands_are_read_as_by_stackstorm() {
    for (format, command, expected) in ROWS {
        let found = AliasFormat::compile(format).and_then(|format| format.parameters(command));
        let found = match found {
            Ok(found) => Value::Map(found).to_json(),
            Err(AliasError::NoMatch(..)) => String::from("none"),
            Err(AliasError::NoValue) => String::from("no value"),
            Err(AliasError::Format(_)) => String::from("wrong"),
            Err(AliasError::TooMuch(reason)) => reason,
        };
        let same = match (Value::from_json(found.as_bytes()), Value::from_json(expected.as_bytes())) {
            (Ok(Value::Map(found)), Ok(Value::Map(expected))) => sorted(&found) == sorted(&expected),
            _ => found == *expected,
        };
        assert!(same, "{format:?} {command:?}: {found} instead of {expected}");
    }
}

fn sorted(map: &Map) -> Vec<(String, Value)> {
    let mut entries: Vec<_> = map.iter().map(|(name, value)| (name.to_owned(), value.clone())).collect();
    entries.sort_by(|(a, _), (b, _)| a.cmp(b));
    entries
}

/// The same for formats that are found several times in a command.
const MULTIPLE_ROWS: &[(&str, &str, &str)] = &[
    (r#"(?:^|\s)see (?P<k>[A-Z]+-\d+)(?=\s)|x$"#, "see A-1 see B-2 k=v", r#"[{"k": "v"}]"#),
    (r#"(?:^|\s+)(?P<k>A-\d+)(?:\s|$)|zz$"#, "A-1 and A-2", r#"[{"k": "A-1"}]"#),
    (r#"y$|(?P<k>[A-Z]+-\d+)|^z"#, "AB-1, CD-2!", r#"[{"k": "AB-1"}, {"k": "CD-2"}]"#),
    (r#"^\s*?[a-z]|$|(?P<k>\d)"#, "1 2", r#"[{"k": "1"}, {"k": "2"}, {"k": null}]"#),
];

#[test]
fn each_place_of_a_command_is_read() {
    for (format, command, expected) in MULTIPLE_ROWS {
        let found = AliasFormat::compile(format).unwrap().all_parameters(command).unwrap();
        let found = Value::List(found.into_iter().map(Value::Map).collect());
        assert_eq!(found, json(expected), "{format} {command}");
    }
}

#[test]
fn errors_are_in_stackstorms_words() {
    let error = AliasFormat::compile("run {{a}}").unwrap().parameters("walk").unwrap_err();
    assert_eq!(error.to_string(), "Command \"walk\" doesn't match format string \"run {{a}}\"");
    let error = AliasFormat::compile("run (").unwrap_err();
    assert_eq!(error.to_string(), "format `run (` is no regular expression");
}

#[test]
fn long_texts_and_many_steps_are_refused() {
    let long = "x".repeat(ALIAS_COMMAND_BYTES_MAX + 1);
    let format = AliasFormat::compile("run {{a}}").unwrap();
    assert!(matches!(format.parameters(&long), Err(AliasError::TooMuch(_))));
    let long = "x".repeat(ALIAS_FORMAT_BYTES_MAX + 1);
    assert!(matches!(AliasFormat::compile(&long), Err(AliasError::Format(_))));
    let format = AliasFormat::compile("(?P<a>(?:x+x+)+)(?!z)y").unwrap();
    let error = format.parameters(&"x".repeat(1_000)).unwrap_err();
    assert!(matches!(error, AliasError::TooMuch(_) | AliasError::NoMatch(..)), "{error}");
}
