//! How a connection ends, and what the broker still had for it.

use super::client::Client;
use super::connection::Connection;
use crate::machine::Shared;
use crate::model::Model;

impl Client {
    /// Tells whether the client says nothing more.
    pub(crate) fn is_silent(&self) -> bool {
        self.is_ended() || self.is_leaving || self.has_error
    }

    /// Tells whether its session is over, alone or with its connection.
    pub(crate) fn is_ended(&self) -> bool {
        self.is_over || self.connection.is_gone()
    }

    /// Ends the session, of which the broker has said its last. The last one closes the transport.
    pub(super) fn part(&mut self, shared: &Shared, model: &mut Model) {
        model.session(self.session).is_answered = true;
        self.end(shared, model);
        if self.connection.sessions.get() == 0 {
            self.close(shared, model);
        }
    }

    /// Closes the transport, and so ends all its sessions; what comes still is read.
    pub(crate) fn close(&mut self, shared: &Shared, model: &mut Model) {
        shared.network.pipe(self.connection.pipe).client_closed = true;
        self.connection.end(shared, model);
    }

    /// Tears the transport down.
    pub(crate) fn reset(&mut self, shared: &Shared, model: &mut Model) {
        let pipe = self.connection.pipe;
        shared.trace.note(&[pipe as u64], || format!("connection {pipe} is torn down"));
        shared.network.pipe(pipe).is_reset = true;
        self.connection.end(shared, model);
    }

    pub(super) fn end(&mut self, shared: &Shared, model: &mut Model) {
        if !std::mem::replace(&mut self.is_over, true) {
            self.connection.sessions.update(|sessions| sessions - 1);
        }
        model.session(self.session).ended_at.get_or_insert(shared.step.get());
    }
}

impl Connection {
    pub(super) fn end(&self, shared: &Shared, model: &mut Model) {
        self.is_gone.set(true);
        model.connection_ended(self.pipe, shared.step.get());
    }
}
