//! Opens the scripts of a worker, and runs those that have no request.

use std::cell::Cell;
use std::rc::Rc;

use bytes::Bytes;
use imori_server::http::RequestOrigin;
use tracing::{error, warn};

use super::script_services::ScriptServices;
use crate::facts::ConnectionOrigin;
use crate::request_body::RequestBody;
use crate::request_context::{Connection, Phase, RequestContext};
use crate::routes::ScriptId;
use crate::scripts::{Outcome, Scripts, Services};
use crate::worker::{Served, Worker};

/// Opens the scripts of a configuration in a VM, and runs `init` and `init_worker`. Requests find the scripts once these
/// have ended.
pub(crate) async fn open_scripts(worker: &Rc<Worker>, served: &Rc<Served>) {
    let configuration = &served.configuration;
    if configuration.scripts.is_empty() {
        return;
    }
    let scripts = match Scripts::open(&configuration.scripts, configuration.vm) {
        Ok(scripts) => Rc::new(scripts),
        Err(error) => return error!(%error, "the scripts of the gateway cannot be opened"),
    };
    for (phase, script) in [(Phase::Init, configuration.init), (Phase::InitWorker, configuration.init_worker)]
    {
        if let Some(script) = script {
            run(worker, served, &scripts, phase, script).await;
        }
    }
    served.set_scripts(scripts);
}

/// Opens the scripts anew if their VM is lost.
pub(super) fn open_lost(worker: &Rc<Worker>, served: &Rc<Served>) {
    if served.take_lost() {
        warn!("a VM of the gateway is lost, and opened anew");
        let (worker, served) = (Rc::clone(worker), Rc::clone(served));
        tokio::task::spawn_local(async move { open_scripts(&worker, &served).await });
    }
}

/// Runs `exit_worker`.
pub(crate) async fn close_scripts(worker: &Rc<Worker>) {
    let served = worker.served();
    if let (Some(script), Some(scripts)) = (served.configuration.exit_worker, served.scripts()) {
        run(worker, &served, &scripts, Phase::ExitWorker, script).await;
    }
}

async fn run(worker: &Rc<Worker>, served: &Rc<Served>, scripts: &Scripts, phase: Phase, script: ScriptId) {
    let context = RequestContext::without_request(phase, Connection::default());
    run_alone(worker, served, scripts, &context, script).await;
}

/// Runs a script that has no request, as the gateway's user; returns whether it has ended well.
pub(super) async fn run_alone(
    worker: &Rc<Worker>,
    served: &Rc<Served>,
    scripts: &Scripts,
    context: &Rc<RequestContext>,
    script: ScriptId,
) -> bool {
    let (source, local) = (context.connection.peer, context.connection.local);
    let origin = RequestOrigin { source, is_encrypted: false, accepts_plaintext: false, certificate: None };
    let place = Rc::new(ConnectionOrigin { origin, local, tls: None, number: 0, requests: Cell::new(0) });
    let services = ScriptServices::new(worker, &place, served, RequestBody::Read(Bytes::new()), 0);
    let user = served.configuration.user.as_deref();
    let identity = user.and_then(|user| worker.shared.broker.access().identity_of(user));
    services.act_for(identity, &served.configuration.vhost, 0);
    let services: Rc<dyn Services> = services;
    let phase = context.phase.get();
    let outcome = scripts.run(script, context, &services).await;
    worker.shared.script_faults.note_outcome(worker.shared.broker.now(), phase, &outcome);
    match outcome {
        Outcome::Done(_) => return true,
        Outcome::Failed(exception) => {
            error!(?phase, %exception, backtrace = exception.backtrace.join("; "), "a script has raised");
        }
        Outcome::TimedOut | Outcome::Lost => error!(?phase, "a script did not end in its time"),
    }
    false
}
