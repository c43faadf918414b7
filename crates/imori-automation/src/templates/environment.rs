//! The filters, tests and functions that every template knows.

use std::cmp::Ordering;
use std::sync::LazyLock;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Rest, Value, ValueKind, ValueOrKwargs};
use minijinja::{Environment, Error, State, UndefinedBehavior};

use super::rewriting::{BOUNDED, BOUNDED_PART, PERCENT_FILTER};
use super::{conditions, context};
use crate::filters::{data, durations, jsonpath, numbers, regexes, sequences, texts, versions};
use crate::limits::{TEMPLATE_FUEL_MAX, TEMPLATE_RANGE_ITEMS_MAX, TEMPLATE_RECURSION_MAX};
use crate::python::arguments::{Arguments, strict_int};
use crate::python::methods::method;
use crate::python::objects::Range;
use crate::python::values::{bounded, failure, text, write_text};

/// The environment that all templates share.
pub(super) fn shared() -> &'static Environment<'static> {
    static SHARED: LazyLock<Environment<'static>> = LazyLock::new(environment);
    &SHARED
}

fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
    environment.set_syntax(syntax.expect("the delimiters are the standard ones"));
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    environment.set_fuel(Some(TEMPLATE_FUEL_MAX));
    environment.set_recursion_limit(TEMPLATE_RECURSION_MAX);
    environment.set_formatter(|out, _, value| {
        let mut text = String::new();
        // Strict names fail before; what is left is a condition without `else`, which Jinja writes as nothing.
        if !value.is_undefined() {
            write_text(&mut text, value)?;
        }
        out.write_str(&text).map_err(Error::from)
    });
    environment.set_unknown_method_callback(method);
    for name in ["bool", "split", "lines", "chain", "zip"] {
        environment.remove_filter(name);
    }
    environment.remove_global("debug");
    environment.add_function(BOUNDED, |state: &mut State, value: Value| bounded(state, value, true));
    environment.add_function(BOUNDED_PART, |state: &mut State, value: Value| bounded(state, value, false));
    environment.add_function("range", |values: Rest<Value>| range(&values));
    environment.add_function("dict", |state: &mut State, pairs: Option<Value>, named: Kwargs| {
        bounded(state, dict(pairs, &named)?, false)
    });
    environment.add_filter(PERCENT_FILTER, |state: &mut State, text: Value, value: Value| {
        texts::percent_format(state, &text, &value)
    });
    add_filters(&mut environment);
    add_tests(&mut environment);
    environment
}

type Filter = fn(&mut State, Arguments) -> Result<Value, Error>;

