//! Jinja's filters of lists and dicts.

use std::cmp::Ordering;

use minijinja::value::{Kwargs, Value, ValueKind};
use minijinja::{Error, ErrorKind, State};

use crate::python::arguments::{Arguments, int_or, is_set, soft_text, strict_int, strict_text};
use crate::python::methods::pair;
use crate::python::objects::Group;
use crate::python::values::{
    Number, compare, failure, int_value, is_list, items, length, sort_by_key, text, type_name,
};

/// `join`: the items as one text.
pub(crate) fn join(state: &mut State, arguments: Arguments) -> Result<Value, Error> {
    let [value, separator, attribute] = arguments.bind(["value", "d", "attribute"], 1)?;
    let separator = soft_text(separator.as_ref())?;
    let mut joined = String::new();
    for (at, item) in items(state, &value.unwrap_or_default())?.iter().enumerate() {
        if at > 0 {
            joined.push_str(&separator);
        }
        let part = text(&attribute_of(item, attribute.as_ref(), None)?)?;
        state.consume_fuel((part.len() + separator.len()) as u64 / 64)?;
        joined.push_str(&part);
    }
    Ok(Value::from(joined))
}

/// `length` and `count`.
pub(crate) fn count(_: &mut State, arguments: Arguments) -> Result<Value, Error> {
    let [value] = arguments.bind(["value"], 1)?;
    length(&value.unwrap_or_default()).map(Value::from)
}

/// `list`: the items; of a text its characters.
pub(crate) fn list(state: &mut State, arguments: Arguments) -> Result<Value, Error> {
    let [value] = arguments.bind(["value"], 1)?;
    items(state, &value.unwrap_or_default()).map(Value::from)
}

/// `first`: the first item, or undefined.
pub(crate) fn first(_: &mut State, arguments: Arguments) -> Result<Value, Error> {
    let [value] = arguments.bind(["seq"], 1)?;
    let value = value.unwrap_or_default();
    iterable(&value)?;
    Ok(value.try_iter()?.next().unwrap_or_default())
}

/// `last`: the last item, or undefined.
pub(crate) fn last(state: &mut State, arguments: Arguments) -> Result<Value, Error> {
    let [value] = arguments.bind(["seq"], 1)?;
    let value = value.unwrap_or_default();
    Ok(items(state, &value)?.pop().unwrap_or_default())
}

/// `reverse`: a text from its end, or the items in the other order.
pub(crate) fn reverse(state: &mut State, arguments: Arguments) -> Result<Value, Error> {
    let [value] = arguments.bind(["value"], 1)?;
    let value = value.unwrap_or_default();
    if let Some(text) = value.as_str() {
        return Ok(Value::from(text.chars().rev().collect::<String>()));
    }
    let mut items = items(state, &value)?;
    items.reverse();
    Ok(generator(items))
}

/// `sort`.
pub(crate) fn sort(state: &mut State, arguments: Arguments) -> Result<Value, Error> {
    let [value, reverse, case_sensitive, attribute] =
        arguments.bind(["value", "reverse", "case_sensitive", "attribute"], 1)?;
    let keep_case = is_set(case_sensitive.as_ref());
    let items = items(state, &value.unwrap_or_default())?;
    let attributes: Vec<Option<Value>> = match attribute.as_ref().and_then(Value::as_str) {
        Some(names) => names.split(',').map(|name| Some(Value::from(name))).collect(),
        None => vec![attribute],
    };
    let is_compared = items.len() > 1;
    let key = |item: &Value| -> Result<Value, Error> {
        let keys: Result<Vec<Value>, Error> = attributes
            .iter()
            .map(|attribute| Ok(folded(attribute_of(item, attribute.as_ref(), None)?, keep_case)))
            .collect();
        let keys = keys?;
        if is_compared && keys.iter().any(Value::is_undefined) {
            return Err(Error::from(ErrorKind::UndefinedError));
        }
        // In a list, keys that are equal need no order of their own, such as dicts.
        Ok(Value::from(keys))
    };
    sort_by_key(state, items, is_set(reverse.as_ref()), key).map(Value::from)
}

/// `unique`: each value where it comes first.
pub(crate) fn unique(state: &mut State, arguments: Arguments) -> Result<Value, Error> {
    let [value, case_sensitive, attribute] = arguments.bind(["value", "case_sensitive", "attribute"], 1)?;
    let keep_case = is_set(case_sensitive.as_ref());
    let mut seen = Vec::new();
    let mut unique = Vec::new();
    for item in items(state, &value.unwrap_or_default())? {
        let key = folded(attribute_of(&item, attribute.as_ref(), None)?, keep_case);
        hashable(&key)?;
        state.consume_fuel(1 + seen.len() as u64 / 16)?;
        if !seen.contains(&key) {
            seen.push(key);
            unique.push(item);
        }
    }
    Ok(generator(unique))
}

