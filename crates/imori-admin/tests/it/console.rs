//! The pages of the web console and their files.

use axum::http::header::ACCEPT_ENCODING;
use axum::http::{HeaderMap, HeaderValue};
use imori_admin::for_tests::{FILES, File, PAGE_HEADERS, accepts_gzip, console_page};

#[test]
fn files_are_found_by_their_paths() {
    for file in FILES {
        assert!(std::ptr::eq(File::named(file.path).unwrap(), file), "{}", file.path);
    }
    assert!(File::named("../Cargo.toml").is_none() && File::named("").is_none());
}

#[test]
fn gzip_is_sent_to_clients_that_accept_it() {
    for (accepted, expected) in [
        (&[][..], false),
        (&["gzip, deflate, br"], true),
        (&["br;q=1.0, GZIP;q=0.5"], true),
        (&["br", "gzip"], true),
        (&["gzip;q=0"], false),
        (&["gzip; q=0.000"], false),
        (&["identity"], false),
        (&["x-gzip"], false),
    ] {
        let mut headers = HeaderMap::new();
        for value in accepted {
            headers.append(ACCEPT_ENCODING, HeaderValue::from_static(value));
        }
        assert_eq!(accepts_gzip(&headers), expected, "{accepted:?}");
    }
}

#[test]
fn every_answer_has_the_headers_that_confine_a_page() {
    for path in ["", "queues", "assets/missing.js", "index.html"] {
        let answer = console_page(path, &HeaderMap::new());
        for (name, value) in PAGE_HEADERS {
            assert_eq!(answer.headers().get(&name).unwrap(), value, "{path}");
        }
    }
}
