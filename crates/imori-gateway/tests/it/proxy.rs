//! The URLs of proxied requests.

use std::borrow::Cow;

use http::Uri;
use imori_gateway::for_tests::{Encoded, Lookup};

struct Names;

impl Lookup for Names {
    fn parameter(&self, _: &str) -> Option<Cow<'_, str>> {
        Some("/a b/50%?x#y@z".into())
    }

    fn variable(&self, _: &str) -> Option<Cow<'_, str>> {
        Some("/a b%20?x=1&y".into())
    }
}

#[test]
fn values_become_parts_of_a_url() {
    let values = Encoded(&Names);
    for (value, expected) in [
        (values.parameter("rest"), "/a%20b/50%25%3Fx%23y%40z"),
        (values.variable("request_uri"), "/a%20b%20?x=1&y"),
    ] {
        let url = format!("http://h{}", value.unwrap());
        assert_eq!(url, format!("http://h{expected}"));
        assert_eq!(url.parse::<Uri>().unwrap().host(), Some("h"));
    }
}
