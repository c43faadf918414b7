//! Scripts that change a response on its way out, and those that run once it has left.

use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::stream;
use http::header::{CONNECTION, CONTENT_LENGTH, UPGRADE};
use http::{HeaderName, Response, StatusCode};
use http_body_util::{BodyExt as _, LengthLimitError, Limited, StreamBody};
use hyper::body::{Body as HttpBody, Frame};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::counted::counted;
use super::run::Run;
use super::script_services::ScriptServices;
use crate::request_context::{Phase, RESPONSE_BYTES_MAX, RequestContext};
use crate::respond::{Body, BodyError, problem};
use crate::routes::{Route, ScriptId};
use crate::worker::{Served, Worker};

/// Has the filters of a route change its response.
pub(super) async fn filter(run: &Run<'_>, route: &Route, response: Response<Body>) -> Response<Body> {
    let response = match route.header_filter {
        Some(script) => header_filter(run, script, response).await.unwrap_or_else(|failure| failure),
        None => response,
    };
    // A response that switches protocols has no body.
    let has_body = response.status() != StatusCode::SWITCHING_PROTOCOLS;
    let response = match route.body_filter.filter(|_| has_body) {
        Some((script, true)) => by_chunk(run, script, response),
        Some((script, false)) => whole(run, script, response).await.unwrap_or_else(|failure| failure),
        None => response,
    };
    let Some(script) = route.log else { return response };
    {
        let mut kept = run.context.response.borrow_mut();
        kept.status = Some(response.status());
        kept.headers = response.headers().clone();
    }
    let own = Owned::of(run);
    response.map(|body| {
        counted(body, move |sent| {
            own.context.body_bytes_sent.set(sent);
            tokio::task::spawn_local(async move { drop(own.run().script(Phase::Log, script).await) });
        })
    })
}

/// What a script needs that runs after its request's future has ended.
struct Owned {
    worker: Rc<Worker>,
    served: Rc<Served>,
    context: Rc<RequestContext>,
    services: Rc<ScriptServices>,
}

impl Owned {
    fn of(run: &Run<'_>) -> Owned {
        Owned {
            worker: Rc::clone(run.worker),
            served: Rc::clone(run.served),
            context: Rc::clone(run.context),
            services: Rc::clone(run.services),
        }
    }

    fn run(&self) -> Run<'_> {
        Run { worker: &self.worker, served: &self.served, context: &self.context, services: &self.services }
    }
}

async fn header_filter(
    run: &Run<'_>,
    script: ScriptId,
    response: Response<Body>,
) -> Result<Response<Body>, Response<Body>> {
    let (mut parts, body) = response.into_parts();
    {
        let mut kept = run.context.response.borrow_mut();
        kept.status = Some(parts.status);
        kept.headers = std::mem::take(&mut parts.headers);
    }
    // They describe the connection and the body, which a script does not change.
    let kept: &[HeaderName] = match parts.status {
        StatusCode::SWITCHING_PROTOCOLS => &[CONNECTION, UPGRADE],
        _ => &[CONTENT_LENGTH],
    };
    let kept = {
        let response = run.context.response.borrow();
        let value = |name: &HeaderName| Some((name.clone(), response.headers.get(name)?.clone()));
        kept.iter().filter_map(value).collect::<Vec<_>>()
    };
    run.script(Phase::HeaderFilter, script).await?;
    drop(run.context.take_decision());
    let (changed, _) = run.context.take_response().into_parts();
    if parts.status != StatusCode::SWITCHING_PROTOCOLS {
        parts.status = changed.status;
    }
    parts.headers = changed.headers;
    parts.headers.extend(kept);
    Ok(Response::from_parts(parts, body))
}

/// Has a script change the whole body.
async fn whole(
    run: &Run<'_>,
    script: ScriptId,
    response: Response<Body>,
) -> Result<Response<Body>, Response<Body>> {
    let (mut parts, body) = response.into_parts();
    let body = Limited::new(body, RESPONSE_BYTES_MAX).collect().await.map_err(|error| {
        let reason = match error.is::<LengthLimitError>() {
            true => "the response is too large for its filter",
            false => "the response has not come to its end",
        };
        problem(StatusCode::BAD_GATEWAY, reason)
    })?;
    run.context.filtered.replace(body.to_bytes());
    run.script(Phase::BodyFilter, script).await?;
    parts.headers.remove(CONTENT_LENGTH);
    Ok(Response::from_parts(parts, Body::full(run.context.filtered.take())))
}

/// Has a script change each piece of a body as it comes.
fn by_chunk(run: &Run<'_>, script: ScriptId, response: Response<Body>) -> Response<Body> {
    let (mut parts, body) = response.into_parts();
    parts.headers.remove(CONTENT_LENGTH);
    let frames = stream::unfold(Some((body, Owned::of(run))), move |state| async move {
        let (mut body, own) = state?;
        loop {
            let frame = match body.frame().await? {
                Ok(frame) => frame,
                Err(error) => return Some((Err(error), None)),
            };
            let Ok(chunk) = frame.into_data() else { continue };
            own.context.filtered.replace(chunk);
            if own.run().script(Phase::BodyFilter, script).await.is_err() {
                return Some((Err(BodyError::from("a filter has failed")), None));
            }
            let chunk = own.context.filtered.take();
            // A script that leaves nothing of a piece leaves it out.
            if !chunk.is_empty() {
                return Some((Ok(Frame::data(chunk)), Some((body, own))));
            }
        }
    });
    Response::from_parts(parts, Body::stream(StreamBody::new(frames)))
}

/// The response whose body a script pushes piece by piece; with the response ends the script.
pub(super) fn streamed(
    context: &RequestContext,
    chunks: mpsc::Receiver<Bytes>,
    task: Option<JoinHandle<()>>,
) -> Response<Body> {
    let head = context.take_response();
    let first = Some(head.body().clone()).filter(|body| !body.is_empty());
    head.map(|_| Body::stream(Pushed { first, chunks, task }))
}

struct Pushed {
    first: Option<Bytes>,
    chunks: mpsc::Receiver<Bytes>,
    task: Option<JoinHandle<()>>,
}

impl HttpBody for Pushed {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Ok(Frame::data(first))));
        }
        self.chunks.poll_recv(cx).map(|chunk| chunk.map(|chunk| Ok(Frame::data(chunk))))
    }
}

impl Drop for Pushed {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}
