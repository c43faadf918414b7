//! Defaults of a schema: assigned to what is missing, and `None` allowed where it is one.

use crate::value::{Map, Value};

/// Assigns the defaults of an object's schema, and of the lists and objects in it that have a value.
pub(super) fn assign_defaults(instance: &mut Map, schema: &Map) {
    let empty = Map::new();
    let properties = schema.get("properties").and_then(Value::as_map).unwrap_or(&empty);
    let dependencies = schema.get("dependencies").and_then(Value::as_map).unwrap_or(&empty);
    for (name, property) in properties.iter() {
        let Some(property) = property.as_map() else { continue };
        let is_met = |needed: &Value| {
            needed.as_str().is_some_and(|needed| {
                let has_default =
                    properties.get(needed).is_some_and(|property| property.get("default").is_some());
                has_default || instance.contains_key(needed)
            })
        };
        let needs = dependencies.get(name).and_then(Value::as_list).unwrap_or_default();
        let default = property.get("default").filter(|_| needs.iter().all(is_met));
        let missing = instance.get(name).is_none_or(Value::is_null);
        if let Some(default) = default.filter(|_| missing) {
            instance.insert(name, default.clone());
        }
        // StackStorm does not look into an object that might also be a list.
        let undecided = is_type(property.get("type"), "array");
        if let Some(value) = instance.get_mut(name).filter(|value| !undecided || value.as_list().is_some()) {
            assign_nested(value, property);
        }
    }
}

fn assign_nested(value: &mut Value, schema: &Map) {
    match value {
        Value::List(items) if is_type(schema.get("type"), "array") => assign_items(items, schema),
        Value::Map(map) if is_type(schema.get("type"), "object") => assign_defaults(map, schema),
        _ => {}
    }
}

fn assign_items(items: &mut [Value], schema: &Map) {
    let by_position = schema.get("items").and_then(Value::as_list);
    let of_all = schema.get("items").and_then(Value::as_map);
    for (at, item) in items.iter_mut().enumerate() {
        let of_this = by_position.and_then(|schemas| schemas.get(at)).and_then(Value::as_map);
        let Some(schema) = of_this.or(of_all) else { continue };
        if let Some(default) = schema.get("default").filter(|_| item.is_null()) {
            *item = default.clone();
        }
        assign_nested(item, schema);
    }
}

fn is_type(types: Option<&Value>, wanted: &str) -> bool {
    match types {
        Some(Value::String(name)) => name == wanted,
        Some(Value::List(names)) => names.iter().any(|name| name.as_str() == Some(wanted)),
        _ => false,
    }
}

/// The schema in which `None` is valid for each property that need not be given or has `None` for its default.
pub(super) fn nullable(schema: &Map) -> Map {
    let mut schema = schema.clone();
    if let Some(Value::Map(properties)) = schema.get_mut("properties") {
        for (_, property) in properties.iter_mut() {
            if let Value::Map(property) = property {
                *property = nullable_property(property);
            }
        }
    }
    schema
}

fn nullable_property(property: &Map) -> Map {
    let optional = !property.get("required").is_some_and(Value::is_truthy);
    let default = property.get("default");
    let allows = (default.is_some() || optional) && default.is_none_or(Value::is_null);
    let mut changed = property.clone();
    if allows {
        allow_null(&mut changed);
    }
    let items = property.get("items").and_then(Value::as_map);
    let items = items.filter(|items| items.get("properties").is_some_and(Value::is_truthy));
    if let Some(items) = items.filter(|_| is_type(changed.get("type"), "array")) {
        changed.insert("items", nullable(items));
    }
    match property.get("properties").is_some_and(Value::is_truthy) && is_type(changed.get("type"), "object") {
        true => nullable(&changed),
        false => changed,
    }
}

fn allow_null(property: &mut Map) {
    let null_schema = || Value::Map(Map::from_iter([("type", "null")]));
    let alternatives = ["anyOf", "oneOf"];
    for keyword in alternatives {
        if let Some(Value::List(schemas)) = property.get_mut(keyword)
            && !schemas.iter().any(|schema| schema.get("type").and_then(Value::as_str) == Some("null"))
        {
            schemas.push(null_schema());
            return;
        }
    }
    let has_alternatives = alternatives.iter().any(|keyword| property.contains_key(keyword));
    match property.get_mut("type") {
        Some(Value::List(names)) => {
            if !names.iter().any(|name| name.as_str() == Some("null")) {
                names.push(Value::from("null"));
            }
        }
        Some(Value::String(name)) if name == "null" || has_alternatives => {}
        Some(Value::String(name)) => {
            let names = vec![Value::from(name.as_str()), Value::from("null")];
            property.insert("type", names);
        }
        _ if has_alternatives => {}
        // Without a type, a property is a text.
        _ => {
            property.insert("type", vec![Value::from("string"), Value::from("null")]);
        }
    }
}
