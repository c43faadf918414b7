//! Arguments of declarations: JSON becomes a table of AMQP 0-9-1, so that both are read by the same rules.

use imori_amqp091::codec::push::{
    push_array_value, push_field, push_short_bytes, push_table_value, push_value,
};
use imori_amqp091::codec::table::FieldValue;
use serde_json::{Map, Value};

/// The fields of an AMQP table with these arguments, without the length of the whole.
pub(crate) fn table_of(arguments: &Map<String, Value>) -> Vec<u8> {
    let mut out = Vec::new();
    push_fields_of(&mut out, arguments);
    out
}

fn push_fields_of(out: &mut Vec<u8>, fields: &Map<String, Value>) {
    for (name, value) in fields {
        match scalar(value) {
            Some(scalar) => push_field(out, name.as_bytes(), scalar),
            None => {
                push_short_bytes(out, name.as_bytes());
                push_value_of(out, value);
            }
        }
    }
}

fn push_value_of(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Array(items) => {
            push_array_value(out, |out| items.iter().for_each(|item| push_value_of(out, item)));
        }
        Value::Object(fields) => push_table_value(out, |out| push_fields_of(out, fields)),
        other => push_value(out, scalar(other).unwrap_or(FieldValue::Void)),
    }
}

/// A value that holds no others.
fn scalar(value: &Value) -> Option<FieldValue<'_>> {
    Some(match value {
        Value::Null => FieldValue::Void,
        Value::Bool(truth) => FieldValue::Bool(*truth),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => FieldValue::I64(whole),
            (None, number) => FieldValue::F64(number.unwrap_or(f64::MAX)),
        },
        Value::String(text) => FieldValue::Text(text.as_bytes()),
        Value::Array(_) | Value::Object(_) => return None,
    })
}

#[cfg(test)]
mod tests {
    use imori_amqp091::codec::table::Table;
    use serde_json::json;

    use super::*;

    #[test]
    fn json_is_read_back_from_the_table() {
        let arguments =
            json!({"a": 1, "b": "text", "c": true, "d": null, "e": [1, {"f": 2.5}], "g": {"h": []}});
        let bytes = table_of(arguments.as_object().unwrap());
        let table = Table::new(&bytes).unwrap();
        assert_eq!(table.find("a"), Some(FieldValue::I64(1)));
        assert_eq!(table.find("b"), Some(FieldValue::Text(b"text")));
        assert_eq!(table.find("c"), Some(FieldValue::Bool(true)));
        assert_eq!(table.find("d"), Some(FieldValue::Void));
        let Some(FieldValue::Array(items)) = table.find("e") else { panic!("a list stays a list") };
        assert_eq!(items.iter().count(), 2);
        let Some(FieldValue::Table(inner)) = table.find("g") else { panic!("an object stays a table") };
        assert!(matches!(inner.find("h"), Some(FieldValue::Array(_))));
    }
}
