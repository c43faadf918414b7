//! Headers of requests.

use imori_automation::webhooks::Headers;

use crate::webhooks_webhook::{event, settings};

#[test]
fn names_are_those_of_stackstorm() {
    // Names behind the arrow are from WebOb 1.8.
    for (name, title) in [
        ("x-github-event", "X-Github-Event"),
        ("X-GitHub-Event", "X-Github-Event"),
        ("content-type", "Content-Type"),
        ("x-hub-signature-256", "X-Hub-Signature-256"),
        ("x-st2foo", "X-St2Foo"),
        ("ETag", "Etag"),
    ] {
        let payload = event(&settings(r#"{"url":"a"}"#), &[(name, "")], "").payload;
        let headers = payload.get("headers").unwrap().as_map().unwrap();
        let names: Vec<&str> = headers.iter().map(|(name, _)| name).collect();
        assert_eq!(names, [title]);
    }
}

#[test]
fn payload_leaves_out_what_authenticates() {
    let lines = [
        ("host", "a"),
        ("ST2-API-KEY", "k"),
        ("x-auth-token", "t"),
        ("cookie", "c"),
        ("authorization", "Basic x"),
        ("st2-trace-tag", "tag"),
        ("x-own", "1"),
        ("x-list", "1"),
        ("X-List", "2"),
    ];
    let token = settings(r#"{"url":"a","scheme":"token","secret":"1","header":"X-OWN"}"#);
    let payload = event(&token, &lines, "").payload;
    assert_eq!(payload.get("headers").unwrap().to_json(), r#"{"Host":"a","X-List":"1,2"}"#);
    assert_eq!(payload.get("headers_lower").unwrap().to_json(), r#"{"host":"a","x-list":"1,2"}"#);
    let headers: Headers = lines.into_iter().collect();
    assert_eq!(headers.trace_tag(), Some("tag"));
    assert!(headers.is_repeated("x-LIST"));
    assert!(!headers.is_repeated("host"));
}

#[test]
fn bytes_are_read_as_latin_1() {
    let headers: Headers = [("x", [0x61, 0xe4])].into_iter().collect();
    assert_eq!(headers.value("X"), Some("aä"));
}
