//! Messages that leave a stream: by its limits, by age, by an operator's word, or because they are acknowledged.

use crate::confirm::Lsn;
use crate::entries::{Entry, Looked, Page, PageId};
use crate::error::BrokerError;
use crate::index::{Filter, StreamPurge};
use crate::queue::{Effects, Queue};
use crate::stream::Retention;
use crate::time::Time;

impl Queue {
    /// Removes a message from a stream, wherever it is, and has that recorded; `false` if it is not there.
    pub(crate) fn remove_message(&mut self, sequence: u64, effects: &mut Effects) -> bool {
        let is_there = self.forget(sequence);
        if let Some(durability) = self.durability.filter(|_| is_there) {
            effects.rare_mut().removed.push((durability.id, sequence));
        }
        is_there
    }

    /// Removes a message from a stream, wherever it is, when some record tells of that; `false` if it is not there.
    pub(crate) fn forget(&mut self, sequence: u64) -> bool {
        let Some(stream) = &mut self.stream else { return false };
        let Some(subject) = stream.index.remove(sequence) else { return false };
        stream.roles.remove(sequence);
        if stream.counters.get(&*subject).is_some_and(|counter| counter.last == sequence) {
            stream.counters.remove(&*subject);
        }
        for consumer in stream.consumers.values_mut() {
            let is_wanted = consumer.settings.filter.takes(&subject);
            consumer.removed(sequence, is_wanted);
        }
        match self.whereabouts(sequence) {
            Whereabouts::Memory => {
                if let Some(entry) = self.take_from_stream(sequence) {
                    self.let_go(&entry);
                }
            }
            Whereabouts::Disk(_) => {
                if let Some(page) = self.ready.remove_on_disk(sequence, &mut self.pages) {
                    self.settle_in_page(page, sequence);
                }
            }
            Whereabouts::Nowhere => {}
        }
        self.note_first();
        true
    }

    /// Removes the messages before this one, of a subject or all, when some record tells of that.
    pub(crate) fn forget_before(&mut self, end: u64, subject: Option<&[u8]>) {
        while let Some(stream) = &self.stream {
            let first =
                subject.map_or_else(|| stream.index.first(), |subject| stream.index.first_of(subject));
            let Some(first) = first.filter(|first| *first < end) else { return };
            self.forget(first);
        }
    }

    /// Refuses to purge a stream whose configuration forbids that.
    ///
    /// # Errors
    /// [`BrokerError::StreamKeeps`].
    pub(crate) fn check_purge(&self) -> Result<(), BrokerError> {
        let settings = self.stream.as_ref().map(|stream| &stream.settings);
        match settings.is_some_and(|settings| settings.is_sealed || settings.denies_purge) {
            true => Err(BrokerError::StreamKeeps(self.name.clone())),
            false => Ok(()),
        }
    }

    /// Refuses to delete single messages of a stream whose configuration forbids that.
    ///
    /// # Errors
    /// [`BrokerError::StreamKeeps`].
    pub(crate) fn check_delete(&self) -> Result<(), BrokerError> {
        let settings = self.stream.as_ref().map(|stream| &stream.settings);
        match settings.is_some_and(|settings| settings.is_sealed || settings.denies_delete) {
            true => Err(BrokerError::StreamKeeps(self.name.clone())),
            false => Ok(()),
        }
    }

    /// Deletes a message of a stream on a client's request; `false` if it is not there.
    pub fn delete_message(&mut self, sequence: u64, effects: &mut Effects) -> bool {
        self.remove_message(sequence, effects)
    }

    /// Removes the oldest messages of a subject until `keep` are left.
    fn keep_of_subject(&mut self, subject: &[u8], keep: u64, effects: &mut Effects) {
        while let Some(first) = self.stream.as_ref().and_then(|stream| {
            stream.index.first_of(subject).filter(|_| stream.index.count_of(subject) > keep)
        }) {
            self.remove_message(first, effects);
        }
    }

    /// Removes the oldest messages of a stream that is too long.
    fn enforce_length(&mut self, effects: &mut Effects) {
        while let Some(stream) = &self.stream {
            let is_over = self.settings.length_max.is_some_and(|max| stream.index.len() > max)
                || self.settings.length_bytes_max.is_some_and(|max| stream.index.bytes() > max);
            let Some(first) = stream.index.first().filter(|_| is_over) else { return };
            self.remove_message(first, effects);
        }
    }

    /// Removes what is beyond all limits of a stream, after they changed.
    pub(crate) fn enforce_stream(&mut self, now: Time, effects: &mut Effects) {
        let Some(stream) = &self.stream else { return };
        if let Some(max) = stream.settings.per_subject_max {
            let all = Filter::all();
            let over = stream.index.counts(&all).filter(|(_, count)| *count > max);
            let subjects: Vec<Box<[u8]>> = over.map(|(subject, _)| Box::from(subject)).collect();
            subjects.iter().for_each(|subject| self.keep_of_subject(subject, max, effects));
        }
        self.enforce_length(effects);
        self.expire_in_stream(now, effects);
    }

