//! Aliases: the parameters of a command, and what the chat is told.

use imori_automation::value::Value;
use imori_engine::for_tests::{RegisteredAlias, acknowledge, add_immutable};

fn registered(text: &str) -> RegisteredAlias {
    let document = Value::from_json(text.as_bytes()).unwrap().as_map().unwrap().clone();
    RegisteredAlias::stored(document).unwrap()
}

#[test]
fn a_command_may_not_set_the_parameters_of_the_alias() {
    let map = |text: &str| Value::from_json(text.as_bytes()).unwrap().as_map().unwrap().clone();
    let mut parameters = map(r#"{"a": "1"}"#);
    add_immutable(&mut parameters, &map(r#"{"b": 2}"#)).unwrap();
    assert_eq!(parameters, map(r#"{"a": "1", "b": 2}"#));
    let refused = add_immutable(&mut parameters, &map(r#"{"a": 1, "b": 2}"#)).unwrap_err();
    assert_eq!(refused.to_string(), "Immutable arguments cannot be overriden: a,b");
}

#[test]
fn the_chat_is_told_what_the_alias_says() {
    for (ack, expected) in [
        (r#"{"format": "run {{ execution.id }} of {{ actionalias.ref }}"}"#, r#"["run 7 of p.a", null]"#),
        (r#"{"extra": {"color": "{{ execution.id }}", "n": 1}}"#, r#"[null, {"color": "7", "n": 1}]"#),
        (
            r#"{"format": "{{ nothing.id }}"}"#,
            r#"["Cannot render \"format\" in field \"ack\" for alias. 'nothing' is undefined", null]"#,
        ),
        ("null", "[null, null]"),
    ] {
        let alias = registered(&format!(r#"{{"ack": {ack}}}"#));
        let text = r#"{"execution": {"id": "7"}, "actionalias": {"ref": "p.a"}}"#;
        let mut result = Value::from_json(text.as_bytes()).unwrap().as_map().unwrap().clone();
        acknowledge(&alias, &mut result);
        let told = ["message", "extra"].map(|key| result.get(key).cloned().unwrap_or_default());
        assert_eq!(Value::List(told.to_vec()), Value::from_json(expected.as_bytes()).unwrap(), "{ack}");
    }
}
