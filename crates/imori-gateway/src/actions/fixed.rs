//! Responds with what the route says.

use http::header::{CONTENT_TYPE, LOCATION};
use http::{HeaderValue, Response, StatusCode};

use crate::facts::Facts;
use crate::respond::{Body, problem};
use crate::routes::ReturnAction;

/// The response of a route that has one.
pub(super) fn respond(action: &ReturnAction, facts: &Facts) -> Response<Body> {
    let body = action.body.as_ref().map(|body| body.render(facts).into_owned());
    let has_body = body.is_some();
    let mut response = Response::new(body.map_or(Body::Full(None), Body::full));
    *response.status_mut() = action.status;
    let headers = response.headers_mut();
    if has_body {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    }
    for (name, value) in &action.headers {
        headers.insert(name, value.clone());
    }
    if let Some(location) = &action.location {
        match HeaderValue::from_str(&location.render(facts)) {
            Ok(value) => drop(headers.insert(LOCATION, value)),
            Err(_) => {
                return problem(StatusCode::BAD_REQUEST, "the location would have characters of no header");
            }
        }
    }
    response
}
