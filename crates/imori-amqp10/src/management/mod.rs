//! The node `/management`: manages queues, exchanges, bindings and the client's token by requests
//! and responses like HTTP's, in RabbitMQ 4's form (HTTP over AMQP).
//!
//! A client attaches two links of one name, one in each direction. The `subject` of a request is
//! the method, its `to` the path. The `subject` of a response is the status, its `correlation-id`
//! the id of the request.

mod queues;
mod exchanges;
mod bindings;
mod tokens;
pub(crate) mod request;
mod arguments;
mod response;

use imori_core::world::World;

use crate::client::Client;
use request::Request;
use response::Response;

/// The address of the node.
pub(crate) const ADDRESS: &str = "/management";

/// The response to a request: the payload of its message, and when to send it.
#[derive(Debug)]
pub(crate) enum Answer {
    /// At once.
    Now(Vec<u8>),
    /// Once the change is on disk.
    OnDisk(Vec<u8>),
    /// Once the new token is accepted.
    AfterToken {
        /// The token.
        token: Box<[u8]>,
        /// The payload.
        response: Vec<u8>,
    },
}

/// Performs a request and returns the response.
///
/// # Errors
/// An explanation for the client, if the message is not a request.
pub(crate) fn respond<W: World>(client: &Client, world: &W, payload: &[u8]) -> Result<Answer, String> {
    let request = Request::read(payload)?;
    if let Some(token) = tokens::new_token(&request) {
        return Ok(match token {
            Ok(token) => {
                Answer::AfterToken { token: token.into(), response: Response::done().message(request.id) }
            }
            Err(refused) => Answer::Now(refused.message(request.id)),
        });
    }
    let response = perform(client, world, &request).unwrap_or_else(|refused| refused);
    let message = response.message(request.id);
    Ok(if request.method == "GET" { Answer::Now(message) } else { Answer::OnDisk(message) })
}

fn perform<W: World>(client: &Client, world: &W, request: &Request<'_>) -> Result<Response, Response> {
    let parts: Vec<&str> = request.segments.iter().map(String::as_str).collect();
    match (request.method, parts.as_slice()) {
        ("GET", ["queues", name]) => queues::show(client, world, name),
        ("PUT", ["queues", name]) => queues::declare(client, world, name, request.map()?),
        ("DELETE", ["queues", name]) => queues::delete(client, world, name),
        ("DELETE", ["queues", name, "messages"]) => queues::purge(client, world, name),
        ("DELETE", ["queues", name, "delayed", id]) => queues::cancel(client, world, name, id),
        ("PUT", ["exchanges", name]) => exchanges::declare(client, world, name, request.map()?),
        ("DELETE", ["exchanges", name]) => exchanges::delete(client, world, name),
        ("GET", ["bindings"]) => bindings::list(client, world, request),
        ("POST", ["bindings"]) => bindings::bind(client, world, request.map()?),
        ("DELETE", ["bindings", _]) => bindings::unbind(client, world, request.last_segment),
        (_, ["queues" | "exchanges" | "bindings", ..] | ["auth", "tokens"]) => Err(Response::refused(
            405,
            "this path has no such method; see RabbitMQ's management over AMQP 1.0",
        )),
        _ => Err(Response::refused(
            404,
            "there is no such path; use /queues, /exchanges, /bindings or /auth/tokens",
        )),
    }
}