    /// Removes what an operator wants to be gone; returns how many messages.
    pub fn purge_stream(&mut self, purge: &StreamPurge, effects: &mut Effects) -> u64 {
        let Some(stream) = &self.stream else { return 0 };
        let mut gone = stream.index.sequences_of(&purge.filter);
        if let Some(end) = purge.up_to {
            gone.retain(|sequence| *sequence < end);
        }
        let kept = usize::try_from(purge.keep).unwrap_or(usize::MAX);
        gone.truncate(gone.len().saturating_sub(kept));
        gone.iter().for_each(|sequence| {
            self.remove_message(*sequence, effects);
        });
        gone.len() as u64
    }

    /// Removes a new message of a stream that keeps only what a consumer wants, if none does.
    pub(crate) fn retain_by_interest(&mut self, sequence: u64, effects: &mut Effects) {
        let retention = self.stream.as_ref().map(|stream| stream.settings.retention);
        if retention == Some(Retention::Interest) {
            self.retain_wanted([sequence], effects);
        }
    }

    /// Removes messages that readers are done with, as the retention of the stream says.
    pub(crate) fn retain_wanted(&mut self, done: impl IntoIterator<Item = u64>, effects: &mut Effects) {
        for sequence in done {
            let Some(stream) = &self.stream else { return };
            let is_over = match stream.settings.retention {
                Retention::Limits => return,
                Retention::WorkQueue => true,
                Retention::Interest => {
                    let subject = stream.index.subject(sequence).unwrap_or_default();
                    !stream.consumers.values().any(|consumer| consumer.needs(sequence, subject))
                }
            };
            if is_over {
                self.remove_message(sequence, effects);
            }
        }
    }

    /// Where a message of a stream is.
    pub(crate) fn whereabouts(&self, sequence: u64) -> Whereabouts {
        let Some(lane) = self.ready.lanes().next() else { return Whereabouts::Nowhere };
        let mut found = false;
        let looked = lane.look_from(sequence, |entry| {
            found = entry.envelope.sequence == sequence;
            true
        });
        match looked {
            Looked::OnDisk(page) => Whereabouts::Disk(page),
            Looked::Stopped(_) if found => Whereabouts::Memory,
            Looked::Stopped(_) | Looked::End => Whereabouts::Nowhere,
        }
    }

    /// A message of a stream that is in memory.
    pub(crate) fn in_memory(&self, sequence: u64) -> Option<Entry> {
        let lane = self.ready.lanes().next()?;
        let mut found = None;
        lane.look_from(sequence, |entry| {
            found = Some(entry).filter(|entry| entry.envelope.sequence == sequence).cloned();
            true
        });
        found
    }

    /// A message of a stream; asks for its page if it is on disk.
    pub(crate) fn read_message(&mut self, sequence: u64) -> Option<Entry> {
        match self.whereabouts(sequence) {
            Whereabouts::Memory => self.in_memory(sequence),
            Whereabouts::Disk(page) => {
                self.sought.push((0, page));
                None
            }
            Whereabouts::Nowhere => None,
        }
    }

    fn take_from_stream(&mut self, sequence: u64) -> Option<Entry> {
        let lane = self.ready.lanes().next()?;
        match lane.look_from(sequence, |_| true) {
            Looked::Stopped(stand) => self.ready.take_at(0, stand).map(|(entry, _)| entry),
            Looked::OnDisk(_) | Looked::End => None,
        }
    }

    /// Releases what a stream holds for a message that was taken out of memory.
    fn let_go(&mut self, entry: &Entry) {
        self.gauge.sub(Entry::CHARGE);
        let lsn = entry.envelope.lsn;
        let is_kept = entry.page.and_then(|page| self.pages.get(page)).is_some_and(Page::is_kept);
        if let Some(page) = entry.page {
            self.settle_in_page(page, entry.envelope.sequence);
        }
        if !is_kept {
            self.release_record(lsn);
        }
    }

    fn settle_in_page(&mut self, page: PageId, sequence: u64) {
        self.pages.note_hole(page, sequence);
        self.pages.settle(page, Lsn(sequence));
    }

    fn note_first(&mut self) {
        let front = self.ready.fronts().next().map(|front| front.envelope.since);
        if let (Some(stream), Some(time)) = (&mut self.stream, front) {
            stream.first_time = time;
        }
    }
}

/// Where a message of a stream is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whereabouts {
    Memory,
    /// In this page, as far as is known without reading it.
    Disk(PageId),
    Nowhere,
}
