//! Configuration of packs: layers, defaults, templates and secrets.

use std::fs;

use imori_automation::value::Value;
use imori_engine::packs::configuration::{Configuration, Template};
use imori_engine::packs::document::Severity;

use crate::packs::surfaces;

/// The configuration of the sample pack with this file, and variables.
fn configuration(text: &str, variables: &[(&str, &str)]) -> Configuration {
    let folder = tempfile::tempdir().unwrap();
    if !text.is_empty() {
        fs::write(folder.path().join("surfaces.yaml"), text).unwrap();
    }
    let variables: Vec<_> =
        variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Configuration::read(&surfaces(), folder.path(), &variables)
}

fn json(configuration: &Configuration) -> String {
    Value::Map(configuration.values.clone()).to_json()
}

#[test]
fn defaults_are_set_also_inside_of_objects_and_lists() {
    // The values that StackStorm's loader makes of them.
    let rows = [
        (
            "address: a",
            r#"{"address":"a","port":443,"retries":{"count":2,"wait":0.5},"accounts":[],"regions":{}}"#,
        ),
        (
            "address: a\nretries: {count: 5}\naccounts: [{name: x}, {name: y, is_admin: true}]",
            r#"{"address":"a","retries":{"count":5,"wait":0.5},"accounts":[{"name":"x","is_admin":false},{"name":"y","is_admin":true}],"port":443,"regions":{}}"#,
        ),
        (
            "address: a\nregions: {eu-1: {}, us-1: {}}",
            r#"{"address":"a","regions":{"eu-1":{"is_near":true},"us-1":{"is_near":false}},"port":443,"retries":{"count":2,"wait":0.5},"accounts":[]}"#,
        ),
    ];
    for (text, expected) in rows {
        let configuration = configuration(text, &[]);
        assert_eq!(configuration.problems, [], "{text}");
        assert_eq!(json(&configuration), expected);
    }
}

#[test]
fn wrong_value_is_told_with_its_line() {
    let rows = [
        (
            "address: a\nport: many",
            "surfaces.yaml:2: key `port`: 'many' is not of type 'integer'",
            Severity::Error,
        ),
        ("address: a\nretries:\n  count: 1\n  cout: 2", "surfaces.yaml:2: key `retries`: ", Severity::Error),
        (
            "address: a\naccounts:\n  - is_admin: true",
            "surfaces.yaml:3: key `accounts.0.name`: 'name' is a required property",
            Severity::Error,
        ),
        ("port: 1", "surfaces.yaml:1: ", Severity::Error),
        ("", "surfaces.yaml: ", Severity::Error),
        (
            "address: a\nadress: b",
            "surfaces.yaml:2: key `adress` is unknown; use one of `address`",
            Severity::Warning,
        ),
        (
            "address: a\ntoken: '{{ st2kv.system.t | decrypt_kv }}'",
            "surfaces.yaml:2: key `token` is secret",
            Severity::Error,
        ),
        ("- address", "surfaces.yaml:1: is no object", Severity::Error),
        ("address: [", "surfaces.yaml:", Severity::Error),
    ];
    for (text, expected, severity) in rows {
        let told = configuration(text, &[]).problems;
        let is_told = told
            .iter()
            .any(|problem| problem.to_string().starts_with(expected) && problem.severity == severity);
        assert!(is_told, "{expected}: {told:?}");
    }
    // What is wrong with one key hides nothing about another, and a secret is not shown.
    let told = configuration("address: 1\ntoken: [s3cret]\nport: many", &[]).problems;
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(!format!("{told:?}").contains("s3cret"));
    let secret = "surfaces.yaml:2: key `token`: the value is wrong; it is secret and not shown";
    assert!(told.iter().any(|problem| problem.to_string() == secret), "{told:?}");
}

