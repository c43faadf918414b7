//! The readers of subjects, as a stream reaches them.

use crate::name::Name;
use crate::stream::{Advisory, Outgoing, StreamMessage};

/// The result of sending a message to a subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sent {
    /// A reader has it.
    Taken,
    /// A reader has it, and is behind.
    SlowReader,
    /// Nobody reads the subject.
    Nobody,
}

/// The readers of subjects.
pub(crate) trait Outlet {
    /// Whether a subject has a subscription; with a group, whether that queue group has a member.
    fn has_readers(&mut self, subject: &Name, group: Option<&Name>) -> bool;

    /// An id that nobody can guess.
    fn new_pin(&mut self) -> Name;

    /// Publishes an advisory as [`Outlet::publish`] does, if it has readers.
    fn advise(&mut self, advisory: &Advisory<'_>) -> Option<Outgoing>;

    /// Whether a user may still publish this subject.
    fn may_publish(&mut self, user: &[u8], subject: &Name) -> bool;

    /// Sends a message to the live readers of a subject. Returns it if queues and streams are to get it too, once the
    /// stream is unlocked.
    fn publish(&mut self, subject: &Name, message: &StreamMessage<'_>) -> Option<Outgoing>;

    /// Sends a message to the readers of a subject.
    fn send(&mut self, subject: &Name, message: &StreamMessage<'_>) -> Sent;
}