const FILTERS: &[(&str, Filter)] = &[
    ("abs", numbers::abs),
    ("attr", sequences::attr),
    ("basename", data::basename),
    ("batch", sequences::batch),
    ("capitalize", texts::capitalize),
    ("center", texts::center),
    ("count", sequences::count),
    ("d", texts::default),
    ("decrypt_kv", context::decrypt_kv),
    ("default", texts::default),
    ("dictsort", sequences::dictsort),
    ("dirname", data::dirname),
    ("e", |_, arguments| texts::plain(arguments, texts::escaped)),
    ("escape", |_, arguments| texts::plain(arguments, texts::escaped)),
    ("filesizeformat", numbers::filesizeformat),
    ("first", sequences::first),
    ("float", numbers::float),
    ("forceescape", |_, arguments| texts::plain(arguments, texts::escaped)),
    ("format", texts::format),
    ("from_json_string", data::from_json_string),
    ("from_yaml_string", data::from_yaml_string),
    ("groupby", sequences::groupby),
    ("indent", texts::indent),
    ("int", numbers::int),
    ("items", sequences::dict_items),
    ("join", sequences::join),
    ("json_escape", data::json_escape),
    ("jsonpath_query", jsonpath::jsonpath_query),
    ("last", sequences::last),
    ("length", sequences::count),
    ("list", sequences::list),
    ("lower", |_, arguments| texts::plain(arguments, str::to_lowercase)),
    ("map", sequences::map),
    ("max", |state, arguments| sequences::extreme(state, arguments, Ordering::Greater)),
    ("min", |state, arguments| sequences::extreme(state, arguments, Ordering::Less)),
    ("regex_match", regexes::regex_match),
    ("regex_replace", regexes::regex_replace),
    ("regex_search", regexes::regex_search),
    ("regex_substring", regexes::regex_substring),
    ("reject", |state, arguments| sequences::select(state, arguments, false, false)),
    ("rejectattr", |state, arguments| sequences::select(state, arguments, true, false)),
    ("replace", texts::replace),
    ("reverse", sequences::reverse),
    ("round", numbers::round),
    ("safe", texts::string),
    ("select", |state, arguments| sequences::select(state, arguments, false, true)),
    ("selectattr", |state, arguments| sequences::select(state, arguments, true, true)),
    ("slice", sequences::slice),
    ("sort", sequences::sort),
    ("string", texts::string),
    ("striptags", |_, arguments| texts::plain(arguments, texts::without_tags)),
    ("sum", sequences::sum),
    ("title", |_, arguments| texts::plain(arguments, texts::titled)),
    ("to_complex", data::to_complex),
    ("to_human_time_from_seconds", durations::to_human_time_from_seconds),
    ("to_json_string", data::to_json_string),
    ("to_yaml_string", data::to_yaml_string),
    ("tojson", data::tojson),
    ("trim", texts::trim),
    ("truncate", texts::truncate),
    ("unique", sequences::unique),
    ("upper", |_, arguments| texts::plain(arguments, str::to_uppercase)),
    ("urlencode", texts::urlencode),
    ("use_none", data::use_none),
    ("version_bump_major", |_, arguments| versions::version_bump(arguments, 0)),
    ("version_bump_minor", |_, arguments| versions::version_bump(arguments, 1)),
    ("version_bump_patch", |_, arguments| versions::version_bump(arguments, 2)),
    ("version_compare", versions::version_compare),
    ("version_equal", |_, arguments| versions::version_is(arguments, Ordering::Equal)),
    ("version_less_than", |_, arguments| versions::version_is(arguments, Ordering::Less)),
    ("version_match", versions::version_match),
    ("version_more_than", |_, arguments| versions::version_is(arguments, Ordering::Greater)),
    ("version_strip_patch", versions::version_strip_patch),
    ("wordcount", texts::wordcount),
    ("wordwrap", texts::wordwrap),
    ("xmlattr", texts::xmlattr),
];

fn add_filters(environment: &mut Environment<'static>) {
    for (name, filter) in FILTERS {
        environment.add_filter(*name, move |state: &mut State, values: Rest<ValueOrKwargs>| {
            let value = filter(state, arguments(name, values))?;
            bounded(state, value, true)
        });
    }
}

const TESTS: &[(&str, Filter)] = &[
    ("boolean", |_, arguments| conditions::of_value(arguments, |value| value.kind() == ValueKind::Bool)),
    ("callable", |_, arguments| conditions::of_value(arguments, conditions::is_callable)),
    ("filter", |state, arguments| conditions::is_known(state, arguments, minijinja::tests::is_filter)),
    ("iterable", |_, arguments| conditions::is_iterable(arguments)),
    ("test", |state, arguments| conditions::is_known(state, arguments, minijinja::tests::is_test)),
    ("float", |_, arguments| {
        conditions::of_value(arguments, |value| value.kind() == ValueKind::Number && !value.is_integer())
    }),
    ("number", |_, arguments| conditions::of_value(arguments, conditions::is_number)),
    ("sequence", |_, arguments| conditions::of_value(arguments, conditions::is_sequence)),
    ("lower", |_, arguments| conditions::is_case(arguments, false)),
    ("upper", |_, arguments| conditions::is_case(arguments, true)),
    ("even", |_, arguments| parity(arguments, 0.0)),
    ("odd", |_, arguments| parity(arguments, 1.0)),
    ("divisibleby", |_, arguments| {
        let [value, divisor] = arguments.bind(["value", "num"], 2)?;
        conditions::has_rest(&value.unwrap_or_default(), &divisor.unwrap_or_default(), 0.0)
    }),
    ("in", conditions::is_in),
    ("eq", |_, arguments| conditions::is_equal(arguments, true)),
    ("==", |_, arguments| conditions::is_equal(arguments, true)),
    ("equalto", |_, arguments| conditions::is_equal(arguments, true)),
    ("ne", |_, arguments| conditions::is_equal(arguments, false)),
    ("!=", |_, arguments| conditions::is_equal(arguments, false)),
    ("lt", |_, arguments| conditions::is_ordered(arguments, "<", Ordering::is_lt)),
    ("<", |_, arguments| conditions::is_ordered(arguments, "<", Ordering::is_lt)),
    ("lessthan", |_, arguments| conditions::is_ordered(arguments, "<", Ordering::is_lt)),
    ("le", |_, arguments| conditions::is_ordered(arguments, "<=", Ordering::is_le)),
    ("<=", |_, arguments| conditions::is_ordered(arguments, "<=", Ordering::is_le)),
    ("gt", |_, arguments| conditions::is_ordered(arguments, ">", Ordering::is_gt)),
    (">", |_, arguments| conditions::is_ordered(arguments, ">", Ordering::is_gt)),
    ("greaterthan", |_, arguments| conditions::is_ordered(arguments, ">", Ordering::is_gt)),
    ("ge", |_, arguments| conditions::is_ordered(arguments, ">=", Ordering::is_ge)),
    (">=", |_, arguments| conditions::is_ordered(arguments, ">=", Ordering::is_ge)),
];

