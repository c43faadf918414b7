//! Signals from the operator to a running broker.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing::info;

use crate::broker::{OperatorRequest, ReloadAnswer};
use crate::shared::Shared;

/// All signals that the broker handles.
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    lame_duck: Signal,
    reload: Signal,
    reopen: Signal,
}

impl Signals {
    /// Registers the handlers; from here on no signal ends the process by itself.
    ///
    /// # Errors
    /// A handler cannot be registered.
    pub(crate) fn listen() -> io::Result<Signals> {
        Ok(Signals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            lame_duck: signal(SignalKind::user_defined2())?,
            reload: signal(SignalKind::hangup())?,
            reopen: signal(SignalKind::user_defined1())?,
        })
    }

    /// Handles signals forever. SIGTERM, SIGINT and SIGUSR2 stop the broker, and a second one ends it at once; the
    /// others are sent to `requests`.
    pub(crate) async fn obey(mut self, shared: Arc<Shared>, requests: Arc<Sender<OperatorRequest>>) {
        loop {
            let request = tokio::select! {
                _ = self.terminate.recv() => None,
                _ = self.interrupt.recv() => None,
                // Lame duck mode in nats-server: clients are asked to leave, with time to do so.
                _ = self.lame_duck.recv() => None,
                _ = self.reload.recv() => Some(OperatorRequest::Reload(ReloadAnswer::default())),
                _ = self.reopen.recv() => Some(OperatorRequest::ReopenLog),
            };
            match request {
                // The receiver is gone once the broker is ending.
                Some(request) => drop(requests.send(request)),
                None => {
                    info!("stopping");
                    shared.stop();
                }
            }
        }
    }
}
