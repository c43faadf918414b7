//! One script of a request, and the responses to those that fail.

use std::rc::Rc;

use http::{HeaderValue, Response, StatusCode};

use super::opening::open_lost;
use super::script_services::ScriptServices;
use crate::request_context::{Phase, RequestContext};
use crate::respond::{Body, problem};
use crate::routes::ScriptId;
use crate::scripts::{Outcome, Services};
use crate::shared::Shared;
use crate::worker::{Served, Worker};

/// The scripts of a request.
pub(super) struct Run<'a> {
    pub(super) worker: &'a Rc<Worker>,
    pub(super) served: &'a Rc<Served>,
    pub(super) context: &'a Rc<RequestContext>,
    pub(super) services: &'a Rc<ScriptServices>,
}

impl Run<'_> {
    /// Runs a script of a phase.
    ///
    /// # Errors
    /// The response to a request whose script has failed.
    pub(super) async fn script(
        &self,
        phase: Phase,
        script: ScriptId,
    ) -> Result<imori_ruby::Value, Response<Body>> {
        self.context.phase.set(phase);
        let scripts = self.served.scripts();
        let services: Rc<dyn Services> = Rc::clone(self.services) as _;
        let Some(scripts) = scripts else { return Err(lost()) };
        let outcome = scripts.run(script, self.context, &services).await;
        if matches!(outcome, Outcome::Lost) {
            open_lost(self.worker, self.served);
        }
        value_of(outcome, phase, (&self.worker.shared, self.services))
    }
}

/// The value of a run.
///
/// # Errors
/// The response to a request whose script has failed.
pub(super) fn value_of(
    outcome: Outcome,
    phase: Phase,
    (shared, services): (&Shared, &ScriptServices),
) -> Result<imori_ruby::Value, Response<Body>> {
    if !matches!(&outcome, Outcome::Failed(exception) if exception.class == "Imori::RequestError") {
        shared.script_faults.note_outcome(shared.broker.now(), phase, &outcome);
    }
    match outcome {
        Outcome::Done(value) => Ok(value),
        Outcome::Failed(exception) => {
            if exception.class == "Imori::RequestError"
                && let Some(response) = services.refusal()
            {
                return Err(response);
            }
            tracing::error!(?phase, %exception, backtrace = exception.backtrace.join("; "), "a script has raised");
            Err(match exception.class.as_str() {
                "Imori::TimeoutError" => {
                    problem(StatusCode::GATEWAY_TIMEOUT, "an answer has not come in time")
                }
                "Imori::ConnectError" | "Imori::AnswerError" => problem(
                    StatusCode::BAD_GATEWAY,
                    "another server cannot be reached, or has not answered well",
                ),
                _ => problem(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    "a script of this route has failed; see the broker's log",
                ),
            })
        }
        Outcome::TimedOut => {
            tracing::warn!(?phase, "a script was too slow");
            Err(problem(StatusCode::GATEWAY_TIMEOUT, "a script of this route took longer than it may"))
        }
        Outcome::Lost => {
            tracing::error!(?phase, "a script did not end in its time, and its VM is opened anew");
            Err(lost())
        }
    }
}

pub(super) fn lost() -> Response<Body> {
    problem(StatusCode::SERVICE_UNAVAILABLE, "the scripts of this gateway are being started again; try again")
}

/// The response before a connection is closed, as nginx does with its status 444; HTTP's codec cannot send nothing.
pub(super) fn closing() -> Response<Body> {
    let mut response = Response::new(Body::Full(None));
    *response.status_mut() = StatusCode::BAD_REQUEST;
    response.headers_mut().insert(http::header::CONNECTION, HeaderValue::from_static("close"));
    response
}