/// `min` and `max`.
pub(crate) fn extreme(state: &mut State, arguments: Arguments, wanted: Ordering) -> Result<Value, Error> {
    let [value, case_sensitive, attribute] = arguments.bind(["value", "case_sensitive", "attribute"], 1)?;
    let keep_case = is_set(case_sensitive.as_ref());
    let mut best: Option<(Value, Value)> = None;
    for item in items(state, &value.unwrap_or_default())? {
        let key = folded(attribute_of(&item, attribute.as_ref(), None)?, keep_case);
        let operator = if wanted == Ordering::Less { "<" } else { ">" };
        let better = match &best {
            None => true,
            Some((known, _)) => compare(&key, known, operator)? == wanted,
        };
        if better {
            best = Some((key, item));
        }
    }
    Ok(best.map(|(_, item)| item).unwrap_or_default())
}

/// `sum`.
pub(crate) fn sum(state: &mut State, arguments: Arguments) -> Result<Value, Error> {
    let [value, attribute, start] = arguments.bind(["iterable", "attribute", "start"], 1)?;
    let mut total = start.unwrap_or_else(|| Value::from(0));
    if total.kind() == ValueKind::String {
        return Err(failure("sum() can't sum strings [use ''.join(seq) instead]"));
    }
    for item in items(state, &value.unwrap_or_default())? {
        let item = attribute_of(&item, attribute.as_ref(), None)?;
        total = match (Number::of(&total), Number::of(&item)) {
            (Some(Number::Int(a)), Some(Number::Int(b))) => {
                int_value(a.checked_add(b).ok_or_else(|| failure("the sum is too large"))?)
            }
            (Some(a), Some(b)) => Value::from(a.as_float() + b.as_float()),
            _ if is_list(&total) && is_list(&item) => {
                let mut all = items(state, &total)?;
                all.extend(items(state, &item)?);
                Value::from(all)
            }
            _ => {
                return Err(failure(format!(
                    "unsupported operand type(s) for +: '{}' and '{}'",
                    type_name(&total),
                    type_name(&item)
                )));
            }
        };
    }
    Ok(total)
}

/// `dictsort`: the items of a dict by key or value.
pub(crate) fn dictsort(state: &mut State, arguments: Arguments) -> Result<Value, Error> {
    let [value, case_sensitive, by, reverse] =
        arguments.bind(["value", "case_sensitive", "by", "reverse"], 1)?;
    let value = dict(value)?;
    let at = match by.as_ref().map_or(Some("key"), Value::as_str) {
        Some("key") => 0,
        Some("value") => 1,
        _ => return Err(failure("You can only sort by either \"key\" or \"value\"")),
    };
    let keep_case = is_set(case_sensitive.as_ref());
    let pairs: Result<Vec<Value>, Error> =
        items(state, &value)?.into_iter().map(|key| Ok(pair(key.clone(), value.get_item(&key)?))).collect();
    let key = |pair: &Value| Ok(folded(pair.get_item_by_index(at)?, keep_case));
    sort_by_key(state, pairs?, is_set(reverse.as_ref()), key).map(Value::from)
}

/// `items`: the items of a dict; none of an undefined value.
pub(crate) fn dict_items(state: &mut State, arguments: Arguments) -> Result<Value, Error> {
    let [value] = arguments.bind(["value"], 1)?;
    let value = value.unwrap_or_default();
    if value.is_undefined() {
        return Ok(generator(Vec::new()));
    }
    if value.kind() != ValueKind::Map {
        return Err(failure("Can only get item pairs from a mapping."));
    }
    let pairs: Result<Vec<Value>, Error> =
        items(state, &value)?.into_iter().map(|key| Ok(pair(key.clone(), value.get_item(&key)?))).collect();
    pairs.map(generator)
}

