//! The signals by which an operator speaks to a running broker.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing::info;

use crate::requests::operator_request::{OperatorRequest, ReloadAnswer};
use crate::shared::{Phase, Shared};

/// All signals that the broker hears.
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    lame_duck: Signal,
    reload: Signal,
    reopen: Signal,
}

impl Signals {
    /// Begins to listen for them; none of them ends the process from here on.
    ///
    /// # Errors
    /// The system registers no handler.
    pub(crate) fn listen() -> io::Result<Signals> {
        Ok(Signals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            lame_duck: signal(SignalKind::user_defined2())?,
            reload: signal(SignalKind::hangup())?,
            reopen: signal(SignalKind::user_defined1())?,
        })
    }

    /// Obeys signals for ever. SIGTERM, SIGINT and SIGUSR2 stop the broker, and a second one of them ends it at once;
    /// `requests` gets the others.
    pub(crate) async fn obey(mut self, shared: Arc<Shared>, requests: Arc<Sender<OperatorRequest>>) {
        loop {
            let request = tokio::select! {
                _ = self.terminate.recv() => None,
                _ = self.interrupt.recv() => None,
                // nats-server calls it lame duck: clients are told to go, and have the time to.
                _ = self.lame_duck.recv() => None,
                _ = self.reload.recv() => Some(OperatorRequest::Reload(ReloadAnswer::default())),
                _ = self.reopen.recv() => Some(OperatorRequest::ReopenLog),
            };
            match request {
                // Nobody takes requests of a broker that is at its end.
                Some(request) => drop(requests.send(request)),
                None => {
                    info!("stopping");
                    stop(&shared);
                }
            }
        }
    }
}

/// Lets connections finish; asked again, ends the broker at once.
pub(crate) fn stop(shared: &Shared) {
    shared.phase.send_modify(|phase| {
        *phase = match phase {
            Phase::Serving => Phase::Stopping,
            Phase::Stopping | Phase::Ended => Phase::Ended,
        }
    });
}
