//! Configurations of nats-server: how they are read, and the definitions that they become.

use std::path::Path;

use anyhow::anyhow;
use imori::for_tests::{Converted, Item, NatsSources, NatsValue, definitions, read_from, scalar};
use proptest::prelude::*;
use serde_json::json;

fn parse(text: &str) -> anyhow::Result<Item> {
    let file = |path: &Path| match path.to_str() {
        Some("nats.conf") => Ok(text.to_owned()),
        Some("more.conf") => Ok(String::from("included: 1\nalso { more: yes }\n")),
        Some("loop.conf") => Ok(String::from("include loop.conf")),
        _ => Err(anyhow!("`{}` cannot be read", path.display())),
    };
    let variable = |name: &str| match name {
        "PORT" => Some(String::from("4333")),
        "SECRET" => Some(String::from("\"12 34\"")),
        _ => None,
    };
    read_from(Path::new("nats.conf"), &NatsSources { file: &file, variable: &variable })
}

#[test]
fn words_are_read_as_nats_server_reads_them() {
    let text = |text: &str| NatsValue::Text(String::from(text));
    for (word, expected) in [
        ("true", NatsValue::Truth(true)),
        ("OFF", NatsValue::Truth(false)),
        ("4222", NatsValue::Whole(4222)),
        ("-1", NatsValue::Whole(-1)),
        ("1k", NatsValue::Whole(1000)),
        ("64KB", NatsValue::Whole(65_536)),
        ("8GiB", NatsValue::Whole(8 << 30)),
        ("2.5", NatsValue::Fraction(2.5)),
        ("10s", text("10s")),
        ("127.0.0.1", text("127.0.0.1")),
        ("-", text("-")),
        ("k", text("k")),
        ("99999999999999999999", text("99999999999999999999")),
        ("9223372036854775807k", text("9223372036854775807k")),
        ("", text("")),
    ] {
        assert_eq!(scalar(word), expected, "{word}");
    }
}

/// The value as JSON, without places.
fn json(item: &Item) -> serde_json::Value {
    match &item.value {
        NatsValue::Text(text) => text.as_str().into(),
        NatsValue::Whole(number) => (*number).into(),
        NatsValue::Fraction(number) => (*number).into(),
        NatsValue::Truth(truth) => (*truth).into(),
        NatsValue::List(items) => items.iter().map(json).collect(),
        NatsValue::Map(entries) => entries.iter().map(|(key, item)| (key.clone(), json(item))).collect(),
    }
}

#[test]
fn of_keys_that_differ_in_case_alone_the_last_counts() {
    let item = parse("Port: 1\nport: 2\nPORT: 3\nother: 4").unwrap();
    let keys = item.keys().unwrap();
    let read: Vec<_> = keys.iter().map(|(key, item)| (key.as_str(), json(item))).collect();
    assert_eq!(read, [("port", 3.into()), ("other", 4.into())]);
}