/// `groupby`: the groups of items with an equal attribute, in the order of the attribute.
pub(crate) fn groupby(state: &mut State, arguments: Arguments) -> Result<Value, Error> {
    let [value, attribute, default, case_sensitive] =
        arguments.bind(["value", "attribute", "default", "case_sensitive"], 2)?;
    let keep_case = is_set(case_sensitive.as_ref());
    let keyed: Result<Vec<(Value, Value)>, Error> = items(state, &value.unwrap_or_default())?
        .into_iter()
        .map(|item| Ok((attribute_of(&item, attribute.as_ref(), default.as_ref())?, item)))
        .collect();
    let sorted = sort_by_key(state, keyed?, false, |(key, _)| Ok(folded(key.clone(), keep_case)))?;
    let mut groups: Vec<Group> = Vec::new();
    for (key, item) in sorted {
        let folded_key = folded(key.clone(), keep_case);
        match groups.last_mut() {
            Some(group) if folded(group.grouper.clone(), keep_case) == folded_key => group.list.push(item),
            _ => groups.push(Group { grouper: key, list: vec![item] }),
        }
    }
    Ok(Value::from(groups.into_iter().map(Value::from_object).collect::<Vec<_>>()))
}

/// `batch`: lists of a given length.
pub(crate) fn batch(state: &mut State, arguments: Arguments) -> Result<Value, Error> {
    let [value, count, fill] = arguments.bind(["value", "linecount", "fill_with"], 2)?;
    let count = strict_int(&count.unwrap_or_default())?;
    let count = usize::try_from(count).ok().filter(|count| *count > 0).unwrap_or(usize::MAX);
    let mut rows: Vec<Vec<Value>> = Vec::new();
    for item in items(state, &value.unwrap_or_default())? {
        match rows.last_mut() {
            Some(row) if row.len() < count => row.push(item),
            _ => rows.push(vec![item]),
        }
    }
    let fill = fill.filter(|fill| !fill.is_none() && count != usize::MAX);
    if let (Some(fill), Some(row)) = (fill, rows.last_mut()) {
        state.consume_fuel(count as u64)?;
        row.resize(count, fill);
    }
    Ok(generator(rows.into_iter().map(Value::from).collect()))
}

/// `slice`: a given number of lists.
pub(crate) fn slice(state: &mut State, arguments: Arguments) -> Result<Value, Error> {
    let [value, slices, fill] = arguments.bind(["value", "slices", "fill_with"], 2)?;
    let items = items(state, &value.unwrap_or_default())?;
    let slices = usize::try_from(int_or(slices.as_ref(), 0)?).unwrap_or(0);
    if slices == 0 {
        return Err(failure("integer division or modulo by zero"));
    }
    state.consume_fuel(slices as u64)?;
    let (per_slice, longer) = (items.len() / slices, items.len() % slices);
    let fill = fill.filter(|fill| !fill.is_none());
    let mut rest = items.into_iter();
    let columns = (0..slices).map(|at| {
        let mut column: Vec<Value> = rest.by_ref().take(per_slice + usize::from(at < longer)).collect();
        column.extend(fill.clone().filter(|_| at >= longer));
        Value::from(column)
    });
    Ok(generator(columns.collect()))
}

/// `map`: an attribute of each item, or what a filter makes of it.
pub(crate) fn map(state: &mut State, arguments: Arguments) -> Result<Value, Error> {
    let (value, arguments) = arguments.split_first();
    let value = value.unwrap_or_default();
    let (positional, mut named) = arguments.into_parts();
    let mut take = |name: &str| {
        let at = named.iter().position(|(known, _)| known == name)?;
        Some(named.remove(at).1)
    };
    let attribute = if positional.is_empty() { take("attribute") } else { None };
    if let Some(attribute) = attribute {
        let default = take("default");
        if let Some((name, _)) = named.first() {
            return Err(failure(format!("Unexpected keyword argument '{name}'")));
        }
        let mapped: Result<Vec<Value>, Error> = if_true(state, &value)?
            .iter()
            .map(|item| attribute_of(item, Some(&attribute), default.as_ref()))
            .collect();
        return mapped.map(generator);
    }
    let mut rest = positional.into_iter();
    let filter = rest.next().ok_or_else(|| failure("map requires a filter argument"))?;
    let filter = strict_text(&filter)?.to_owned();
    let mut values: Vec<Value> = std::iter::once(Value::UNDEFINED).chain(rest).collect();
    if !named.is_empty() {
        values.push(Value::from(named.into_iter().collect::<Kwargs>()));
    }
    let mut mapped = Vec::new();
    for item in if_true(state, &value)? {
        if let Some(first) = values.first_mut() {
            *first = item;
        }
        mapped.push(state.apply_filter(&filter, &values)?);
    }
    Ok(generator(mapped))
}