#[test]
fn variable_counts_more_than_a_file() {
    let variables = [
        ("IMORI_CONFIG_SURFACES__ADDRESS", "b"),
        ("IMORI_CONFIG_SURFACES__PORT", "8443"),
        ("IMORI_CONFIG_SURFACES__RETRIES__WAIT", "2.5"),
        ("IMORI_CONFIG_SURFACES__ACCOUNTS", r#"[{"name": "x"}]"#),
        ("IMORI_CONFIG_OTHER__ADDRESS", "c"),
    ];
    let configuration = configuration("address: a\nport: 1", &variables);
    assert_eq!(configuration.problems, []);
    let expected = r#"{"address":"b","port":8443,"retries":{"wait":2.5,"count":2},"accounts":[{"name":"x","is_admin":false}],"regions":{}}"#;
    assert_eq!(json(&configuration), expected);
}

#[test]
fn file_in_the_pack_counts_least() {
    let (root, configurations) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(root.path().join("config.yaml"), "address: old\nport: 1\nextra: kept\n").unwrap();
    fs::write(configurations.path().join("surfaces.yaml"), "address: new\n").unwrap();
    let mut pack = surfaces();
    pack.folder = root.path().to_owned();
    let configuration = Configuration::read(&pack, configurations.path(), &[]);
    let value = |key: &str| configuration.values.get(key).map(Value::to_json);
    assert_eq!(value("address").as_deref(), Some("\"new\""));
    assert_eq!(value("port").as_deref(), Some("443"));
    assert_eq!(value("extra").as_deref(), Some("\"kept\""));
    assert_eq!(configuration.problems[0].severity, Severity::Warning);
    assert!(configuration.problems[0].to_string().starts_with("config.yaml:1: "));
}

#[test]
fn template_is_resolved_to_the_type_of_the_schema() {
    let text = "address: '{{ st2kv.system.address }}'\ntoken: '{{ st2kv.user.token }}'\nport: '{{ st2kv.system.port }}'\n\
                accounts:\n  - name: '{{ st2kv.system.name }}'\n    is_admin: '{{ st2kv.system.admin }}'\n    password: '{{ st2kv.system.pw }}'\n";
    let configuration = configuration(text, &[]);
    assert_eq!(configuration.problems, []);
    let mut asked = Vec::new();
    let resolved = configuration.resolved(&mut |Template { text, key, is_secret }| {
        asked.push((key.to_owned(), is_secret));
        Ok(Value::from(match text {
            "{{ st2kv.system.port }}" => "8080",
            "{{ st2kv.system.admin }}" => "True",
            "{{ st2kv.system.pw }}" => "",
            _ => "text",
        }))
    });
    let expected = r#"{"address":"text","token":"text","port":8080,"accounts":[{"name":"text","is_admin":true,"password":null}],"retries":{"count":2,"wait":0.5},"regions":{}}"#;
    assert_eq!(Value::Map(resolved.unwrap()).to_json(), expected);
    let secret: Vec<_> =
        asked.iter().filter(|(_, is_secret)| *is_secret).map(|(key, _)| key.as_str()).collect();
    assert_eq!(secret, ["token", "accounts.0.password"]);
    let wrong = configuration.resolved(&mut |template| match template.key {
        "address" => Err("`st2kv.system.address` is not there".to_owned()),
        _ => Ok(Value::from("text")),
    });
    let told: Vec<_> = wrong.unwrap_err().iter().map(ToString::to_string).collect();
    let expected = [
        "key `address`: `st2kv.system.address` is not there",
        "key `port`: the value is no `integer`; set one that is",
        "key `accounts.0.is_admin`: the value is no `boolean`; set one that is",
    ];
    assert_eq!(told, expected);
}

#[test]
fn secret_is_masked() {
    let configuration = configuration("address: a\ntoken: t\naccounts: [{name: x, password: p}]", &[]);
    let masked = Value::Map(configuration.masked()).to_json();
    assert!(
        masked.contains(r#""token":"********""#) && masked.contains(r#""password":"********""#),
        "{masked}"
    );
    assert!(masked.contains(r#""name":"x""#));
}
