//! The state that all workers share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use imori_server::Phase;
use imori_server::broker::Broker;
use tokio::sync::watch;

use super::access_log::AccessLog;
use super::feeds::Feeds;
use super::pulled::Pulled;
use super::script_faults::ScriptFaults;
use crate::limits::SHARED_BYTES_MAX;
use crate::scripts::SharedState;

/// What all workers share.
pub(crate) struct Shared {
    pub(crate) broker: Broker,
    pub(crate) feeds: Feeds,
    pub(crate) pulled: Pulled,
    /// Values that the scripts of all workers share.
    pub(crate) values: Arc<SharedState>,
    pub(crate) access_log: AccessLog,
    /// The latest faults of scripts.
    pub(crate) script_faults: ScriptFaults,
    connections: AtomicU64,
}

impl Shared {
    pub(crate) fn new(broker: &Broker) -> Shared {
        Shared {
            broker: broker.clone(),
            feeds: Feeds::default(),
            pulled: Pulled::default(),
            values: Arc::new(SharedState::new(SHARED_BYTES_MAX)),
            access_log: AccessLog::default(),
            script_faults: ScriptFaults::default(),
            connections: AtomicU64::new(0),
        }
    }

    /// A number that no other connection has.
    pub(crate) fn next_connection(&self) -> u64 {
        self.connections.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The end of the broker, to be waited for.
    pub(crate) fn stopping(&self) -> Stopping {
        Stopping(self.broker.follow_phase())
    }
}

/// The end of the broker.
pub(crate) struct Stopping(watch::Receiver<Phase>);

impl Stopping {
    /// Returns once the broker stops.
    pub(crate) async fn begun(&mut self) {
        let _ = self.0.wait_for(|phase| *phase > Phase::Serving).await;
    }
}
