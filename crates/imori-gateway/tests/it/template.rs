//! Templates of addresses and URLs.

use std::borrow::Cow;

use imori_gateway::for_tests::{Lookup, Template};

struct Names;

impl Lookup for Names {
    fn parameter(&self, name: &str) -> Option<Cow<'_, str>> {
        match name {
            "id" => Some("7".into()),
            "rest" => Some("a/b".into()),
            "wild" => Some("a.*".into()),
            "empty" => Some("".into()),
            _ => None,
        }
    }

    fn variable(&self, name: &str) -> Option<Cow<'_, str>> {
        (name == "host").then(|| "mq".into())
    }
}

#[test]
fn names_are_replaced() {
    for (text, expected) in [
        ("", ""),
        ("plain", "plain"),
        ("orders.{id}", "orders.7"),
        ("{{{id}}}", "{7}"),
        ("http://{$host}/{rest}?{$nothing}", "http://mq/a/b?"),
    ] {
        assert_eq!(Template::read(text).unwrap().render(&Names), expected, "{text}");
    }
}

#[test]
fn what_is_no_template_is_refused() {
    for text in ["{", "}", "{id", "id}", "{}", "{$}", "{a b}", "{a{b}"] {
        assert!(Template::read(text).is_err(), "{text}");
    }
}

#[test]
fn a_value_in_an_address_is_one_segment_of_it() {
    for (text, expected) in [
        ("o.{id}.x", Some("o.7.x")),
        ("o.{rest}", Some("o.a.b")),
        ("o.{wild}", None),
        ("o.{empty}", None),
        ("o.{unknown}", None),
    ] {
        let template = Template::read(text).unwrap();
        assert_eq!(template.render_subject(&Names, Some("rest")).ok().as_deref(), expected, "{text}");
    }
    let template = Template::read("o.{rest}").unwrap();
    assert!(template.render_subject(&Names, None).is_err(), "only the rest of a path has slashes");
}
