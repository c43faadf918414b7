//! Paths to values of a payload.

use imori_automation::criteria::Path;
use imori_automation::limits::PATH_BYTES_MAX;

use crate::json;

fn found(path: &str, payload: &str) -> String {
    let payload = json(payload);
    match Path::parse(path, "trigger").unwrap().first(&payload) {
        Ok(Some(value)) => value.to_json(),
        Ok(None) => "nothing".to_owned(),
        Err(_) => "failure".to_owned(),
    }
}

#[test]
fn paths_find_what_jsonpath_rw_finds_first() {
    let payload =
        r#"{"a":{"b-c":[1,{"d":"xy"},null],"e f":{"g.h":2}},"n":null,"t":"text","l":[],"i":5,"f":1.5}"#;
    let rows = [
        ("trigger.i", "5"),
        ("$.trigger.i", "5"),
        ("trigger . i", "5"),
        ("trigger.a.b-c[1].d", "\"xy\""),
        ("trigger.a['b-c'][-2][\"d\"]", "\"xy\""),
        ("trigger.a['e f']['g.h']", "2"),
        ("trigger.a.'e f'.\"g.h\"", "2"),
        ("trigger.a[b-c].[0]", "1"),
        ("trigger.a.b-c[*]", "1"),
        ("trigger.a.b-c[1:2].d", "\"xy\""),
        ("trigger.a.b-c[-1:]", "null"),
        ("trigger.a.*", "[1,{\"d\":\"xy\"},null]"),
        ("trigger.a.b-c[*].d", "\"xy\""),
        ("trigger.n", "null"),
        ("trigger.n.x", "nothing"),
        ("trigger.t[1]", "\"e\""),
        ("trigger.t[*]", "\"text\""),
        ("trigger.i[1:]", "nothing"),
        ("trigger.l[0]", "nothing"),
        ("trigger.l[-1]", "failure"),
        ("trigger.a[0]", "failure"),
        ("trigger.a[9]", "nothing"),
        ("trigger.i[0]", "failure"),
        ("trigger.n[*]", "failure"),
        ("trigger.f[*]", "failure"),
        ("trigger.i[*]", "5"),
        ("trigger", payload),
    ];
    for (path, expected) in rows {
        assert_eq!(found(path, payload), expected, "{path}");
    }
}

#[test]
fn other_paths_are_refused_with_a_reason() {
    let rows = [
        ("", "ends where a name is expected"),
        ("trigger.", "ends where a name is expected"),
        ("trigger..x", "has `..`, which is not supported"),
        ("trigger.`parent`", "not supported"),
        ("trigger.a | trigger.b", "has `|`, which is not supported"),
        ("trigger where a", "`w` at column 9"),
        ("trigger[a,b]", "has `,`, which is not supported"),
        ("trigger.a b", "has `b` at column 11"),
        ("trigger.1", "has `1` at column 9"),
        ("trigger['a]", "has a quote that does not end"),
        ("trigger[99999999999999999999]", "is no position"),
        ("payload.x", "does not begin with `trigger`"),
        ("$", "ends where a name is expected"),
    ];
    for (path, part) in rows {
        let error = Path::parse(path, "trigger").unwrap_err();
        assert!(error.contains(part), "{path}: {error}");
    }
    assert!(Path::parse(&"x".repeat(PATH_BYTES_MAX + 1), "trigger").is_err());
}
