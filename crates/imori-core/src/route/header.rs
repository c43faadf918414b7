//! Headers exchanges: matching a binding's arguments against a message's headers.
//!
//! The argument `x-match` selects the mode: `all` (the default) and `any` ignore arguments with
//! names that begin with `x-`; `all-with-x` and `any-with-x` ignore only `x-match` itself. An
//! argument without a value matches any header of that name; any other needs the same value and
//! type.

use std::borrow::Cow;

use super::arguments::Arguments;
use crate::message::Value;

/// The headers of a message, which are read only if a headers exchange takes part.
pub trait Headers {
    /// Calls `visit` with each name and value, in order.
    fn visit<'a>(&'a self, visit: &mut dyn FnMut(Cow<'a, [u8]>, Value<'a>));
}

/// A message without headers.
#[derive(Debug, Clone, Copy)]
pub struct NoHeaders;

impl Headers for NoHeaders {
    fn visit<'a>(&'a self, _: &mut dyn FnMut(Cow<'a, [u8]>, Value<'a>)) {}
}

/// An `x-match` argument with a value other than the four modes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnknownMatch;

/// Checks the `x-match` argument of a binding.
pub(crate) fn check_match(arguments: &Arguments) -> Result<(), UnknownMatch> {
    match_kind(arguments).map(|_| ()).ok_or(UnknownMatch)
}

/// A message's headers sorted by name; the first of a repeated name counts.
pub(crate) struct SortedHeaders<'a> {
    headers: Vec<(Cow<'a, [u8]>, Value<'a>)>,
}

impl<'a> SortedHeaders<'a> {
    pub(crate) fn new(source: &'a dyn Headers) -> SortedHeaders<'a> {
        let mut headers = Vec::new();
        source.visit(&mut |name, value| headers.push((name, value)));
        headers.sort_by(|(one, _), (other, _)| one.cmp(other));
        headers.dedup_by(|(later, _), (earlier, _)| later == earlier);
        SortedHeaders { headers }
    }

    fn value(&self, name: &[u8]) -> Option<&Value<'a>> {
        let index = self.headers.binary_search_by(|(found, _)| (**found).cmp(name)).ok()?;
        self.headers.get(index).map(|(_, value)| value)
    }

    /// Whether a binding with these arguments takes the message.
    pub(crate) fn is_match(&self, arguments: &Arguments) -> bool {
        let kind = match_kind(arguments).unwrap_or_default();
        let mut considered = arguments
            .entries()
            .iter()
            .filter(|(name, _)| kind.considers(name.as_bytes()))
            .map(|(name, wanted)| self.value(name.as_bytes()).is_some_and(|found| agrees(wanted, found)));
        if kind.is_any { considered.any(|found| found) } else { considered.all(|found| found) }
    }
}

/// The meaning of the `x-match` argument.
#[derive(Debug, Default, Clone, Copy)]
struct MatchKind {
    is_any: bool,
    with_x: bool,
}

impl MatchKind {
    fn considers(self, name: &[u8]) -> bool {
        if self.with_x { name != b"x-match" } else { !name.starts_with(b"x-") }
    }
}

fn match_kind(arguments: &Arguments) -> Option<MatchKind> {
    let Some((_, value)) = arguments.entries().iter().find(|(name, _)| name.as_bytes() == b"x-match") else {
        return Some(MatchKind::default());
    };
    let Value::Text(text) = value else {
        return None;
    };
    match &**text {
        b"all" => Some(MatchKind { is_any: false, with_x: false }),
        b"any" => Some(MatchKind { is_any: true, with_x: false }),
        b"all-with-x" => Some(MatchKind { is_any: false, with_x: true }),
        b"any-with-x" => Some(MatchKind { is_any: true, with_x: true }),
        _ => None,
    }
}

fn agrees(wanted: &Value<'_>, found: &Value<'_>) -> bool {
    match (wanted, found) {
        (Value::Null, _) => true,
        // Protocols differ in which numbers they encode as signed.
        (Value::Int(signed), Value::Uint(unsigned)) | (Value::Uint(unsigned), Value::Int(signed)) => {
            u64::try_from(*signed) == Ok(*unsigned)
        }
        _ => wanted == found,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::Name;

    struct Rows(Vec<(&'static str, Value<'static>)>);

    impl Headers for Rows {
        fn visit<'a>(&'a self, visit: &mut dyn FnMut(Cow<'a, [u8]>, Value<'a>)) {
            for (name, value) in &self.0 {
                visit(Cow::Borrowed(name.as_bytes()), value.clone());
            }
        }
    }

    fn text(text: &'static str) -> Value<'static> {
        Value::text(text.as_bytes())
    }

    fn arguments(entries: &[(&str, Value<'static>)]) -> Arguments {
        Arguments::new(entries.iter().map(|(name, value)| (Name::from(*name), value.clone())))
    }

    #[test]
    fn arguments_match_headers_as_x_match_says() {
        let headers = Rows(vec![
            ("format", text("pdf")),
            ("pages", Value::Int(3)),
            ("x-kind", text("report")),
            ("format", text("doc")),
        ]);
        let headers = SortedHeaders::new(&headers);
        let pdf = || ("format", text("pdf"));
        let doc = || ("format", text("doc"));
        for (entries, expected) in [
            (vec![], true),
            (vec![pdf()], true),
            (vec![doc()], false),
            (vec![pdf(), ("pages", Value::Int(3))], true),
            (vec![pdf(), ("pages", Value::Uint(3))], true),
            (vec![pdf(), ("pages", Value::Float(3.0))], false),
            (vec![pdf(), ("pages", text("3"))], false),
            (vec![pdf(), ("missing", Value::Null)], false),
            (vec![pdf(), ("pages", Value::Null)], true),
            (vec![pdf(), ("x-kind", text("other"))], true),
            (vec![("x-match", text("all")), pdf(), ("pages", Value::Int(4))], false),
            (vec![("x-match", text("any")), pdf(), ("pages", Value::Int(4))], true),
            (vec![("x-match", text("any")), doc(), ("pages", Value::Int(4))], false),
            (vec![("x-match", text("any"))], false),
            (vec![("x-match", text("any")), ("x-kind", text("report"))], false),
            (vec![("x-match", text("any-with-x")), ("x-kind", text("report"))], true),
            (vec![("x-match", text("any-with-x")), ("x-kind", text("other"))], false),
            (vec![("x-match", text("all-with-x")), pdf(), ("x-kind", text("report"))], true),
            (vec![("x-match", text("all-with-x")), pdf(), ("x-kind", text("other"))], false),
        ] {
            assert_eq!(headers.is_match(&arguments(&entries)), expected, "{entries:?}");
        }
    }

    #[test]
    fn unknown_x_match_is_found() {
        for (value, expected) in [(text("some"), false), (Value::Int(1), false), (text("any"), true)] {
            assert_eq!(check_match(&arguments(&[("x-match", value)])).is_ok(), expected);
        }
    }
}
