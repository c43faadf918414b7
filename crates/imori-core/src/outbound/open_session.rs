//! Sessions begin and end within a connection.

use super::end::Remains;
use super::outbound::Outbound;
use super::session::Numbers;
use crate::id::{ReaderId, SessionId};

/// Why a session cannot be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionRefusal {
    /// There is one of this id, or one that ended and has answers that wait.
    IsOpen,
    /// The connection has as many as it may have.
    TooMany {
        /// How many that is.
        max: u16,
    },
}

/// The treatment of the answers of an ended session that still wait for the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeldAnswers {
    /// The answers are dropped: the client ends the session without waiting for them.
    Drop,
    /// The answers leave when the journal allows it, and later answers leave behind them. Until the last has left, no
    /// session of this id can be opened.
    Keep,
}

impl Outbound {
    /// Opens a session. The first is open from the start.
    ///
    /// # Errors
    /// [`SessionRefusal`]; then nothing has changed.
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

    /// Tells whether a session is open, and has not ended.
    pub fn has_session(&self, id: SessionId) -> bool {
        self.sessions.find(id).is_some_and(|session| !session.is_ended)
    }

    /// Tells whether no two of these readers are in one session. Then each can be given several messages before the
    /// next is given any, as order is kept within a session alone.
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

    /// How many sessions there are, the first included, and those that ended with answers that wait.
    pub fn sessions_len(&self) -> usize {
        self.sessions.len()
    }

    /// Ends a session: it gets nothing any more, and what it had is returned.
    ///
    /// At most `readers_max` readers are returned at a time. Called again it returns the next, and from the last of them
    /// on the unsettled deliveries, at most `unsettled_max` at a time. The first session ends with its connection alone, so that nothing is done to
    /// it.
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
            // Not before the last reader is gone, or what is released would be offered to it.
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
