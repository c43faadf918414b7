//! How a connection ends, and what the broker still had for it.

use super::client::Client;
use crate::machine::Shared;
use crate::model::Model;

impl Client {
    /// Tells whether the client says nothing more.
    pub(crate) fn is_silent(&self) -> bool {
        self.is_ended || self.is_leaving || self.has_error
    }

    /// Closes the transport; what comes still is read.
    pub(crate) fn close(&mut self, shared: &Shared, model: &mut Model) {
        shared.network.pipe(self.session).client_closed = true;
        self.end(shared, model);
    }

    /// Tears the transport down.
    pub(crate) fn reset(&mut self, shared: &Shared, model: &mut Model) {
        shared.trace.note(&[self.session as u64], || format!("session {} is torn down", self.session));
        shared.network.pipe(self.session).is_reset = true;
        self.end(shared, model);
    }

    pub(super) fn end(&mut self, shared: &Shared, model: &mut Model) {
        self.is_ended = true;
        model.session(self.session).ended_at.get_or_insert(shared.step.get());
    }

    /// Looks at the last bytes that the broker had for it, once the broker has let go.
    pub(crate) fn read_last_bytes(&mut self, shared: &Shared, model: &mut Model) {
        let (bytes, is_incomplete) = {
            let mut pipe = shared.network.pipe(self.session);
            pipe.has_last_bytes = false;
            let mut bytes: Vec<u8> = pipe.to_client.drain(..).collect();
            bytes.append(&mut pipe.unsent);
            pipe.client_closed = true;
            (bytes, pipe.is_unsent_incomplete)
        };
        model.is_incomplete |= is_incomplete;
        self.end(shared, model);
        if is_incomplete {
            // What was with another cell is missing in between.
            self.input.clear();
        } else {
            self.receive(shared, model, &bytes);
        }
    }
}
