//! Refuses requests before reading their bodies: those for another host, with too large a body, or with changes from
//! a page of another origin.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{
    AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, HOST, ORIGIN, TRANSFER_ENCODING,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, Version};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::broker::Broker;
use crate::config::{HostName, Origin};
use crate::peers::host_names::{UNKNOWN_HOST, is_host_known, is_own};

/// Fetch Metadata: the header in which browsers relate the requesting page to the target host.
const SEC_FETCH_SITE: &str = "sec-fetch-site";

/// The refusal of a change requested by a page of another origin.
const FOREIGN_PAGE: Refusal = (
    StatusCode::FORBIDDEN,
    "a page of another origin changes nothing here; send the request from a program, without `Origin`\n",
);

/// The refusal of a body type that pages may send without a CORS preflight.
const NOT_JSON: Refusal = (
    StatusCode::UNSUPPORTED_MEDIA_TYPE,
    "a body is JSON and says so; add the header `Content-Type: application/json`\n",
);

/// The refusal of a form that may come from a page.
const FORM_OF_PAGE: Refusal = (
    StatusCode::FORBIDDEN,
    "a form is taken with a login in the header `Authorization` and without cookies; or send its file with the header \
     `Content-Type: application/json`\n",
);

/// The status and text of a refusal.
type Refusal = (StatusCode, &'static str);

/// Whether a host, as a request names it with or without its port, is this broker's own: an IP address, `localhost`, or a
/// name of the settings. A page that a browser has from another name may have led that name here (SECURITY WEB-02,
/// ROOM-15).
pub fn is_own_host(broker: &Broker, host: &str) -> bool {
    is_host_known(host.as_bytes(), &broker.settings().config.broker.host_names)
}

/// The rules of a listener for requests. The host names are those of the settings, besides `localhost` and the
/// broker's addresses.
#[derive(Debug)]
pub struct Guarded {
    broker: Broker,
    body_bytes_max: u64,
    /// The path that takes forms too.
    form_path: Option<&'static str>,
}

impl Guarded {
    /// Rules with a limit on the bytes of a body.
    pub fn new(broker: &Broker, body_bytes_max: u64) -> Arc<Guarded> {
        Arc::new(Guarded { broker: broker.clone(), body_bytes_max, form_path: None })
    }

    /// Rules of a listener where programs may upload a form to `path`.
    pub fn with_form_at(broker: &Broker, body_bytes_max: u64, path: &'static str) -> Arc<Guarded> {
        Arc::new(Guarded { broker: broker.clone(), body_bytes_max, form_path: Some(path) })
    }

    /// The same rules with another limit.
    #[must_use]
    pub fn with_body(&self, body_bytes_max: u64) -> Arc<Guarded> {
        Arc::new(Guarded { broker: self.broker.clone(), body_bytes_max, form_path: self.form_path })
    }
}

/// Passes a request on or refuses it.
pub async fn guard(State(guarded): State<Arc<Guarded>>, request: Request, next: Next) -> Response {
    let settings = guarded.broker.settings();
    let (host_names, bytes_max) = (&settings.config.broker.host_names, guarded.body_bytes_max);
    let takes_form = guarded.form_path.is_some_and(|path| request.uri().path() == path);
    let checked = check(request.version(), request.uri(), request.headers(), host_names, bytes_max)
        .and_then(|()| check_change(request.method(), request.headers(), takes_form));
    match checked {
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
) -> Result<(), Refusal> {
    check_body(headers, body_bytes_max)?;
    let mut hosts = headers.get_all(HOST).iter();
    // HTTP/1.0 has no Host header; load balancers' probes use it, browsers never do.
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

/// A body has exactly one Content-Length (SECURITY WEB-07).
fn check_body(headers: &HeaderMap, bytes_max: u64) -> Result<(), Refusal> {
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

/// Changes must come from a program or a page of this host, with a JSON body (SECURITY WEB-03). Browsers send form
/// types across origins without a preflight, and pages cannot omit `Origin` or `Sec-Fetch-Site`. Where a form is taken,
/// its login is in a header and there are no cookies, which a browser would add.
fn check_change(method: &Method, headers: &HeaderMap, takes_form: bool) -> Result<(), Refusal> {
    if method.is_safe() {
        return Ok(());
    }
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let is_foreign_origin = |origin: &HeaderValue| {
        let origin = origin.to_str().ok().and_then(|origin| origin.parse::<Origin>().ok());
        !origin.is_some_and(|origin| origin.is_of_host(host))
    };
    let is_foreign_site = |site: &HeaderValue| site != "same-origin" && site != "none";
    if headers.get_all(ORIGIN).iter().any(is_foreign_origin)
        || headers.get_all(SEC_FETCH_SITE).iter().any(is_foreign_site)
    {
        return Err(FOREIGN_PAGE);
    }
    let has_body = headers
        .get(CONTENT_LENGTH)
        .is_some_and(|length| length.as_bytes().iter().any(|digit| *digit != b'0'));
    let mut types = headers.get_all(CONTENT_TYPE).iter();
    match (types.next(), types.next()) {
        _ if !has_body => Ok(()),
        (Some(kind), None) if is_of_type(kind, "application/json") => Ok(()),
        (Some(kind), None) if takes_form && is_of_type(kind, "multipart/form-data") => {
            match headers.contains_key(AUTHORIZATION) && !headers.contains_key(COOKIE) {
                true => Ok(()),
                false => Err(FORM_OF_PAGE),
            }
        }
        _ => Err(NOT_JSON),
    }
}

/// Whether a content type is this one, with any parameters.
fn is_of_type(kind: &HeaderValue, wanted: &str) -> bool {
    let essence = kind.to_str().ok().and_then(|kind| kind.split(';').next());
    essence.is_some_and(|essence| essence.trim().eq_ignore_ascii_case(wanted))
}

#[cfg(test)]
mod tests {
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

    fn change_of(method: &Method, headers: &[(&'static str, &str)]) -> u16 {
        upload_of(method, headers, false)
    }

    fn upload_of(method: &Method, headers: &[(&'static str, &str)], takes_form: bool) -> u16 {
        let mut map = HeaderMap::from_iter([(HOST, HeaderValue::from_static("mq.example:15672"))]);
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_str(value).unwrap());
        }
        check_change(method, &map, takes_form).map_or_else(|(status, _)| status.as_u16(), |()| 200)
    }

    /// SECURITY WEB-02, WEB-03.
    #[test]
    fn a_page_of_another_origin_changes_nothing() {
        for (origin, expected) in [
            ("http://mq.example:15672", 200),
            ("https://mq.example:15672", 200),
            ("HTTP://MQ.example:15672", 200),
            ("http://mq.example", 403),
            ("http://mq.example:15673", 403),
            ("http://mq.example:156720", 403),
            ("http://evil.example", 403),
            ("http://mq.example:15672.evil.example", 403),
            ("http://evil.example/mq.example:15672", 403),
            ("mq.example:15672", 403),
            ("null", 403),
            ("", 403),
        ] {
            for method in [Method::POST, Method::PUT, Method::DELETE, Method::PATCH] {
                assert_eq!(change_of(&method, &[("origin", origin)]), expected, "{method} of {origin}");
            }
            assert_eq!(change_of(&Method::GET, &[("origin", origin)]), 200, "{origin} changes nothing");
        }
        for (site, expected) in
            [("same-origin", 200), ("none", 200), ("same-site", 403), ("cross-site", 403), ("", 403)]
        {
            assert_eq!(change_of(&Method::POST, &[("sec-fetch-site", site)]), expected, "{site}");
        }
        let both = [("origin", "http://mq.example:15672"), ("origin", "http://evil.example")];
        assert_eq!(change_of(&Method::POST, &both), 403);
    }

    /// SECURITY WEB-03.
    #[test]
    fn the_body_of_a_change_is_json() {
        for (kind, expected) in [
            ("application/json", 200),
            ("Application/JSON; charset=utf-8", 200),
            ("application/json ;charset=utf-8", 200),
            ("text/plain", 415),
            ("application/x-www-form-urlencoded", 415),
            ("multipart/form-data; boundary=x", 415),
            ("text/plain; application/json", 415),
            ("application/jsonp", 415),
            ("", 415),
        ] {
            assert_eq!(
                change_of(&Method::PUT, &[("content-length", "2"), ("content-type", kind)]),
                expected,
                "{kind}"
            );
            assert_eq!(
                change_of(&Method::PUT, &[("content-length", "0"), ("content-type", kind)]),
                200,
                "{kind}"
            );
            assert_eq!(
                change_of(&Method::GET, &[("content-length", "2"), ("content-type", kind)]),
                200,
                "{kind}"
            );
        }
        assert_eq!(change_of(&Method::DELETE, &[]), 200, "without a body");
        assert_eq!(change_of(&Method::POST, &[("content-length", "2")]), 415, "without a type");
        let twice =
            [("content-length", "2"), ("content-type", "application/json"), ("content-type", "text/plain")];
        assert_eq!(change_of(&Method::POST, &twice), 415);
    }

    /// SECURITY WEB-03.
    #[test]
    fn a_form_is_taken_from_programs_alone() {
        let form = [("content-length", "2"), ("content-type", "multipart/form-data; boundary=x")];
        let login = ("authorization", "Basic Z3Vlc3Q6Z3Vlc3Q=");
        for (beside, expected) in [
            (&[login][..], 200),
            (&[login, ("origin", "http://mq.example:15672")], 200),
            (&[], 403),
            (&[("cookie", "imori_session=x")], 403),
            (&[login, ("cookie", "other=x")], 403),
            (&[login, ("origin", "http://evil.example")], 403),
            (&[login, ("origin", "null")], 403),
            (&[login, ("sec-fetch-site", "same-site")], 403),
            (&[login, ("content-type", "application/json")], 415),
        ] {
            let headers = [&form[..], beside].concat();
            assert_eq!(upload_of(&Method::POST, &headers, true), expected, "{beside:?}");
            assert_ne!(upload_of(&Method::POST, &headers, false), 200, "{beside:?} elsewhere");
        }
        let plain = [("content-length", "2"), ("content-type", "text/plain"), login];
        assert_eq!(upload_of(&Method::POST, &plain, true), 415);
    }
}
