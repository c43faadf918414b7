use super::super::{Draft, Objects};
use super::*;
use crate::limits::POLICIES_PER_VHOST_MAX;
use imori_core::id::VhostId;

fn row(fields: Value) -> Result<PolicyRow, String> {
    let Value::Object(fields) = fields else { return Err(String::from("it is an object")) };
    PolicyRow::read(&fields).map_err(|error| error.to_string())
}

/// The error of a refused policy; empty if it is accepted.
fn refusal(kind: PolicyKind, fields: Value) -> String {
    let compiled = row(fields).and_then(|row| row.compile(kind, "p").map_err(|error| error.to_string()));
    compiled.err().unwrap_or_default()
}

#[test]
fn values_are_checked_by_their_keys() {
    for (definition, refused) in [
        (json!({"max-length": 0}), ""),
        (json!({"max-length": -1}), "`max-length` is `-1`; write a whole number from 0"),
        (json!({"max-length": "5"}), "`max-length` is `\"5\"`"),
        (json!({"max-length": 1.5}), "`max-length` is `1.5`"),
        (json!({"max-length": u64::MAX}), "`max-length` is"),
        (json!({"max-length": null}), "`max-length` is `null`"),
        (json!({"expires": 0}), "`expires` is `0`; write a whole number from 1"),
        (json!({"message-ttl": 315_360_000_000_i64}), ""),
        (json!({"message-ttl": i64::MAX}), "write a whole number from 0 to 315360000000"),
        (json!({"delivery-limit": -1}), ""),
        (json!({"overflow": "reject"}), "write `drop-head`, `reject-publish` or `reject-publish-dlx`"),
        (json!({"dead-letter-exchange": ""}), ""),
        (json!({"dead-letter-exchange": 5}), "`dead-letter-exchange` is `5`; write a name"),
        (json!({"alternate-exchange": "x".repeat(1024)}), ""),
        (json!({"alternate-exchange": "x".repeat(1025)}), "a name of at most 1024 bytes"),
        (json!({"ha-mode": "all", "queue-mode": "lazy"}), ""),
        (json!({"queue-mode": "eager"}), "`queue-mode` is"),
        (json!({"max-lenght": 1}), "`max-lenght` is no key of a policy"),
        // A Greek letter that looks like a Latin one.
        (json!({"max-lengτh": 1}), "is no key of a policy"),
        (json!({"MAX-LENGTH": 1}), "is no key of a policy"),
        (json!({}), "`definition` is empty"),
        (json!({"ha-params": "x".repeat(POLICY_DEFINITION_BYTES_MAX)}), "bytes; use at most 16384"),
    ] {
        let told = refusal(PolicyKind::Policy, json!({"pattern": "", "definition": definition}));
        assert!(told.contains(refused) && told.is_empty() == refused.is_empty(), "{definition}: {told}");
    }
}

#[test]
fn fields_are_checked_and_have_the_defaults_of_rabbitmq() {
    let definition = json!({"max-length": 1});
    for (fields, refused) in [
        (json!({"pattern": "^a", "definition": definition}), ""),
        (json!({"definition": definition}), "`pattern` is missing"),
        (json!({"pattern": "a"}), "`definition` is missing"),
        (json!({"pattern": 5, "definition": definition}), "`pattern` is no text"),
        (json!({"pattern": "a", "definition": [definition]}), "`definition` is no JSON object"),
        (json!({"pattern": "a", "definition": definition, "priority": "high"}), "`priority` is no whole"),
        (json!({"pattern": "a", "definition": definition, "priority": -7}), ""),
        (json!({"pattern": "a", "definition": definition, "apply-to": "topics"}), "`apply-to` is `topics`"),
        (json!({"pattern": "a", "definition": definition, "apply-to": 1}), "`apply-to` is no text"),
        (json!({"pattern": "a", "definition": definition, "apply-to": "streams"}), ""),
        (json!({"pattern": "(a", "definition": definition}), "character 1: unclosed group"),
        (json!({"pattern": "(?=a)", "definition": definition}), "look-around"),
        // SECURITY LIM-12: an expression is bounded in its length, nesting and compiled size.
        (json!({"pattern": "a".repeat(1025), "definition": definition}), "too many bytes"),
        (json!({"pattern": "(".repeat(40) + &")".repeat(40), "definition": definition}), "nest"),
        (json!({"pattern": "(a{999}){999}", "definition": definition}), "too large when compiled"),
    ] {
        let told = refusal(PolicyKind::Policy, fields.clone());
        assert!(told.contains(refused) && told.is_empty() == refused.is_empty(), "{fields}: {told}");
    }
    let defaults = row(json!({"pattern": "a", "definition": definition})).expect("it is whole");
    assert_eq!((defaults.apply_to.as_str(), defaults.priority), ("all", 0));
}

#[test]
fn operator_policies_have_limits_alone() {
    for (key, value, is_limit) in [
        ("message-ttl", json!(1), true),
        ("expires", json!(1), true),
        ("max-length", json!(1), true),
        ("max-length-bytes", json!(1), true),
        ("delivery-limit", json!(1), true),
        ("overflow", json!("reject-publish"), true),
        ("dead-letter-exchange", json!("x"), false),
        ("dead-letter-routing-key", json!("x"), false),
        ("alternate-exchange", json!("x"), false),
        ("queue-mode", json!("lazy"), false),
    ] {
        let told = refusal(PolicyKind::Operator, json!({"pattern": "", "definition": {key: value}}));
        assert_eq!(told.is_empty(), is_limit, "{key}: {told}");
    }
}

