//! The node `/management`: queues, exchanges and bindings by requests and responses as those of HTTP, in RabbitMQ 4's
//! shape (HTTP over AMQP).
//!
//! A client attaches two links of one name, one each way. A request is a message whose `subject` is the method and whose
//! `to` is the path; its response has the status as its subject and the request's id as its `correlation-id`.

mod queues;
mod exchanges;
mod bindings;
mod request;
mod arguments;
mod response;

use imori_core::world::World;

use crate::client::Client;
use request::Request;
use response::Response;

/// The address of the node.
pub(crate) const ADDRESS: &str = "/management";

/// Does what a request asks for; gives the payload of its response, and tells whether it may have changed something.
///
/// # Errors
/// The message is no request, in words for the client.
pub(crate) fn respond<W: World>(
    client: &Client,
    world: &W,
    payload: &[u8],
) -> Result<(Vec<u8>, bool), String> {
    let request = Request::read(payload)?;
    let response = perform(client, world, &request).unwrap_or_else(|refused| refused);
    Ok((response.message(request.id), request.method != "GET"))
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
        (_, ["queues" | "exchanges" | "bindings", ..]) => Err(Response::refused(
            405,
            "this path has no such method; see RabbitMQ's management over AMQP 1.0",
        )),
        _ => Err(Response::refused(404, "there is no such path; use /queues, /exchanges or /bindings")),
    }
}
