//! The beginning and end of sessions within a connection.

use super::end::Remains;
use super::outbound::Outbound;
use super::session::Numbers;
use crate::id::{ReaderId, SessionId};

/// The reason why a session cannot be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionRefusal {
    /// The id is in use by an open session, or by an ended one with waiting answers.
    IsOpen,
    /// The connection has its maximum of sessions.
    TooMany {
        /// The maximum.
        max: u16,
    },
}

/// The fate of answers that still wait for the journal when their session ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeldAnswers {
    /// They are dropped: the client ends the session without waiting for them.
    Drop,
    /// They leave when the journal allows it, followed by any later answers. Until the last one has left, no
    /// session can be opened with this id.
    Keep,
}

impl Outbound {
    /// Opens a session. The first session is always open.
    ///
    /// # Errors
    /// [`SessionRefusal`]; nothing has changed then.
    pub fn open_session(&mut self, id: SessionId) -> Result<(), SessionRefusal> {
        if self.sessions.slot(id).is_some() {
            return Err(SessionRefusal::IsOpen);
        }
        let max = self.limits.sessions_max;
        if self.sessions.len() < usize::from(max) && self.sessions.add(id) {
            self.activity.sessions_opened += 1;
            Ok(())
        } else {
            Err(SessionRefusal::TooMany { max })
        }
    }

    /// Whether a session is open.
    pub fn has_session(&self, id: SessionId) -> bool {
        self.sessions.find(id).is_some_and(|session| !session.is_ended)
    }

    /// Whether no two of these readers share a session. Then each reader can be given several messages before
    /// the next gets any, because order is kept only within a session.
    pub fn are_in_sessions_apart(&mut self, readers: impl Iterator<Item = ReaderId>) -> bool {
        if self.sessions.len() < 2 {
            return false;
        }
        let round = self.sessions.next_round();
        let slots = readers.filter_map(|id| self.readers.get(id).map(|record| record.session));
        for slot in slots {
            if let Some(session) = self.sessions.at_mut(slot)
                && std::mem::replace(&mut session.seen_in, round) == round
            {
                return false;
            }
        }
        true
    }

    /// Ends a session: nothing is delivered to it from now on. Returns what it leaves behind.
    ///
    /// Each call returns up to `readers_max` readers. Once the last reader is returned, calls also return
    /// unsettled deliveries, up to `unsettled_max` each. The first session ends only with its connection, so
    /// this does nothing to it.
    pub fn end_session(
        &mut self,
        id: SessionId,
        held: HeldAnswers,
        readers_max: usize,
        unsettled_max: usize,
    ) -> Remains {
        let mut remains = Remains { is_all: true, ..Remains::default() };
        let Some(slot) = self.sessions.slot(id).filter(|_| id != SessionId::FIRST) else {
            return remains;
        };
        let Some(session) = self.sessions.at_mut(slot) else { return remains };
        if !session.is_ended {
            session.is_ended = true;
            self.activity.sessions_ended += 1;
            session.line.clear();
            self.rest_bytes -= session.rest_bytes();
            session.frames = None;
            if session.inboxes > 0 {
                let inboxes = self.inboxes.iter_mut();
                let its = inboxes.filter(|place| place.as_ref().is_some_and(|inbox| inbox.session == slot));
                its.for_each(|place| *place = None);
            }
        }
        while remains.readers.len() < readers_max
            && let Some(reader) = session.readers.pop()
        {
            let id = self.readers.in_slot(reader).map(|(id, _)| id);
            let record = id.and_then(|id| Some((id, self.readers.remove(id)?)));
            remains.readers.extend(record.map(|(id, record)| (id, record.spec.source)));
        }
        remains.is_all = session.readers.is_empty();
        if remains.is_all {
            // Released messages would otherwise be offered to readers that are still here.
            let (unsettled, has_more) = session.settle(Numbers::All, unsettled_max);
            self.unsettled -= unsettled.len();
            (remains.unsettled, remains.is_all) = (unsettled, !has_more);
        }
        if held == HeldAnswers::Drop || self.has_last_word() {
            self.sessions.clear_answers_of(slot);
        }
        self.sessions.forget_if_over(slot);
        self.charge_change();
        remains
    }
}

#[cfg(test)]
mod tests;
