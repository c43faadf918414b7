//! Rules, read and written.

use imori_automation::criteria::TriggerInstance;
use imori_automation::rules::{Rule, RuleError, RuleKind};
use imori_automation::value::Value;

use crate::json;

fn read(text: &str) -> Result<Rule, RuleError> {
    Rule::read(&imori_automation::yaml::load(text).unwrap_or_else(|error| panic!("{text}: {error}")))
}

const RULE: &str = "
name: on_push
pack: examples
trigger:
  type: core.st2.webhook
  parameters: {url: push}
criteria:
  trigger.body.ref: {type: equals, pattern: main}
action:
  ref: core.local
  parameters: {cmd: 'echo {{ trigger.body.ref }}'}
";

#[test]
fn a_rule_is_read_with_its_defaults() {
    let rule = read(RULE).unwrap();
    assert_eq!(rule.reference, "examples.on_push");
    assert_eq!(rule.kind, RuleKind::Standard);
    assert_eq!(rule.trigger_reference(), "core.st2.webhook");
    assert!(!rule.is_enabled);
    assert_eq!(rule.actions().map(|action| action.reference.as_str()).collect::<Vec<_>>(), ["core.local"]);
    let rule = rule.with_enabled(true).with_trigger_reference("core.abc");
    let again = Rule::read(&rule.to_value()).unwrap();
    assert_eq!(again.to_value(), rule.to_value());
    assert!(again.is_enabled);
    assert_eq!(again.trigger_reference(), "core.abc");
    assert_eq!(again.field("type").and_then(|kind| kind.get("ref")), Some(&Value::from("standard")));
}

#[test]
fn the_keys_of_the_extension_are_read() {
    let text = format!(
        "{RULE}
x-imori:
  any_of:
    - trigger.body.a: {{type: exists}}
    - trigger.body.b: {{type: exists}}
  actions: [{{ref: core.noop}}]
  count: {{n: 3, within: 5m}}
  once_within: 90
  throttle: {{n: 1, within: 1h}}
  dedup_key: '{{{{ trigger.body.host }}}}'
  limit: 2
"
    );
    let rule = read(&text).unwrap();
    assert_eq!(rule.actions().count(), 2);
    assert_eq!(rule.extension.any_of.len(), 2);
    assert_eq!(rule.extension.count.map(|window| (window.count, window.micros)), Some((3, 300_000_000)));
    assert_eq!(rule.extension.once_within, Some(90_000_000));
    assert_eq!(rule.extension.limit, Some(2));
    assert!(rule.extension.has_state());
    let outcome = |payload: &str| {
        let payload = json(payload);
        let now = "2026-11-26T12:00:00Z".parse().unwrap();
        let instance = TriggerInstance::new(&payload, now);
        assert_eq!(rule.evaluate(&instance).is_match, rule.explain(&instance).is_match);
        rule.evaluate(&instance).is_match
    };
    assert!(outcome(r#"{"body":{"ref":"main","b":1}}"#));
    assert!(!outcome(r#"{"body":{"ref":"main"}}"#));
    assert!(!outcome(r#"{"body":{"ref":"other","b":1}}"#));
}

#[test]
fn errors_tell_the_path() {
    let rows = [
        ("[]", "", "rule: the rule is no object"),
        ("name: x", "", "rule: there is no `trigger`; add it"),
        ("nam: x", "nam", "rule `nam`: key `nam` is unknown; use one of name, pack"),
        ("name: 5", "name", "rule `name`: the value is an integer, no text; correct it"),
        ("name: x\ntrigger: {}", "trigger", "rule `trigger`: there is no `type`; add it"),
        (
            "name: x\ntrigger: {type: a.b}\ncriteria: {trigger.x: {type: equalz, pattern: 1}}",
            "criteria/trigger.x/type",
            "rule criteria `trigger.x`: operator `equalz` is unknown",
        ),
        (
            "name: x\ntrigger: {type: a.b}\naction: {rf: y}",
            "action/rf",
            "rule `action.rf`: key `rf` is unknown",
        ),
        ("name: x\ntrigger: {type: a.b}\naction: {}", "action", "rule `action`: there is no `ref`; add it"),
        ("name: x\ntype: {ref: other}", "type/ref", "type `other` is unknown; use standard or backstop"),
        ("name: x\ntags: [a]", "tags/0", "the tag is no object"),
    ];
    for (text, path, begin) in rows {
        let error = read(text).expect_err(text);
        assert_eq!(error.path.join("/"), path, "{text}: {error}");
        assert!(error.to_string().contains(begin), "{text}: {error}");
    }
    let rows = [
        ("any_of: [5]", "x-imori/any_of/0"),
        ("any_of: [{trigger.x: {type: regex, pattern: '('}}]", "x-imori/any_of/0/trigger.x/pattern"),
        ("actions: [{}]", "x-imori/actions/0"),
        ("count: {n: 0, within: 5m}", "x-imori/count/n"),
        ("count: {n: 3}", "x-imori/count"),
        ("throttle: {n: 3, within: soon}", "x-imori/throttle/within"),
        ("once_within: -1", "x-imori/once_within"),
        ("dedup_key: '{{ x'", "x-imori/dedup_key"),
        ("limit: 0", "x-imori/limit"),
        ("retry: 3", "x-imori/retry"),
    ];
    for (text, path) in rows {
        let error = read(&format!("{RULE}x-imori:\n  {text}")).expect_err(text);
        assert_eq!(error.path.join("/"), path, "{text}: {error}");
    }
}
