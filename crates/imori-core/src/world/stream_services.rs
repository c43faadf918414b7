//! The part of the environment that streams alone need.

use super::reports::StreamRequests;
use super::transfer::StreamTransfer;
use crate::confirm::Confirm;
use crate::id::{QueueId, VhostId};
use crate::stream::{LateAnswer, NoStreamForms, StreamForms};

/// What streams need of their environment. By default no protocol reads them by subject, and nothing waits for the
/// journal.
pub trait StreamServices {
    /// Requests a call of [`stream_progressed`](crate::broker::stream_progressed) once the journal has reached this.
    fn await_journal(&self, _id: QueueId, _confirm: Confirm) {}

    /// Requests a call of [`send_late_answer`](crate::broker::send_late_answer) once the journal has reached this.
    fn answer_late(&self, _confirm: Confirm, _answer: LateAnswer) {}

    /// The protocol that gives the messages of streams their form.
    fn forms(&self) -> &'static dyn StreamForms {
        &NoStreamForms
    }

    /// Begins to copy a whole stream; `false` if that is impossible, or if too many transfers are running.
    fn transfer(&self, _transfer: StreamTransfer) -> bool {
        false
    }

    /// Counts an answer to a client's request to the API of streams.
    fn count_request(&self, _vhost: VhostId, _is_error: bool) {}

    /// The requests of a vhost's clients to the API of streams.
    fn requests(&self, _vhost: VhostId) -> StreamRequests {
        StreamRequests::default()
    }
}
