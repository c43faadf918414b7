//! Workers: threads, each with its runtime and its connections.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::Builder;

use imori_server::AcceptedConnection;
use tokio::runtime;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::LocalSet;
use tokio::time::timeout;
use tracing::error;

use crate::limits::DRAIN_MAX;
use crate::routes::Configuration;
use crate::serving::{close_scripts, open_scripts, respond_to_script, serve};
use crate::shared::Shared;
use crate::worker::Worker;

/// Work for a worker.
enum Work {
    Connection(Box<AcceptedConnection>),
    /// This configuration is in force from now on.
    Configuration(Arc<Configuration>),
}

/// A worker, for other threads.
pub(crate) struct WorkerHandle {
    work: UnboundedSender<Work>,
    /// Its open connections.
    connections: Arc<AtomicUsize>,
}

impl WorkerHandle {
    /// Starts a worker.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(crate) fn start(
        shared: &Arc<Shared>,
        number: usize,
        configuration: &Arc<Configuration>,
    ) -> io::Result<WorkerHandle> {
        let runtime = runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        let (work, taken) = unbounded_channel();
        let connections = Arc::new(AtomicUsize::new(0));
        let (shared, configuration) = (Arc::clone(shared), Arc::clone(configuration));
        let counted = Arc::clone(&connections);
        Builder::new().name(format!("gateway-{number}")).spawn(move || {
            let local = LocalSet::new();
            runtime.block_on(local.run_until(async {
                match Worker::new(shared, configuration, respond_to_script) {
                    Ok(worker) => run(Rc::new(worker), taken, counted).await,
                    Err(error) => error!(%error, "a worker of the gateway cannot start"),
                }
            }));
        })?;
        Ok(WorkerHandle { work, connections })
    }

    /// The number of its open connections.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// Gives it a connection.
    pub(crate) fn serve(&self, connection: AcceptedConnection) {
        // A worker that has ended closes it.
        let _ = self.work.send(Work::Connection(Box::new(connection)));
    }

    /// Puts a configuration in force.
    pub(crate) fn install(&self, configuration: &Arc<Configuration>) {
        let _ = self.work.send(Work::Configuration(Arc::clone(configuration)));
    }
}

/// Counts an open connection.
struct Open(Arc<AtomicUsize>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Serves until the broker stops, and then until its connections have ended.
async fn run(worker: Rc<Worker>, mut taken: UnboundedReceiver<Work>, connections: Arc<AtomicUsize>) {
    let mut stopping = worker.shared.stopping();
    // The broker waits for requests that have begun.
    let _finishing = worker.shared.broker.finishing();
    open_scripts(&worker, &worker.served()).await;
    loop {
        let work = tokio::select! {
            work = taken.recv() => work,
            () = stopping.begun() => None,
        };
        match work {
            Some(Work::Connection(connection)) => {
                connections.fetch_add(1, Ordering::Relaxed);
                let (worker, open) = (Rc::clone(&worker), Open(Arc::clone(&connections)));
                tokio::task::spawn_local(async move {
                    serve(worker, *connection).await;
                    drop(open);
                });
            }
            Some(Work::Configuration(configuration)) => {
                let served = worker.prepare(configuration);
                open_scripts(&worker, &served).await;
                worker.install(served);
            }
            None => break,
        }
    }
    taken.close();
    let drained = async {
        while connections.load(Ordering::Relaxed) > 0 {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    let _ = timeout(DRAIN_MAX, drained).await;
    close_scripts(&worker).await;
    worker.shared.access_log.close();
}
