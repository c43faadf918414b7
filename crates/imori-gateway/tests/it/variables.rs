//! nginx's variables.

use http::{HeaderMap, HeaderName, HeaderValue};
use imori_gateway::for_tests::{Connection, Request, RequestContext, VARIABLES_MAX};

fn context() -> RequestContext {
    let mut headers = HeaderMap::new();
    for (name, value) in [
        ("host", "Api.Example:8080"),
        ("cookie", "a=1; session=xyz"),
        ("x-a-b", "first"),
        ("x-a-b", "second"),
        ("x-forwarded-for", "10.0.0.1"),
    ] {
        headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    let request = Request {
        path: "/a b".to_owned(),
        query: Some("Key=1%20&flag".to_owned()),
        raw_uri: "/a%20b?Key=1%20&flag".to_owned(),
        headers,
        ..Request::default()
    };
    let connection = Connection {
        peer: "192.0.2.7:4711".parse().expect("an address"),
        local: "127.0.0.1:8080".parse().expect("an address"),
        ..Connection::default()
    };
    RequestContext::new(request, connection)
}

#[test]
fn built_in_variables_have_nginx_values() {
    let context = context();
    context.document_root.replace("/srv".to_owned());
    context.parameters.borrow_mut().push(("id".to_owned(), "7".to_owned()));
    for (name, expected) in [
        ("host", "api.example"),
        ("http_host", "Api.Example:8080"),
        ("http_x_a_b", "first, second"),
        ("cookie_session", "xyz"),
        ("arg_key", "1%20"),
        ("arg_flag", ""),
        ("args", "Key=1%20&flag"),
        ("is_args", "?"),
        ("uri", "/a b"),
        ("request_uri", "/a%20b?Key=1%20&flag"),
        ("request", "GET /a%20b?Key=1%20&flag HTTP/1.1"),
        ("request_filename", "/srv/a b"),
        ("remote_addr", "192.0.2.7"),
        ("remote_port", "4711"),
        ("server_port", "8080"),
        ("scheme", "http"),
        ("https", ""),
        ("status", "200"),
        ("proxy_add_x_forwarded_for", "10.0.0.1, 192.0.2.7"),
        ("id", "7"),
    ] {
        assert_eq!(context.variable(name).as_deref(), Some(expected), "{name}");
    }
    for name in ["arg_none", "cookie_none", "http_none", "remote_user", "none", "http_", "arg_"] {
        assert_eq!(context.variable(name), None, "{name}");
    }
    assert_eq!(context.variable("request_id").map(|id| id.len()), Some(32));
    let time = context.variable("time_local").expect("there is a time");
    assert_eq!(time.len(), "27/Nov/2026:07:39:03 +0000".len(), "{time}");
    assert_eq!(
        context.variable("msec").and_then(|msec| msec.split_once('.').map(|(_, ms)| ms.len())),
        Some(3)
    );
}

#[test]
fn variable_that_was_set_hides_the_built_in_one() {
    let context = context();
    assert!(context.set_variable("host", Some("other")));
    assert_eq!(context.variable("host").as_deref(), Some("other"));
    assert!(context.set_variable("host", None));
    assert_eq!(context.variable("host").as_deref(), Some("api.example"));
    assert!(context.set_variable("args", Some("z=1")));
    assert_eq!(context.variable("arg_z").as_deref(), Some("1"));
    assert!(context.has_variable("remote_user") && !context.has_variable("arg_foo"));
}

#[test]
fn number_of_variables_is_limited() {
    let context = context();
    for number in 0..VARIABLES_MAX {
        assert!(context.set_variable(&format!("v{number}"), Some("1")));
    }
    assert!(!context.set_variable("one_more", Some("1")));
    assert!(context.set_variable("v0", Some("2")), "one that is there may change");
}
