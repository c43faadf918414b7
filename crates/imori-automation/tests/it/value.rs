//! Values of JSON.

use imori_automation::value::Value;

#[test]
fn json_keeps_the_order_of_keys_and_the_kind_of_numbers() {
    let text = r#"{"z":1,"a":[1.0,-2,true,null,"ä\n"],"m":{"y":18446744073709551615}}"#;
    let value = Value::from_json(text.as_bytes()).unwrap();
    let kept = r#"{"z":1,"a":[1.0,-2,true,null,"ä\n"],"m":{"y":1.8446744073709552e+19}}"#;
    assert_eq!(value.to_json(), kept);
    assert_eq!(value.get("z"), Some(&Value::Int(1)));
}

#[test]
fn the_last_of_two_equal_keys_counts() {
    assert_eq!(Value::from_json(b"{\"a\":1,\"a\":2}").unwrap().to_json(), "{\"a\":2}");
}

#[test]
fn a_deep_text_is_refused() {
    let deep = [b"[".repeat(1_000), b"]".repeat(1_000)].concat();
    assert!(Value::from_json(&deep).is_err());
}