/// `select`, `reject`, `selectattr` and `rejectattr`: the items that pass a test, or whose attribute does, or those
/// that do not.
pub(crate) fn select(
    state: &mut State,
    arguments: Arguments,
    by_attribute: bool,
    wanted: bool,
) -> Result<Value, Error> {
    let (value, arguments) = arguments.split_first();
    let value = value.unwrap_or_default();
    let (positional, _) = arguments.into_parts();
    let mut rest = positional.into_iter();
    let attribute = if by_attribute {
        Some(rest.next().ok_or_else(|| failure("Missing parameter for attribute name"))?)
    } else {
        None
    };
    let test = rest.next();
    let mut values: Vec<Value> = std::iter::once(Value::UNDEFINED).chain(rest).collect();
    let mut selected = Vec::new();
    for item in if_true(state, &value)? {
        let tested = attribute_of(&item, attribute.as_ref(), None)?;
        let passes = match &test {
            None if tested.is_undefined() => return Err(Error::from(ErrorKind::UndefinedError)),
            None => tested.is_true(),
            Some(test) => {
                if let Some(first) = values.first_mut() {
                    *first = tested;
                }
                state.perform_test(strict_text(test)?, &values)?
            }
        };
        if passes == wanted {
            selected.push(item);
        }
    }
    Ok(generator(selected))
}

/// The items; none of what is false, whatever its type.
fn if_true(state: &State, value: &Value) -> Result<Vec<Value>, Error> {
    match value.is_undefined() || value.is_true() {
        true => items(state, value),
        false => Ok(Vec::new()),
    }
}

/// `attr`: an attribute, but no item. Only the items of dicts have names here, so there is none.
pub(crate) fn attr(_: &mut State, arguments: Arguments) -> Result<Value, Error> {
    let [value, name] = arguments.bind(["obj", "name"], 2)?;
    let value = value.unwrap_or_default();
    match value.downcast_object_ref::<Group>() {
        Some(_) => value.get_attr(&text(&name.unwrap_or_default())?),
        None if value.is_undefined() => Err(Error::from(ErrorKind::UndefinedError)),
        None => Ok(Value::UNDEFINED),
    }
}

/// The items as something that can be iterated, but has no length in Python.
pub(crate) fn generator(items: Vec<Value>) -> Value {
    Value::make_object_iterable(items, |items| Box::new(items.iter().cloned()))
}

/// What an attribute such as `a.b.0` of an item is; the item without one.
///
/// # Errors
/// A part before the last is undefined.
pub(crate) fn attribute_of(
    item: &Value,
    attribute: Option<&Value>,
    default: Option<&Value>,
) -> Result<Value, Error> {
    let Some(attribute) = attribute.filter(|attribute| !attribute.is_none()) else {
        return Ok(item.clone());
    };
    let Some(path) = attribute.as_str() else {
        return item.get_item(attribute);
    };
    let mut value = item.clone();
    for part in path.split('.') {
        if value.is_undefined() {
            return Err(Error::from(ErrorKind::UndefinedError));
        }
        let index = part.parse::<usize>().ok().filter(|_| part.bytes().all(|byte| byte.is_ascii_digit()));
        value = match index {
            Some(index) => value.get_item(&Value::from(index))?,
            None => value.get_attr(part)?,
        };
        if let Some(default) = default.filter(|default| value.is_undefined() && !default.is_none()) {
            value = default.clone();
        }
    }
    Ok(value)
}

/// The key by which an item is ordered: texts in lower case unless case counts.
fn folded(value: Value, keep_case: bool) -> Value {
    match value.as_str() {
        Some(text) if !keep_case => Value::from(text.to_lowercase()),
        _ => value,
    }
}

fn dict(value: Option<Value>) -> Result<Value, Error> {
    let value = value.unwrap_or_default();
    match value.kind() {
        ValueKind::Map => Ok(value),
        ValueKind::Undefined => Err(Error::from(ErrorKind::UndefinedError)),
        _ => Err(failure(format!("'{} object' has no attribute 'items'", type_name(&value)))),
    }
}

fn iterable(value: &Value) -> Result<(), Error> {
    match value.kind() {
        ValueKind::String | ValueKind::Seq | ValueKind::Map | ValueKind::Iterable => Ok(()),
        ValueKind::Undefined => Err(Error::from(ErrorKind::UndefinedError)),
        _ => Err(failure(format!("'{}' object is not iterable", type_name(value)))),
    }
}

fn hashable(value: &Value) -> Result<(), Error> {
    match value.kind() {
        ValueKind::Map => Err(failure("unhashable type: 'dict'")),
        _ if is_list(value) && !value.is_tuple() => Err(failure("unhashable type: 'list'")),
        ValueKind::Undefined => Err(Error::from(ErrorKind::UndefinedError)),
        _ => Ok(()),
    }
}
