//! Which requests are answered at all: those that name this broker and carry no more than they may.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{CONTENT_LENGTH, HOST, TRANSFER_ENCODING};
use axum::http::{HeaderMap, StatusCode, Uri, Version};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::config::HostName;
use crate::host_names::{UNKNOWN_HOST, is_host_known, is_own};
use crate::shared::Shared;

/// The requests that a listener answers.
pub(crate) struct Guarded {
    /// The broker, whose settings name this host, besides `localhost` and its addresses.
    pub(crate) shared: Arc<Shared>,
    /// Bytes of a body.
    pub(crate) body_bytes_max: u64,
}

/// Lets a request through, or answers why not.
pub(crate) async fn guard(State(guarded): State<Arc<Guarded>>, request: Request, next: Next) -> Response {
    let settings = guarded.shared.settings.load_full();
    let (host_names, bytes_max) = (&settings.config.broker.host_names, guarded.body_bytes_max);
    match check(request.version(), request.uri(), request.headers(), host_names, bytes_max) {
        Ok(()) => next.run(request).await,
        Err((status, reason)) => (status, [("connection", "close")], reason).into_response(),
    }
}

fn check(
    version: Version,
    uri: &Uri,
    headers: &HeaderMap,
    host_names: &[HostName],
    body_bytes_max: u64,
) -> Result<(), (StatusCode, &'static str)> {
    check_body(headers, body_bytes_max)?;
    let mut hosts = headers.get_all(HOST).iter();
    // HTTP/1.0 knows no Host. Probes of load balancers speak it, and browsers never do.
    if version < Version::HTTP_11 && !headers.contains_key(HOST) && uri.authority().is_none() {
        return Ok(());
    }
    let (Some(host), None) = (hosts.next(), hosts.next()) else {
        return Err((StatusCode::BAD_REQUEST, "a request names its host once\n"));
    };
    let is_target_known = uri.authority().is_none_or(|target| is_own(target, host_names));
    if !is_host_known(host.as_bytes(), host_names) || !is_target_known {
        return Err((StatusCode::MISDIRECTED_REQUEST, UNKNOWN_HOST));
    }
    Ok(())
}

/// A body has one length, and says it (SECURITY WEB-07).
fn check_body(headers: &HeaderMap, bytes_max: u64) -> Result<(), (StatusCode, &'static str)> {
    let mut lengths = headers.get_all(CONTENT_LENGTH).iter();
    let (length, is_repeated) = (lengths.next(), lengths.next().is_some());
    if headers.contains_key(TRANSFER_ENCODING) || is_repeated {
        return Err((
            StatusCode::BAD_REQUEST,
            "a body has one `Content-Length` and no `Transfer-Encoding`\n",
        ));
    }
    let Some(length) = length else { return Ok(()) };
    let digits = length.to_str().ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    match digits.and_then(|digits| digits.parse::<u64>().ok()) {
        Some(0) => Ok(()),
        Some(_) if bytes_max == 0 => Err((StatusCode::BAD_REQUEST, "a request has no body here\n")),
        Some(length) if length <= bytes_max => Ok(()),
        Some(_) => Err((StatusCode::PAYLOAD_TOO_LARGE, "the body is larger than the broker takes\n")),
        None => Err((StatusCode::BAD_REQUEST, "`Content-Length` is no number of bytes\n")),
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn status(uri: &str, headers: &[(&'static str, &str)]) -> u16 {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_str(value).unwrap());
        }
        check_of(Version::HTTP_11, uri, &map)
    }

    fn check_of(version: Version, uri: &str, headers: &HeaderMap) -> u16 {
        let host_names = ["mq.example".parse().unwrap()];
        let checked = check(version, &uri.parse().unwrap(), headers, &host_names, 0);
        checked.map_or_else(|(status, _)| status.as_u16(), |()| 200)
    }

    /// SECURITY WEB-02.
    #[test]
    fn only_requests_that_name_this_broker_are_answered() {
        for (host, expected) in [
            ("127.0.0.1:8222", 200),
            ("127.0.0.1", 200),
            ("127.0.0.1:9999", 200),
            ("[::1]:8222", 200),
            ("::1:8222", 200),
            ("192.0.2.1:8222", 200),
            ("localhost", 200),
            ("LocalHost:8222", 200),
            ("mq.example:8222", 200),
            ("MQ.EXAMPLE", 200),
            ("evil.example", 421),
            ("evil.example:8222", 421),
            ("mq.example.evil.example", 421),
            ("notmq.example", 421),
            ("localhost.evil.example", 421),
            ("127.0.0.1.evil.example", 421),
            ("127.0.0.1@evil.example", 421),
            ("evil.example@127.0.0.1", 421),
            ("null", 421),
            ("", 421),
            ("a b", 421),
        ] {
            assert_eq!(status("/varz", &[("host", host)]), expected, "{host}");
        }
        assert_eq!(status("/varz", &[]), 400, "no host at all");
        let none = HeaderMap::new();
        assert_eq!(check_of(Version::HTTP_10, "/varz", &none), 200, "HTTP/1.0 has no hosts");
        assert_eq!(check_of(Version::HTTP_10, "http://evil.example/varz", &none), 400);
        assert_eq!(status("/varz", &[("host", "localhost"), ("host", "evil.example")]), 400);
        assert_eq!(status("http://evil.example/varz", &[("host", "localhost")]), 421);
        assert_eq!(status("http://localhost/varz", &[("host", "localhost")]), 200);
    }

    /// SECURITY WEB-07.
    #[test]
    fn a_request_carries_nothing() {
        for (name, value, expected) in [
            ("content-length", "0", 200),
            ("content-length", "1", 400),
            ("content-length", "00", 200),
            ("content-length", "-1", 400),
            ("content-length", "+1", 400),
            ("transfer-encoding", "chunked", 400),
            ("transfer-encoding", "identity", 400),
        ] {
            assert_eq!(status("/varz", &[("host", "localhost"), (name, value)]), expected, "{name}: {value}");
        }
    }

    /// SECURITY WEB-07.
    #[test]
    fn a_body_has_one_length_within_the_limit() {
        for (lengths, expected) in [
            (&["10"][..], 200),
            (&["11"], 413),
            (&["18446744073709551616"], 400),
            (&["5", "5"], 400),
            (&["5", "6"], 400),
            (&["0x5"], 400),
        ] {
            let mut headers = HeaderMap::new();
            for length in lengths {
                headers.append(CONTENT_LENGTH, HeaderValue::from_str(length).unwrap());
            }
            let checked = check_body(&headers, 10);
            assert_eq!(checked.map_or_else(|(status, _)| status.as_u16(), |()| 200), expected, "{lengths:?}");
        }
    }
}
