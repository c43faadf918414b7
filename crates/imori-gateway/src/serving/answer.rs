//! Answers the requests of a connection.

use std::rc::Rc;

use http::header::{CONTENT_LENGTH, SERVER};
use http::{HeaderValue, Method, Request, Response};
use hyper::body::{Body as _, Incoming};
use hyper::upgrade::OnUpgrade;

use super::pipeline::respond;
use crate::asking::Asking;
use crate::facts::ConnectionOrigin;
use crate::request_body::RequestBody;
use crate::respond::Body;
use crate::worker::Worker;

/// Answers a request.
pub(crate) async fn answer(
    worker: Rc<Worker>,
    place: Rc<ConnectionOrigin>,
    request: Request<Incoming>,
) -> Response<Body> {
    let is_head = request.method() == Method::HEAD;
    let (mut parts, body) = request.into_parts();
    let upgrade = parts.extensions.remove::<OnUpgrade>();
    let asking = Asking { place, parts, body: RequestBody::Incoming(body), upgrade, depth: 0 };
    let mut response = respond(&worker, asking).await;
    response.headers_mut().entry(SERVER).or_insert(HeaderValue::from_static("imori"));
    if is_head {
        let length = response.body().size_hint().exact();
        if let Some(length) = length.filter(|_| !response.headers().contains_key(CONTENT_LENGTH)) {
            response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
        }
        *response.body_mut() = Body::Full(None);
    }
    response
}
