//! Reading single messages of a stream.

use crate::index::Filter;
use crate::name::Name;
use crate::queue::Queue;
use crate::stream::{Get, GetForm, MessageQuery, Stream, StreamMessage};
use crate::time::Time;

use super::outlet::Outlet;
use super::remove::Whereabouts;

impl Queue {
    /// Asks for messages of a stream, which are sent with its next turn or once they are read from disk.
    pub fn get_from_stream(&mut self, get: Get) {
        if let Some(stream) = &mut self.stream {
            stream.gets.push_back(get);
        }
    }

    /// A request for the messages from a number or a time on that a filter takes; `None` if there is none.
    pub fn batch_from(
        &self,
        reply: Name,
        filter: &Filter,
        (from, since): (u64, Option<Time>),
        max: usize,
    ) -> Option<Get> {
        let stream = self.stream.as_ref()?;
        let since = since.and_then(|time| self.first_since(stream, time));
        let mut all = stream.index.sequences_of(filter);
        all.retain(|sequence| (since.unwrap_or(from)..stream.visible_end).contains(sequence));
        self.batch_of(reply, all, self.last_sequence(), max)
    }

    /// A request for the newest message up to `up_to` of each subject that a filter takes; `None` if there is none.
    pub fn last_of_each(&self, reply: Name, filter: &Filter, up_to: u64, max: usize) -> Option<Get> {
        let stream = self.stream.as_ref()?;
        let all = stream.index.last_of_each(filter, up_to.min(stream.visible_end.saturating_sub(1)));
        self.batch_of(reply, all, up_to, max)
    }

    fn batch_of(&self, reply: Name, mut all: Vec<u64>, up_to: u64, max: usize) -> Option<Get> {
        let matching = all.len() as u64;
        all.truncate(max);
        (matching > 0).then(|| Get::batch(reply, all, matching, up_to))
    }

    /// Sends the messages that were asked for, as far as they are in memory.
    pub(super) fn send_gets(&mut self, stream: &mut Stream, outlet: &mut impl Outlet) {
        let mut gets = std::mem::take(&mut stream.gets);
        gets.retain_mut(|get| {
            while let Some(wanted) = get.wants.front() {
                let Some(sequence) = self.sequence_of(stream, wanted) else {
                    if get.batch.is_none() {
                        outlet.send(&get.reply, &StreamMessage::NotFound(get.form));
                    }
                    get.wants.pop_front();
                    continue;
                };
                let entry = match self.whereabouts(sequence) {
                    Whereabouts::Disk(page) => {
                        self.sought.push((0, page));
                        return true;
                    }
                    Whereabouts::Memory => self.in_memory(sequence),
                    Whereabouts::Nowhere => None,
                };
                get.wants.pop_front();
                let Some(entry) = entry else {
                    outlet.send(&get.reply, &StreamMessage::NotFound(get.form));
                    continue;
                };
                let follow = get.wants.len() as u64;
                let batch = get.batch.as_mut().map(|batch| {
                    let before = std::mem::replace(&mut batch.last, sequence);
                    (batch.left + follow, before)
                });
                let message = match get.form {
                    GetForm::Direct => StreamMessage::Direct { stream: &self.name, entry: &entry, batch },
                    GetForm::Stored => StreamMessage::Stored { entry: &entry },
                };
                outlet.send(&get.reply, &message);
            }
            if let Some(batch) = get.batch {
                let (left, up_to, last) = (batch.left, batch.up_to, batch.last);
                outlet.send(&get.reply, &StreamMessage::BatchEnd { left, up_to, last });
            }
            false
        });
        stream.gets.append(&mut gets);
    }

    /// The number of the message that is asked for, if readers may see it.
    fn sequence_of(&self, stream: &Stream, wanted: &MessageQuery) -> Option<u64> {
        let found = match wanted {
            MessageQuery::Sequence(sequence) => {
                Some(*sequence).filter(|sequence| stream.index.contains(*sequence))
            }
            MessageQuery::LastOf(filter) => {
                // A newer message that is not at the stream's level yet does not hide this one.
                stream.index.last_of_each(filter, stream.visible_end.saturating_sub(1)).last().copied()
            }
            MessageQuery::NextOf(from, filter) => stream.index.next(filter, *from),
            MessageQuery::Since(time, filter) => {
                self.first_since(stream, *time).and_then(|from| stream.index.next(filter, from))
            }
        };
        found.filter(|sequence| *sequence < stream.visible_end)
    }
}
