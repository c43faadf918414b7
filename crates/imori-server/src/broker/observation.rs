//! Observation of messages for operators: a trace, and measured calls.

use imori_core::id::ConnectionId;

use super::broker::Broker;
use crate::traces::{CallFigures, MessageTrace, TraceFilter, TracedClient};

impl Broker {
    /// Starts the trace of messages, in the place of an earlier one, for a user.
    pub fn start_trace(&self, filter: TraceFilter, user: String) {
        self.shared().observation.start_trace(filter, user, self.now());
    }

    /// The latest trace, whether it still runs or not.
    pub fn latest_trace(&self) -> Option<MessageTrace> {
        self.shared().observation.latest_trace(self.now())
    }

    /// Ends the trace and forgets what it followed; returns whether there was one.
    pub fn end_trace(&self) -> bool {
        self.shared().observation.end_trace(self.now())
    }

    /// The client of a connection, as traces and measured calls name it; `None` if it is gone.
    pub fn traced_client(&self, id: ConnectionId) -> Option<TracedClient> {
        self.shared().traced_client(id)
    }

    /// The calls since the measurement began. It goes on for a quarter of a minute after each look, and begins with the
    /// first one.
    pub fn measure_calls(&self) -> CallFigures {
        self.shared().observation.measure_calls(self.now())
    }
}
