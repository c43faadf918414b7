//! Calls a service by message; its reply becomes the response.

use std::rc::Rc;

use http::{HeaderValue, Response, StatusCode};
use imori_core::authorize::Identity;

use super::caller::{client_of, refuse};
use super::message::{message_of, set_headers, text_of};
use crate::facts::Facts;
use crate::request_body::RequestBody;
use crate::respond::{Body, problem};
use crate::routes::RpcAction;
use crate::worker::Worker;

/// Headers of an error that a service reports, as NATS's services name them.
const ERROR_CODE: &[u8] = b"Nats-Service-Error-Code";
const ERROR: &[u8] = b"Nats-Service-Error";

/// Calls a service.
pub(super) async fn call(
    worker: &Rc<Worker>,
    action: &RpcAction,
    facts: &Facts,
    identity: Option<&Identity>,
    body: RequestBody,
) -> Result<Response<Body>, Response<Body>> {
    let to = action.to.render(facts, facts.route.rest.as_deref());
    let to = to.map_err(|message| problem(StatusCode::BAD_REQUEST, &message))?;
    let client = client_of(worker, facts, identity).await?;
    let message = message_of(facts, body.read(facts.route.limits.body_bytes).await?, &action.headers)
        .header(b"http-method", facts.request().method.as_str().as_bytes())
        .header(b"http-target", facts.request_uri().as_bytes());
    let reply =
        client.call(to, message, action.within).await.map_err(|error| refuse(worker, identity, &error))?;
    let mut response = Response::new(Body::full(reply.body.clone()));
    set_headers(response.headers_mut(), &reply);
    if let Some(code) = text_of(&reply, ERROR_CODE) {
        let status = code.parse::<u16>().ok().filter(|code| (400..600).contains(code));
        let status = status.and_then(|code| StatusCode::from_u16(code).ok());
        *response.status_mut() = status.unwrap_or(StatusCode::BAD_GATEWAY);
        let reason = text_of(&reply, ERROR).and_then(|reason| HeaderValue::from_str(&reason).ok());
        if let Some(reason) = reason {
            response.headers_mut().insert("imori-service-error", reason);
        }
    }
    Ok(response)
}