fn add_tests(environment: &mut Environment<'static>) {
    for (name, test) in TESTS {
        environment.add_test(*name, move |state: &mut State, values: Rest<ValueOrKwargs>| {
            test(state, arguments(name, values)).map(|value| value.is_true())
        });
    }
}

fn parity(arguments: Arguments, rest: f64) -> Result<Value, Error> {
    let [value] = arguments.bind(["value"], 1)?;
    conditions::has_rest(&value.unwrap_or_default(), &Value::from(2), rest)
}

fn arguments(name: &'static str, values: Rest<ValueOrKwargs>) -> Arguments {
    let values: Vec<Value> = values.0.into_iter().map(ValueOrKwargs::into_value).collect();
    Arguments::new(name, &values)
}

/// `range`, with the limit of Jinja's sandbox.
fn range(values: &[Value]) -> Result<Value, Error> {
    let numbers: Result<Vec<i128>, Error> = values.iter().map(strict_int).collect();
    let (start, stop, step) = match numbers?.as_slice() {
        [stop] => (0, *stop, 1),
        [start, stop] => (*start, *stop, 1),
        [start, stop, step] => (*start, *stop, *step),
        _ => return Err(failure("range expected 1 to 3 arguments")),
    };
    let too_large = || failure("the numbers of the range are too large");
    let distance = stop.checked_sub(start).ok_or_else(too_large)?;
    let len = match step {
        0 => return Err(failure("range() arg 3 must not be zero")),
        step if (distance > 0) != (step > 0) || distance == 0 => 0,
        step => {
            (distance.checked_abs().ok_or_else(too_large)? - 1) / step.checked_abs().ok_or_else(too_large)?
                + 1
        }
    };
    if len > TEMPLATE_RANGE_ITEMS_MAX {
        return Err(failure(format!(
            "Range too big. The sandbox blocks ranges larger than MAX_RANGE ({TEMPLATE_RANGE_ITEMS_MAX})."
        )));
    }
    let len = usize::try_from(len).map_err(|_| too_large())?;
    Ok(Value::from_object(Range { start, stop, step, len }))
}

/// `dict`: a dict of pairs, and of named values.
fn dict(pairs: Option<Value>, named: &Kwargs) -> Result<Value, Error> {
    let mut entries: Vec<(Value, Value)> = Vec::new();
    if let Some(pairs) = pairs {
        for item in pairs.try_iter()?.checked() {
            let item = item?;
            if pairs.kind() == ValueKind::Map {
                entries.push((item.clone(), pairs.get_item(&item)?));
                continue;
            }
            let pair: Vec<Value> = item.try_iter()?.collect();
            let [key, value] = <[Value; 2]>::try_from(pair)
                .map_err(|_| failure("a dict is made of pairs of a key and a value"))?;
            entries.push((key, value));
        }
    }
    for name in named.args() {
        entries.push((Value::from(name), named.peek(name)?));
    }
    for (key, _) in &entries {
        // Lists and dicts have no fixed value to be found by.
        if matches!(key.kind(), ValueKind::Map | ValueKind::Seq) && !key.is_tuple() {
            return Err(failure(format!("unhashable type: '{}'", crate::python::values::type_name(key))));
        }
        text(key)?;
    }
    Ok(Value::from_pairs(entries))
}