#[test]
fn the_syntax_is_that_of_nats_server() {
    for (text, expected) in [
        ("", r#"{}"#),
        ("{}", r#"{}"#),
        ("a=1\nb: 2; c 3, d{e:[1,2]}", r#"{"a":1,"b":2,"c":3,"d":{"e":[1,2]}}"#),
        ("# no\n// no\na: b # no\nc: x//y", r#"{"a":"b","c":"x//y"}"#),
        (r#"{"a": "x\ty\x41", 'b': 'c\d'}"#, r#"{"a":"x\tyA","b":"c\\d"}"#),
        ("l: [\n a\n \"b c\", # no\n {k: v}\n [1 2]\n]", r#"{"l":["a","b c",{"k":"v"},[1,2]]}"#),
        ("a: (\n  x { y\n  z\n)\nb: 1", r#"{"a":"  x { y\n  z","b":1}"#),
        ("T: 5\nm { n: $T }\np: $PORT\ns: $SECRET", r#"{"T":5,"m":{"n":5},"p":4333,"s":"12 34"}"#),
        ("T: 1\nm { T: 2\n n: $T }\no: $T", r#"{"T":1,"m":{"T":2,"n":2},"o":1}"#),
        ("pass: $2a$11$abc.def", r#"{"pass":"$2a$11$abc.def"}"#),
        (
            "include more.conf\nx { include './more.conf' }",
            r#"{"included":1,"also":{"more":true},"x":{"included":1,"also":{"more":true}}}"#,
        ),
    ] {
        let expected: serde_json::Value = serde_json::from_str(expected).unwrap();
        let read = parse(text);
        // For a file system `./more.conf` is `more.conf`.
        let read = match text.contains("./more") {
            true => parse(&text.replace("./more", "more")),
            false => read,
        };
        assert_eq!(json(&read.unwrap()), expected, "{text}");
    }
}

#[test]
fn a_fault_is_told_by_line() {
    for (text, told) in [
        ("a: 1\nb: \"x", "nats.conf:2: a text is not closed"),
        ("a {\n", "nats.conf:1: a map is not closed"),
        ("a: [1\n", "nats.conf:1: a list is not closed"),
        ("a:\n\n", "nats.conf:3: a value is missing"),
        ("\n: 1", "nats.conf:2: a key is missing"),
        ("a: $NOWHERE", "nats.conf:1: variable `NOWHERE` is neither"),
        ("a: \"\\q\"", "nats.conf:1: an escape is none of"),
        ("a: (\nx", "nats.conf:1: a block is not closed"),
        ("{a: 1} b", "nats.conf:1: something stands behind"),
        ("include none.conf", "`none.conf` cannot be read"),
        ("include loop.conf", "loop.conf:1: maps and lists are nested more than `32` deep"),
    ] {
        let error = parse(text).unwrap_err().to_string();
        assert!(error.contains(told), "{text}: {error}");
    }
}

/// SECURITY LIM-09, WEB-08.
#[test]
fn depth_and_growth_are_bounded() {
    for text in ["a".to_owned() + &"{a".repeat(100_000), "a: ".to_owned() + &"[".repeat(100_000)] {
        assert!(parse(&text).unwrap_err().to_string().contains("nested more than `32` deep"));
    }
    let mut text = String::from("v0: [1,1,1,1,1,1,1,1,1,1]\n");
    for level in 1..9 {
        let before = format!("$v{} ", level - 1).repeat(10);
        text += &format!("v{level}: [{before}]\n");
    }
    let error = parse(&text).unwrap_err().to_string();
    assert!(error.contains("variables stand for too many values"), "{error}");
}

proptest! {
    // SECURITY LIM-11: parsing ends for any input.
    #[test]
    fn any_text_is_read_or_refused(text in "[a{}\\[\\]()\"'$#/=:;, \n\\\\1x井]{0,200}") {
        let _ = parse(&text);
    }
}

fn converted(text: &str) -> Converted {
    definitions(&parse(text).unwrap()).unwrap()
}

#[test]
fn users_and_accounts_become_users_and_vhosts() {
    let text = r#"
        port: 4222
        authorization {
          default_permissions { publish: "free.>" }
          users: [
            { user: ann, password: "$2a$11$x", permissions: {
                publish: { allow: ["orders.>"], deny: orders.secret },
                subscribe: "inbox.ann.> workers",
                allow_responses: { max: 5, expires: "1m30s" } } }
            { nkey: UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4 }
          ]
        }
        accounts: { SHOP: { users: [{user: bob, pass: 1234}], jetstream: enabled } }
        no_auth_user: bob
    "#;
    let Converted { document, left_out } = converted(text);
    let nkey = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4";
    assert_eq!(document["vhosts"], json!([{"name": "SHOP"}]));
    let (users, permissions) = (&document["users"], &document["permissions"]);
    let bcrypt =
        json!({"name": "ann", "tags": [], "password_hash": "$2a$11$x", "hashing_algorithm": "bcrypt"});
    assert_eq!((&users[0], &users[1]["nkeys"]), (&bcrypt, &json!([nkey])));
    assert_eq!((&users[2]["name"], &users[2]["vhost"]), (&json!("bob"), &json!("SHOP")));
    assert!(users[2]["password_hash"].as_str().is_some_and(|hash| !hash.contains("1234")));
    let topics = "^amq\\.topic$";
    assert_eq!(
        permissions[0],
        json!({
            "user": "ann", "vhost": "/", "configure": "^$", "write": topics, "read": topics,
            "subjects": {
                "publish": {"allow": ["orders.>"], "deny": ["orders.secret"]},
                "subscribe": {"allow": ["inbox.ann.> workers"]},
                "allow_responses": {"max": 5, "expires_ms": 90_000},
            },
        })
    );
    assert_eq!(permissions[1]["subjects"], json!({"publish": {"allow": ["free.>"]}, "subscribe": {}}));
    assert_eq!((&permissions[2]["vhost"], &permissions[2]["read"]), (&json!("SHOP"), &json!(".*")));
    let places = ["nats.conf:2: `port`", "nats.conf:13: `jetstream`", "nats.conf:14: `no_auth_user`"];
    assert_eq!(left_out, places);
}

#[test]
fn rights_are_never_wider_than_they_were() {
    let subjects = |text: &str| {
        let all = format!("authorization {{ users: [{{ user: a, permissions: {text} }}] }}");
        converted(&all).document["permissions"][0]["subjects"].clone()
    };
    for (text, expected) in [
        ("{}", json!({"publish": {}, "subscribe": {}})),
        ("{publish: []}", json!({"publish": {"allow": []}, "subscribe": {}})),
        ("{sub: {deny: [a, b]}}", json!({"publish": {}, "subscribe": {"deny": ["a", "b"]}})),
        ("{allow_responses: false}", json!({"publish": {}, "subscribe": {}})),
        (
            "{allow_responses: true}",
            json!({
                "publish": {"allow": []}, "subscribe": {},
                "allow_responses": {"max": 1, "expires_ms": 120_000},
            }),
        ),
        (
            "{allow_responses: {max: -1, ttl: \"-1s\"}, pub: x}",
            json!({
                "publish": {"allow": ["x"]}, "subscribe": {},
                "allow_responses": {"max": 0, "expires_ms": 0},
            }),
        ),
    ] {
        assert_eq!(subjects(text), expected, "{text}");
    }
}

#[test]
fn what_cannot_be_a_user_is_told_by_line() {
    for (text, told) in [
        ("authorization: yes", "nats.conf:1: it is not a map"),
        ("authorization { users: [\n{ pass: x }] }", "nats.conf:2: a user has neither `user` nor `nkey`"),
        ("authorization { users: [\nann] }", "nats.conf:2: a user is not a map"),
        ("accounts: [A]", "nats.conf:1: `accounts` is not a map"),
        ("authorization { user: a, pass: [1] }", "nats.conf:1: a password is not a text"),
        (
            "authorization { users: [{ user: a, permissions: { allow_responses: { ttl: soon } } }] }",
            "nats.conf:1: `soon` is no duration",
        ),
    ] {
        let error = definitions(&parse(text).unwrap()).unwrap_err().to_string();
        assert!(error.contains(told), "{text}: {error}");
    }
}
