//! Policies of concurrency.

use imori_automation::concurrency::ConcurrencyPolicy;

use crate::map;

#[test]
fn wrong_policies_are_refused() {
    let rows = [
        ("{}", "`threshold` is missing; the policy needs it"),
        (r#"{"threshold":-1}"#, "`threshold` is -1; use a whole number"),
        (r#"{"threshold":1,"action":"wait"}"#, "`action` is \"wait\"; use `delay` or `cancel`"),
        (
            r#"{"threshold":1,"attributes":[""]}"#,
            "`attributes` is [\"\"]; use a list of 32 names of parameters at most",
        ),
        (
            r#"{"threshold":1,"limit":1}"#,
            "parameter `limit` is unknown; use one of `threshold`, `action`, `attributes`",
        ),
    ];
    for (parameters, message) in rows {
        assert_eq!(ConcurrencyPolicy::read(&map(parameters)).unwrap_err().to_string(), message);
    }
}
