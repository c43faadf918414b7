//! Targets of requests: hosts and paths.

use http::{Version, uri::Authority};
use imori_gateway::for_tests::{Target, normal_path};

#[test]
fn paths_are_made_plain() {
    for (raw, expected) in [
        ("/", Ok("/")),
        ("/a/b", Ok("/a/b")),
        ("/a//b/", Ok("/a/b/")),
        ("/a/./b/../c", Ok("/a/c")),
        ("/a/..", Ok("/")),
        ("/%61%2Fb", Ok("/a/b")),
        ("/a%20b", Ok("/a b")),
        ("/..", Err(())),
        ("/%2e%2e/etc", Err(())),
        ("/a/..%2f..%2fetc", Err(())),
        ("/a%00", Err(())),
        ("/a%5cb", Err(())),
        ("/a\\b", Err(())),
        ("/%ff", Err(())),
        ("*", Err(())),
    ] {
        assert_eq!(normal_path(raw).as_deref().map_err(|_| ()), expected, "{raw}");
    }
}

#[test]
fn host_of_http2_has_its_port_where_origins_are_compared() {
    let request = http::Request::builder().version(Version::HTTP_2).uri("https://MQ.example:8443/x");
    let target = Target::of(&request.body(()).unwrap().into_parts().0).unwrap();
    assert_eq!(target.host, "mq.example");
    assert_eq!(target.authority.as_ref().map(Authority::as_str), Some("MQ.example:8443"));
}

#[test]
fn a_request_has_one_host() {
    for (hosts, expected) in [
        (&["mq.example"][..], Ok("mq.example")),
        (&["MQ.example:8080"], Ok("mq.example")),
        (&["[::1]:8080"], Ok("[::1]")),
        (&[], Err(())),
        (&["a", "b"], Err(())),
        (&["a b"], Err(())),
        (&["joe@a"], Err(())),
    ] {
        let mut request = http::Request::builder().uri("/x");
        for host in hosts {
            request = request.header("host", *host);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let target = Target::of(&parts);
        assert_eq!(target.as_ref().map(|target| target.host.as_str()).map_err(|_| ()), expected, "{hosts:?}");
    }
}
