//! Documents of YAML.

use imori_automation::limits::{YAML_BYTES_MAX, YAML_DEPTH_MAX, YAML_VALUES_MAX};
use imori_automation::yaml::{load, load_with_lines};

use crate::json;

fn check(text: &str, expected: &str) {
    let value = load(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!(value, json(expected), "{text}");
}

fn refused(text: &str) -> String {
    load(text).expect_err(text).to_string()
}

#[test]
fn documents_are_read_as_by_pyyaml() {
    let rows = [
        ("", "null"),
        ("---\n", "null"),
        ("a: 1\nb: [x, 2.0, ~]\n", r#"{"a":1,"b":["x",2.0,null]}"#),
        ("a: |\n  one\n  two\n", r#"{"a":"one\ntwo\n"}"#),
        ("a: >-\n  one\n  two\n", r#"{"a":"one two"}"#),
        ("a: 'it''s'\nb: \"\\u00e4\\n\"", r#"{"a":"it's","b":"ä\n"}"#),
        ("1: a\ntrue: b\n~: c\n1.5: d", r#"{"1":"a","true":"b","null":"c","1.5":"d"}"#),
        ("on: push", r#"{"true":"push"}"#),
        ("a: '123'\nb: ! 12\nc: !!str 12", r#"{"a":"123","b":12,"c":"12"}"#),
        ("a: &x [1]\nb: *x", r#"{"a":[1],"b":[1]}"#),
        ("a: {<<: {b: 1, c: 1}, b: 2}", r#"{"a":{"b":2,"c":1}}"#),
        ("a: {<<: [{b: 1}, {b: 2, c: 3}]}", r#"{"a":{"b":1,"c":3}}"#),
        ("x: {b: 1, <<: {b: 2, c: 1}, <<: {c: 5, d: 1}}", r#"{"x":{"b":1,"c":5,"d":1}}"#),
        ("a: !\nb: !!null x", r#"{"a":"","b":null}"#),
        ("a:\n  b: 'x\ny\n\n z'\n  c: \"1\\\n2\"", r#"{"a":{"b":"x y\nz","c":"12"}}"#),
        ("'<<': 1", r#"{"<<":1}"#),
        ("\u{feff}a: 1", r#"{"a":1}"#),
    ];
    rows.into_iter().for_each(|(text, json)| check(text, json));
}

#[test]
fn merged_keys_come_first() {
    assert_eq!(load("{b: 1, <<: {c: 2, d: 3}}").unwrap().to_json(), r#"{"c":2,"d":3,"b":1}"#);
    assert_eq!(load("{<<: [{aa: 1}, {bb: 2}]}").unwrap().to_json(), r#"{"bb":2,"aa":1}"#);
}

#[test]
fn errors_tell_the_place() {
    let rows = [
        ("a: 1\nb: 2\na: 3", "line 3, column 1: key `a` stands on line 1 already; remove one of the two"),
        ("1: a\n'1': b", "line 2, column 1: key `1` stands on line 1 already; remove one of the two"),
        (
            "a: !!python/object:os.system x",
            "line 1, column 4: tag `!!python/object:os.system` is not supported",
        ),
        ("a: !vault x", "tag `!vault` is not supported; write the value without a tag"),
        ("a: !!set {b, c}", "tag `!!set` is not supported"),
        ("[1]: 2", "line 1, column 1: the key is a list or an object"),
        ("a: &x [*x]", "line 1, column 8: the alias stands within its own anchor"),
        ("a: 1\n---\nb: 2", "a second document begins here"),
        ("-\nK.", "line 2, column 3: "),
        ("a: 1\n<<: 2", "line 2, column 5: `<<` merges objects"),
        ("a: [1, 2", "line "),
        ("a: *x", "line 1, column 4: "),
        ("a: 2001-02-30", "line 1, column 4: time `2001-02-30` does not exist"),
    ];
    for (text, begin) in rows {
        let error = refused(text);
        assert!(error.contains(begin), "{text}: {error}");
    }
}

#[test]
fn aliases_count_each_time_they_are_used() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..10 {
        let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
        bomb.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
    }
    assert!(refused(&bomb).contains("with those of aliases"), "{}", refused(&bomb));
    let long = format!("a: &x {}\nb: [{}]", "y".repeat(1 << 20), vec!["*x"; 20].join(", "));
    assert!(refused(&long).contains("bytes with those of aliases"));
}

#[test]
fn size_and_depth_are_bounded() {
    assert!(refused(&"[".repeat(YAML_DEPTH_MAX + 1)).contains("nested more than"));
    assert!(load(&"[".repeat(100_000)).is_err());
    assert!(refused(&"- ".repeat(100_000)).contains("nested more than"));
    assert!(refused(&" ".repeat(YAML_BYTES_MAX + 1)).contains("longer than"));
    assert!(refused(&"- 1\n".repeat(YAML_VALUES_MAX)).contains("values"));
}

#[test]
fn values_know_their_lines() {
    let text = "name: x\ncriteria:\n  trigger.x:\n    type: equals\nlist:\n  - a\n  - b: 1\n";
    let (_, lines) = load_with_lines(text).unwrap();
    let line = |path: &[&str]| lines.find(path).map(|position| position.line);
    assert_eq!(line(&[]), Some(1));
    assert_eq!(line(&["criteria", "trigger.x"]), Some(3));
    assert_eq!(line(&["criteria", "trigger.x", "type"]), Some(4));
    assert_eq!(line(&["list", "1", "b"]), Some(7));
    assert_eq!(line(&["list", "2"]), None);
    assert_eq!(lines.nearest(&["criteria", "trigger.x", "pattern"]).line, 3);
}
