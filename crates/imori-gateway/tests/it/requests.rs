//! Headers and URLs of the requests of scripts.

use http::{HeaderMap, HeaderValue};
use imori_gateway::for_tests::{absolute, headers_of_lines, lines_of};

#[test]
fn headers_survive_as_lines() {
    let mut headers = HeaderMap::new();
    for (name, value) in
        [("a", "b: c"), ("set-cookie", "1"), ("set-cookie", "2"), ("empty", ""), ("z", "\t\u{e9}")]
    {
        headers.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
    assert_eq!(headers_of_lines(&lines_of(&headers)), headers);
}

#[test]
fn url_is_absolute_and_without_password() {
    for url in ["http://a", "https://a.example:8443/x?y=1#z", "http://[::1]:80/", "http://127.0.0.1"] {
        assert!(absolute(url).is_ok(), "{url}");
    }
    for url in
        ["", "/a", "ftp://a/", "http://", "http://u:p@host/", "http://a/ b", "http://a\n", "file:///etc"]
    {
        assert!(absolute(url).is_err(), "{url}");
    }
}
