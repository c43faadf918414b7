//! Policies of actions as they are registered.

use std::sync::Arc;

use imori_automation::value::Value;
use imori_engine::for_tests::{ActionPolicies, RegisteredPolicy};

fn read(text: &str) -> Result<RegisteredPolicy, String> {
    RegisteredPolicy::read(Value::from_json(text.as_bytes()).unwrap().as_map().unwrap().clone())
}

#[test]
fn wrong_policies_are_refused() {
    for (text, reason) in [
        (r#"{"name": "n"}"#, "key `resource_ref` is missing"),
        (r#"{"name": "n", "resource_ref": "a.b", "policy_type": "x"}"#, "policy type `x` is unknown"),
        (
            r#"{"name": "n", "resource_ref": "a.b", "policy_type": "action.retry", "parameters": {"retry_on": "x"}}"#,
            "`parameters.retry_on`",
        ),
        (
            r#"{"name": "n", "resource_ref": "a.b", "policy_type": "action.concurrency", "parameters": {"threshold": -1}}"#,
            "`threshold` is -1; use a whole number",
        ),
        (
            r#"{"name": "n o", "resource_ref": "a.b", "policy_type": "action.concurrency", "parameters": {"threshold": 1}}"#,
            "`default.n o` has a slash or a space",
        ),
    ] {
        let refused = read(text).unwrap_err();
        assert!(refused.contains(reason), "{text}: {refused}");
    }
}

#[test]
fn policies_of_an_action_are_found_while_they_are_enabled() {
    let limit = |name: &str, enabled: bool| {
        let text = format!(
            r#"{{"name": "{name}", "resource_ref": "a.b", "policy_type": "action.concurrency",
            "enabled": {enabled}, "parameters": {{"threshold": 1}}}}"#
        );
        Arc::new(read(&text).unwrap())
    };
    let retry = r#"{"name": "again", "pack": "p", "resource_ref": "a.b", "policy_type": "action.retry",
        "parameters": {"retry_on": "failure"}}"#;
    let retry = Arc::new(read(retry).unwrap());
    assert!(limit("one", true).collides_with(&limit("two", false)));
    assert!(!limit("one", true).collides_with(&retry));
    let found = ActionPolicies::of([limit("one", true), limit("two", false), retry].iter());
    assert_eq!(found.retry("a.b").unwrap().0, "p.again");
    assert_eq!(found.retry("a.c"), None);
    let limits: Vec<_> = found.limits()["a.b"].iter().map(|(reference, _)| reference.as_str()).collect();
    assert_eq!(limits, ["default.one"]);
}
