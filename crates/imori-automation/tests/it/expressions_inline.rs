//! Parameters beside the reference of an action.

use imori_automation::for_tests::inline_parameters;
use imori_automation::value::Value;

#[test]
fn parameters_of_a_text() {
    let rows = [
        ("core.noop", "{}"),
        (r#"core.local cmd="date +%s" timeout=10"#, r#"{"cmd":"date +%s","timeout":10}"#),
        ("a x=<% ctx().y + 1 %> z={{ ctx().z }}", r#"{"x":"<% ctx().y + 1 %>","z":"{{ ctx().z }}"}"#),
        ("x=True y=false z=null", r#"{"x":true,"y":false,"z":null}"#),
        ("x=-1.5 y='it'", r#"{"x":-1.5,"y":"it"}"#),
        (r#"x=[1, 2]"#, r#"{"x":[1,2]}"#),
        (r#"x='{"a": 1}'"#, r#"{"x":{"a":1}}"#),
        (r#"x="1""#, r#"{"x":"1"}"#),
        (r#"x="""#, r#"{"x":""}"#),
    ];
    for (text, expected) in rows {
        let found: imori_automation::value::Map = inline_parameters(text).into_iter().collect();
        assert_eq!(Value::Map(found).to_json(), expected, "{text}");
    }
}
