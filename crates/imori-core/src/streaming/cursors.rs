//! The consumers of connections that read a stream: each has a cursor, and all of them see every message.

use crate::delivery::{Delivery, Taken};
use crate::entries::{Looked, PageId};
use crate::features::QueueFeatures;
use crate::id::Reader;
use crate::index::Filter;
use crate::message::HeaderReaders;
use crate::queue::Queue;
use crate::selector::Selector;
use crate::stream::{Cursor, CursorOptions, Start, Stream};
use crate::time::Time;

/// Messages that a consumer looks at before others have the stream.
const LOOKED_AT_ONCE: usize = 512;

/// Why a consumer gets nothing more now.
enum Stop {
    /// It has no credit or no room, or it is gone.
    Full,
    /// It has seen everything.
    AtEnd,
    /// It needs this page.
    OnDisk(PageId),
    /// It has used up its turn.
    Busy,
}

impl Queue {
    /// Adds an admitted consumer that reads a stream.
    pub fn add_cursor(
        &mut self,
        reader: Reader,
        (priority, is_exclusive): (i32, bool),
        (options, selector): (CursorOptions, Option<Selector>),
        headers: HeaderReaders,
        now: Time,
    ) {
        let Some(stream) = &self.stream else { return };
        let next = self.cursor_start(stream, options.start);
        if let Some(stream) = &mut self.stream {
            stream.cursors.add(reader, Cursor::new(next, options, selector, headers));
        }
        self.add_consumer(reader, priority, is_exclusive, now);
    }

    /// The first number that a consumer looks at. A number beyond the end is waited for.
    fn cursor_start(&self, stream: &Stream, start: Start) -> u64 {
        match start {
            Start::Sequence(sequence) => sequence.max(stream.index.first().unwrap_or(1)),
            other => self.starts_at(stream, other, &Filter::all()).0,
        }
    }

    /// Delivers messages of a stream to the consumers that can take more.
    pub(crate) fn deliver_from_stream(
        &mut self,
        now: Time,
        offer: &mut impl FnMut(Reader, &Delivery<'_>) -> Taken,
    ) {
        self.seek_again = None;
        let Some(mut stream) = self.stream.take() else { return };
        for reader in stream.cursors.take_waiting(stream.visible_end) {
            self.consumers.wake(reader);
        }
        let mut after = None;
        while let Some((turn, reader)) = self.consumers.next_in_turn(after) {
            after = Some(turn);
            let Some(cursor) = stream.cursors.get_mut(reader) else {
                self.consumers.wait(reader);
                continue;
            };
            match self.deliver_to_cursor(cursor, reader, stream.visible_end, offer) {
                Stop::Full => self.consumers.wait(reader),
                Stop::AtEnd => {
                    self.consumers.wait(reader);
                    stream.cursors.note_end(reader);
                }
                Stop::OnDisk(page) => {
                    self.features.add(QueueFeatures::PAGES);
                    self.features.add(QueueFeatures::SEEKERS);
                    self.sought.push((0, page));
                }
                Stop::Busy => {
                    self.features.add(QueueFeatures::SEEKERS);
                    self.seek_again = Some(now);
                }
            }
        }
        self.stream = Some(stream);
    }

    fn deliver_to_cursor(
        &mut self,
        cursor: &mut Cursor,
        reader: Reader,
        end: u64,
        offer: &mut impl FnMut(Reader, &Delivery<'_>) -> Taken,
    ) -> Stop {
        let Queue { ready, activity, .. } = self;
        let Some(lane) = ready.lanes().next() else { return Stop::AtEnd };
        let (mut left, mut stop) = (LOOKED_AT_ONCE, Stop::AtEnd);
        let looked = lane.look_from(cursor.next, |entry| {
            let sequence = entry.envelope.sequence;
            if sequence >= end {
                return true;
            }
            if left == 0 {
                stop = Stop::Busy;
                return true;
            }
            left -= 1;
            let address = entry.address();
            let delivery = Delivery {
                failures: 0,
                is_redelivered: false,
                is_of_stream: true,
                ..entry.delivery(&address)
            };
            if cursor.wants(&delivery, entry.envelope.since) {
                match offer(reader, &delivery) {
                    taken @ (Taken::Settled | Taken::Unsettled) => activity.delivered(taken, false),
                    Taken::Full | Taken::Gone => {
                        stop = Stop::Full;
                        return true;
                    }
                }
            }
            cursor.next = sequence + 1;
            false
        });
        if let Looked::OnDisk(page) = looked {
            return Stop::OnDisk(page);
        }
        if let Stop::AtEnd = stop {
            // The last messages may be gone already.
            cursor.next = cursor.next.max(end);
        }
        stop
    }
}
