//! Has the action of a route respond.

use std::rc::Rc;

use http::{Response, StatusCode};
use hyper::upgrade::OnUpgrade;
use imori_core::authorize::Identity;

use super::{files, fixed, proxy, publish, pull, rpc, stream, websocket};
use crate::facts::Facts;
use crate::request_body::RequestBody;
use crate::respond::{Body, problem};
use crate::routes::Action;
use crate::worker::Worker;

/// The response of a route's action; `identity` is the user of the request, if it has one.
pub(crate) async fn act(
    worker: &Rc<Worker>,
    facts: &Facts,
    identity: Option<&Identity>,
    body: RequestBody,
    upgrade: Option<OnUpgrade>,
) -> Response<Body> {
    let outcome = match &facts.route.action {
        Action::Return(action) => Ok(fixed::respond(action, facts)),
        Action::Files(action) => Ok(files::serve(action, facts).await),
        Action::Proxy(action) => Ok(proxy::pass(worker, action, facts, body).await),
        // Its script has responded already.
        Action::Script(_) => Ok(problem(StatusCode::NO_CONTENT, "")),
        Action::Publish(action) => publish::publish(worker, action, facts, identity, body).await,
        Action::Rpc(action) => rpc::call(worker, action, facts, identity, body).await,
        Action::Stream(action) => stream::stream(worker, action, facts, identity).await,
        Action::WebSocket(action) => websocket::connect(worker, action, facts, identity, upgrade).await,
        Action::Pull(action) => pull::pull(worker, action, facts, identity).await,
    };
    outcome.unwrap_or_else(|response| response)
}
