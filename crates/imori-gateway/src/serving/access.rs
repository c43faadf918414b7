//! The line of a request in the access log.

use std::path::Path;
use std::rc::Rc;
use std::time::{SystemTime, UNIX_EPOCH};

use http::Response;
use http::header::USER_AGENT;
use serde_json::json;

use super::counted::counted;
use crate::request_context::RequestContext;
use crate::respond::Body;
use crate::worker::Worker;

/// Has a response logged once it has left.
pub(super) fn logged(
    worker: &Rc<Worker>,
    path: &Path,
    context: &Rc<RequestContext>,
    route: Option<&str>,
    response: Response<Body>,
) -> Response<Body> {
    let status = response.status().as_u16();
    let (path, route) = (path.to_owned(), route.map(str::to_owned));
    let (shared, context) = (std::sync::Arc::clone(&worker.shared), Rc::clone(context));
    response.map(|body| {
        counted(body, move |sent| {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let request = context.request.borrow();
            let agent = request.headers.get(USER_AGENT);
            let line = json!({
                "time": now.as_secs_f64(),
                "remote_addr": context.connection.peer.ip().to_string(),
                "user": request.user,
                "method": request.method.as_str(),
                "uri": request.raw_uri,
                "protocol": format!("{:?}", request.version),
                "host": context.variable("host"),
                "route": route,
                "status": status,
                "body_bytes_sent": sent,
                "request_time": context.started.elapsed().as_secs_f64(),
                "request_id": context.id(),
                "user_agent": agent.map(|agent| String::from_utf8_lossy(agent.as_bytes())),
            });
            shared.access_log.write(&path, line.to_string());
        })
    })
}
