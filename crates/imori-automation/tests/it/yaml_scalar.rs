//! Scalars of YAML.

use imori_automation::value::Value;
use imori_automation::yaml::load;

use crate::json;

#[test]
fn plain_scalars_resolve_as_in_pyyaml() {
    let rows = [
        ("", "null"),
        ("~", "null"),
        ("Null", "null"),
        ("nULL", "\"nULL\""),
        ("yes", "true"),
        ("Off", "false"),
        ("y", "\"y\""),
        ("0755", "493"),
        ("0_7", "7"),
        ("08", "\"08\""),
        ("0o17", "\"0o17\""),
        ("0x_1F", "31"),
        ("-0b1_1", "-3"),
        ("+12", "12"),
        ("1_000", "1000"),
        ("12:30:45", "45045"),
        ("-1:30", "-90"),
        ("1:60", "\"1:60\""),
        ("190:20:30.15", "685230.15"),
        ("1e3", "\"1e3\""),
        ("1.e+3", "1000.0"),
        ("1.5e3", "\"1.5e3\""),
        (".5", "0.5"),
        ("-.5", "\"-.5\""),
        ("1.", "1.0"),
        (".", "\".\""),
        ("1.2.3", "\"1.2.3\""),
        ("9223372036854775807", "9223372036854775807"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("9223372036854775808", "9.223372036854775808e+18"),
        ("2001-12-14", "\"2001-12-14\""),
        ("2001-1-1", "\"2001-1-1\""),
        ("2001-12-14t21:59:43.10-05:00", "\"2001-12-14T21:59:43.100000-05:00\""),
        ("2001-12-14 21:59:43.1 -5", "\"2001-12-14T21:59:43.100000-05:00\""),
        ("2001-12-15 2:59:43.00", "\"2001-12-15T02:59:43\""),
        ("2001-12-15T02:59:43Z", "\"2001-12-15T02:59:43+00:00\""),
        ("<<", "\"<<\""),
    ];
    for (text, expected) in rows {
        assert_eq!(load(text), Ok(json(expected)), "{text}");
    }
    assert_eq!(load("-.inf"), Ok(Value::Float(f64::NEG_INFINITY)));
    assert!(matches!(load(".NaN"), Ok(Value::Float(number)) if number.is_nan()));
    for text in ["0x_", "2001-13-01", "2001-02-30 10:00:00", "2001-01-01 25:00:00"] {
        assert!(load(text).is_err(), "{text}");
    }
}

#[test]
fn tags_choose_the_type() {
    let rows =
        [("str", "12", "\"12\""), ("int", "12", "12"), ("float", "12", "12.0"), ("bool", "no", "false")];
    for (tag, text, json) in rows {
        assert_eq!(load(&format!("!!{tag} {text}")).unwrap().to_json(), json, "{tag}");
    }
    for tag in ["!!python/object:os.system", "!vault", "!!binary"] {
        assert!(load(&format!("{tag} x")).is_err(), "{tag}");
    }
    assert!(load("!!int x").is_err());
}