#[test]
fn keys_without_effect_are_named() {
    let definition = json!({"max-length": 1, "ha-mode": "all", "federation-upstream-set": "all"});
    let policy = row(json!({"pattern": "", "definition": definition})).expect("it is whole");
    assert_eq!(policy.without_effect(), ["federation-upstream-set", "ha-mode"]);
}

#[test]
fn a_policy_and_an_operator_policy_are_shown_as_one_definition() {
    let set = |definition: Value| {
        let row = row(json!({"pattern": "", "definition": definition})).expect("it is whole");
        let compiled = row.compile(PolicyKind::Policy, "p").expect("it is one");
        SetPolicy { row, compiled }
    };
    for (policy, operator, expected) in [
        (
            json!({"max-length": 5, "expires": 9}),
            json!({"max-length": 3}),
            json!({"max-length": 3, "expires": 9}),
        ),
        (json!({"max-length": 2}), json!({"max-length": 3}), json!({"max-length": 2})),
        (json!({"delivery-limit": -1}), json!({"delivery-limit": 3}), json!({"delivery-limit": 3})),
        (json!({"delivery-limit": 5}), json!({"delivery-limit": -1}), json!({"delivery-limit": 5})),
        (
            json!({"overflow": "drop-head"}),
            json!({"overflow": "reject-publish"}),
            json!({"overflow": "reject-publish"}),
        ),
        (json!({"queue-version": 1}), json!({"queue-version": 2}), json!({"queue-version": 2})),
    ] {
        let merged = SetPolicy::merged(Some(&set(policy.clone())), Some(&set(operator.clone())));
        assert_eq!(Value::Object(merged), expected, "{policy} under {operator}");
    }
    assert!(SetPolicy::merged(None, None).is_empty());
}

fn policy(length: u64) -> PolicyRow {
    row(json!({"pattern": "", "definition": {"max-length": length}})).expect("it is whole")
}

#[test]
fn policies_are_rows_that_are_read_again_and_go_with_their_vhost() {
    let vhosts = [(Name::from("/"), VhostId(0)), (Name::from("blue"), VhostId(1))];
    let mut draft = Draft::of(&Objects::read(&[], &vhosts), false);
    for (kind, vhost, name) in
        [(PolicyKind::Policy, "/", "p"), (PolicyKind::Operator, "/", "p"), (PolicyKind::Policy, "blue", "p")]
    {
        assert_eq!(draft.put_policy((kind, vhost, name), policy(1)), Ok(true));
        assert_eq!(draft.put_policy((kind, vhost, name), policy(2)), Ok(false));
    }
    for (kind, vhost, name) in
        [(PolicyKind::Policy, "green", "p"), (PolicyKind::Policy, "/", ""), (PolicyKind::Policy, "/", "a\0b")]
    {
        assert!(draft.put_policy((kind, vhost, name), policy(1)).is_err(), "{vhost} {name:?}");
    }
    let rows = |draft: &Draft| -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut rows = std::collections::BTreeMap::new();
        for change in &draft.changes {
            match &change.value {
                Some(value) => drop(rows.insert(change.key.to_vec(), value.to_vec())),
                None => drop(rows.remove(change.key.as_ref())),
            }
        }
        rows.into_iter().collect()
    };
    let read = Objects::read(&rows(&draft), &vhosts);
    assert_eq!(read.policies.keys().collect::<Vec<_>>(), draft.objects.policies.keys().collect::<Vec<_>>());
    assert!(read.policies.values().all(|kept| kept.row == policy(2)));
    assert_eq!(read.policies_of_vhosts().iter().map(|(vhost, _)| vhost.0).collect::<Vec<_>>(), [0, 1]);
    draft.delete_vhost("blue").expect("it is there");
    assert_eq!(Objects::read(&rows(&draft), &vhosts).policies.len(), 2);
    draft.delete_policy(PolicyKind::Operator, "/", "p").expect("it is there");
    assert!(draft.delete_policy(PolicyKind::Operator, "/", "p").is_err());
    assert_eq!(Objects::read(&rows(&draft), &vhosts).policies.len(), 1);
}

#[test]
fn a_vhost_has_so_many_policies_and_no_more() {
    let vhosts = [(Name::from("/"), VhostId(0)), (Name::from("blue"), VhostId(1))];
    let mut draft = Draft::of(&Objects::read(&[], &vhosts), false);
    for number in 0..POLICIES_PER_VHOST_MAX {
        let name = format!("p{number}");
        assert_eq!(draft.put_policy((PolicyKind::Policy, "/", &name), policy(1)), Ok(true));
    }
    let refused = draft.put_policy((PolicyKind::Policy, "/", "more"), policy(1));
    assert!(refused.is_err_and(|error| error.to_string().contains("has `1000` of this kind")));
    assert_eq!(draft.put_policy((PolicyKind::Policy, "/", "p7"), policy(2)), Ok(false), "it is there");
    assert_eq!(draft.put_policy((PolicyKind::Operator, "/", "p"), policy(1)), Ok(true));
    assert_eq!(draft.put_policy((PolicyKind::Policy, "blue", "p"), policy(1)), Ok(true));
}
