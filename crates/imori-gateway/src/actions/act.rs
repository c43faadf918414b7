//! Has the action of a route respond.

use std::rc::Rc;

use http::Response;
use hyper::upgrade::OnUpgrade;
use imori_core::authorize::Identity;

use super::{files, fixed, proxy, publish, pull, rpc, stream, websocket};
use crate::facts::Facts;
use crate::request_body::RequestBody;
use crate::respond::Body;
use crate::routes::BuiltIn;
use crate::worker::Worker;

/// The response of the action of a request's route; `identity` is the user of the request, if it has one.
pub(crate) async fn act(
    worker: &Rc<Worker>,
    action: &BuiltIn,
    facts: &Facts,
    identity: Option<&Identity>,
    body: RequestBody,
    upgrade: Option<OnUpgrade>,
) -> Response<Body> {
    let outcome = match action {
        BuiltIn::Return(action) => Ok(fixed::respond(action, facts)),
        BuiltIn::Files(action) => Ok(files::serve(action, facts).await),
        BuiltIn::Proxy(action) => Ok(proxy::pass(worker, action, facts, body, upgrade).await),
        BuiltIn::Publish(action) => publish::publish(worker, action, facts, identity, body).await,
        BuiltIn::Rpc(action) => rpc::call(worker, action, facts, identity, body).await,
        BuiltIn::Stream(action) => stream::stream(worker, action, facts, identity).await,
        BuiltIn::WebSocket(action) => websocket::connect(worker, action, facts, identity, upgrade).await,
        BuiltIn::Pull(action) => pull::pull(worker, action, facts, identity).await,
    };
    outcome.unwrap_or_else(|response| response)
}
