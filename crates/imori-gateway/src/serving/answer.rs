//! Answers the requests of a connection.

use std::rc::Rc;

use http::header::{CONNECTION, CONTENT_LENGTH, SERVER};
use http::{HeaderValue, Method, Request, Response};
use hyper::body::{Body as _, Incoming};
use hyper::upgrade::OnUpgrade;
use imori_server::http::{ReceivedBody, Receiving};

use super::pipeline::respond;
use crate::asking::Asking;
use crate::facts::ConnectionOrigin;
use crate::request_body::RequestBody;
use crate::respond::{Body, problem};
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
    // Held until there is a response.
    let receiving = Receiving::new(worker.shared.broker.bodies(), place.origin.source.ip());
    let body = RequestBody::Incoming(ReceivedBody::new(body, receiving.clone()));
    let asking = Asking { place, parts, body, upgrade, depth: 0 };
    let mut response = respond(&worker, asking).await;
    if let Some(fault) = receiving.fault() {
        response = problem(fault.status(), fault.reason());
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
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
