//! Pages of other origins: which may ask, and what they are told (Fetch, 3.3: CORS).

use http::header::{ORIGIN, VARY};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode};

use crate::respond::{Body, problem};
use crate::routes::Route;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const ALLOW_ORIGIN: HeaderName = HeaderName::from_static("access-control-allow-origin");
const ALLOW_METHODS: HeaderName = HeaderName::from_static("access-control-allow-methods");
const ALLOW_HEADERS: HeaderName = HeaderName::from_static("access-control-allow-headers");
const REQUEST_HEADERS: HeaderName = HeaderName::from_static("access-control-request-headers");
const REQUEST_METHOD: HeaderName = HeaderName::from_static("access-control-request-method");

/// The method that a page asks about before it sends a request (Fetch, 4.8: CORS preflight).
pub(super) fn preflight_method(method: &Method, headers: &HeaderMap) -> Option<Method> {
    let asked = headers.get(REQUEST_METHOD).filter(|_| method == Method::OPTIONS)?;
    headers.contains_key(ORIGIN).then(|| Method::from_bytes(asked.as_bytes()).ok()).flatten()
}

/// The origin of a page that may read the response, if a page of another origin asks. Pages of origins that the route
/// does not name reach nothing that has to do with messages. `authority` is the request's own host, with its port.
pub(super) fn allowed_origin(
    route: &Route,
    headers: &HeaderMap,
    authority: &str,
) -> Result<Option<HeaderValue>, Response<Body>> {
    let Some(origin) = headers.get(ORIGIN) else {
        let is_foreign =
            headers.get(SEC_FETCH_SITE).is_some_and(|site| site == "cross-site" || site == "same-site");
        let is_refused = is_foreign && route.action.touches_messages() && route.origins.is_empty();
        return if is_refused { Err(foreign()) } else { Ok(None) };
    };
    let text = origin.to_str().unwrap_or_default();
    let own = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    if own.is_some_and(|own| own.eq_ignore_ascii_case(authority)) {
        return Ok(None);
    }
    if route.origins.iter().any(|allowed| allowed == "*" || allowed == text) {
        return Ok(Some(origin.clone()));
    }
    if route.action.touches_messages() { Err(foreign()) } else { Ok(None) }
}

fn foreign() -> Response<Body> {
    let message = "a page of another origin asks; name the origin in `origins` of the route";
    problem(StatusCode::FORBIDDEN, message)
}

pub(super) fn with_origin(mut response: Response<Body>, origin: Option<HeaderValue>) -> Response<Body> {
    if let Some(origin) = origin {
        response.headers_mut().insert(ALLOW_ORIGIN, origin);
        response.headers_mut().append(VARY, HeaderValue::from_static("origin"));
    }
    response
}

pub(super) fn preflight_answer(route: &Route, headers: &HeaderMap) -> Response<Body> {
    let mut response = Response::new(Body::Full(None));
    *response.status_mut() = StatusCode::NO_CONTENT;
    let methods = match route.methods.is_empty() {
        true => String::from("GET, HEAD, POST, PUT, PATCH, DELETE"),
        false => route.methods.iter().map(Method::as_str).collect::<Vec<_>>().join(", "),
    };
    if let Ok(methods) = HeaderValue::from_str(&methods) {
        response.headers_mut().insert(ALLOW_METHODS, methods);
    }
    if let Some(asked) = headers.get(REQUEST_HEADERS) {
        response.headers_mut().insert(ALLOW_HEADERS, asked.clone());
    }
    response
}
