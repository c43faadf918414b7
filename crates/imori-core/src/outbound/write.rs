//! The writer's side of a connection: taking unsent bytes, and waking the readers that have room again.

use std::mem;

use super::encoder::SharedHeaders;
use super::outbound::{Outbound, Wake};
use super::readers::Source;
use crate::id::ConnectionId;

impl Outbound {
    /// Whether there is something to write and no writer has it.
    pub fn has_unsent(&self) -> bool {
        self.unsent() > 0
    }

    /// Marks the connection as listed by a cell for writing; `false` if it was.
    pub fn touch(&mut self) -> bool {
        !mem::replace(&mut self.is_touched, true)
    }

    /// Notes that the connection is on no cell's list.
    pub fn untouch(&mut self) {
        self.is_touched = false;
    }

    /// Lends the connection an empty vector to write into, unless it has one; returns whether one was lent.
    pub fn lend(&mut self, storage: impl FnOnce() -> Option<Vec<u8>>) -> bool {
        let storage = if self.buffer.has_storage() { None } else { storage() };
        let is_lent = storage.is_some();
        storage.into_iter().for_each(|storage| self.buffer.lend(storage));
        is_lent
    }

    /// Takes back a lent vector that was not written into.
    pub fn reclaim(&mut self) -> Option<Vec<u8>> {
        self.buffer.reclaim()
    }

    /// The bytes to write next, and how many of them are already written. There is one writer at a time:
    /// these bytes have to be put back before the next can be taken.
    pub fn take_unsent(&mut self) -> Option<(Vec<u8>, usize)> {
        if self.buffer.unsent() < self.limits.feed_bytes {
            self.encode_backlog(self.limits.feed_bytes);
        }
        self.buffer.take()
    }

    /// Puts back bytes that were taken, with `written` of them now written. Returns the emptied vector for
    /// reuse if all are written.
    pub fn put_back(&mut self, bytes: Vec<u8>, written: usize) -> Option<Vec<u8>> {
        // The connection was closed during the write; the remaining bytes are discarded.
        let written = if self.is_closed { bytes.len() } else { written };
        self.buffer.put_back(bytes, written)
    }

    /// Notes that writing stops, because everything is written or the socket takes no more. Charges the
    /// waiting bytes, and returns the consumers and publishers that have room again.
    pub fn written(&mut self) -> (Vec<Wake>, Vec<ConnectionId>) {
        self.charge(self.waiting_bytes());
        let is_drained = self.unsent() <= self.limits.feed_bytes / 2;
        if !is_drained {
            return (Vec::new(), Vec::new());
        }
        let mut wakes = Vec::new();
        if mem::take(&mut self.is_starved) {
            self.rounds = self.rounds.wrapping_add(1);
            for (reader, record) in self.readers.iter_mut() {
                if let Source::Queue(queue) = record.spec.source
                    && record.is_starved
                    && !record.is_in_line
                    && !record.is_held
                    && record.spec.credit.has_any()
                {
                    if let Some(session) = self.sessions.at_mut(record.session)
                        && !session.has_window(record.spec.settles)
                    {
                        session.join_line(record, reader);
                        continue;
                    }
                    record.is_starved = false;
                    wakes.push(Wake { queue, reader, line: None });
                }
            }
        }
        if !wakes.is_empty() {
            // The consumer that is woken first can take all the room.
            let first = self.rounds % wakes.len();
            wakes.rotate_left(first);
        }
        (wakes, mem::take(&mut self.throttled))
    }

    /// Registers `publisher` to wait until there is room; `false` if there is room already.
    pub fn throttle(&mut self, publisher: ConnectionId) -> bool {
        let has_room = self.is_ended() || self.has_room();
        if !has_room && !self.throttled.contains(&publisher) {
            self.throttled.push(publisher);
        }
        !has_room
    }

    fn encode_backlog(&mut self, until_bytes: usize) {
        while self.buffer.unsent() < until_bytes
            && let Some(waiting) = self.backlog.pop()
        {
            let address = waiting.address();
            let delivery = waiting.delivery(&address);
            self.encode(waiting.receiver, &delivery, &mut SharedHeaders::for_receivers(1));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::deliver::WAITING_BODY_MIN;
    use super::super::test_stage::{FEED_BYTES, ME, QUEUE, Stage, long};
    use super::super::{Credit, Live, OutboundLimits};
    use super::*;
    use crate::confirm::Confirm;
    use crate::delivery::Taken;

    #[test]
    fn a_consumer_without_room_is_woken_when_half_is_written() {
        let mut stage = Stage::new();
        let reader = stage.consume("a", QUEUE, true, Credit::window(3));
        assert_eq!(stage.offer(reader, 1, &long("x")), Taken::Unsettled);
        assert_eq!(stage.offer(reader, 2, "m"), Taken::Full);
        let (bytes, _) = stage.outbound.take_unsent().unwrap();
        let len = bytes.len();
        assert_eq!(stage.outbound.take_unsent(), None, "there is one writer");
        stage.outbound.put_back(bytes, len - FEED_BYTES / 2 - 1);
        assert_eq!(stage.wakes(), []);
        let (bytes, _) = stage.outbound.take_unsent().unwrap();
        stage.outbound.put_back(bytes, len - FEED_BYTES / 2);
        assert_eq!(stage.wakes(), [reader]);
        assert_eq!(stage.wakes(), [], "it was told");
    }

    #[test]
    fn consumers_of_one_connection_are_first_by_turns() {
        let mut stage = Stage::new();
        let readers = ["a", "b", "c"].map(|label| stage.consume(label, QUEUE, false, Credit::Unlimited));
        stage.offer(readers[0], 1, &long("x"));
        let mut first = BTreeSet::new();
        for sequence in 2..5 {
            // Each consumer is refused; once there is room again, the one woken first takes it all.
            for reader in readers {
                assert_eq!(stage.offer(reader, sequence, "m"), Taken::Full);
            }
            stage.written();
            let wakes = stage.wakes();
            assert_eq!(wakes.iter().collect::<BTreeSet<_>>(), readers.iter().collect());
            first.insert(wakes[0]);
            assert_eq!(stage.offer(wakes[0], sequence, &long("x")), Taken::Settled);
        }
        assert_eq!(first.len(), 3, "each was first once");
    }

    #[test]
    fn a_throttled_publisher_is_let_go_on() {
        let (one, two) = (ConnectionId { slot: 1, ..ME }, ConnectionId { slot: 2, ..ME });
        let mut stage = Stage::new();
        let reader = stage.subscribe("l");
        assert!(!stage.outbound.throttle(one), "there is room");
        assert_eq!(stage.send(reader, &long("x")), Live::SlowReader);
        assert!(stage.outbound.throttle(one) && stage.outbound.throttle(two) && stage.outbound.throttle(one));
        assert_eq!(stage.outbound.written().1, []);
        stage.written();
        assert_eq!(stage.outbound.written().1, [one, two]);
        assert_eq!(stage.outbound.written().1, []);

        stage.send(reader, &long("x"));
        assert!(stage.outbound.throttle(two));
        assert_eq!(stage.outbound.close(9, usize::MAX).throttled, [two], "also when it is gone");
        assert!(!stage.outbound.throttle(one));
    }

    #[test]
    fn what_waits_for_a_slow_reader_is_charged_while_it_waits() {
        let mut stage = Stage::new();
        stage.outbound.limits =
            OutboundLimits { feed_bytes: 100_000, unsent_bytes_max: 10_000_000, ..stage.outbound.limits };
        let reader = stage.subscribe("l");
        // The socket is full, and nothing is written.
        for body in ["s".repeat(WAITING_BODY_MIN - 1), "b".repeat(WAITING_BODY_MIN)] {
            for _ in 0..2000 {
                stage.send(reader, &body);
            }
            let (charged, unsent) = (stage.gauge.bytes(), stage.outbound.unsent());
            assert!(charged * 10 > unsent * 8, "{charged} of {unsent} unsent bytes are charged");
            assert!(charged <= unsent, "{charged} of {unsent} unsent bytes are charged");
        }
        stage.written();
        stage.outbound.written();
        assert_eq!(stage.gauge.bytes(), 0);
    }

    #[test]
    fn storage_that_is_lent_comes_back() {
        let mut stage = Stage::new();
        let (storage, other) = (Vec::with_capacity(1000), Vec::with_capacity(10));
        assert!(stage.outbound.lend(|| Some(storage)));
        assert!(!stage.outbound.lend(|| Some(other)), "it has some");
        assert_eq!(stage.outbound.reclaim().map(|storage| storage.capacity()), Some(1000));
        assert_eq!(stage.outbound.reclaim(), None);
        assert!(!stage.outbound.lend(|| None));
        assert!(stage.outbound.lend(|| Some(Vec::with_capacity(1000))));
        stage.answer(Confirm::NOW, "a");
        assert_eq!(stage.outbound.reclaim(), None, "it is in use");
        let (bytes, written) = stage.outbound.take_unsent().unwrap();
        assert_eq!((&bytes[..], written), (&b"a"[..], 0));
        let spare = stage.outbound.put_back(bytes, 1).unwrap();
        assert_eq!((spare.len(), spare.capacity()), (0, 1000));
    }

    #[test]
    fn it_is_on_one_list_of_those_to_write() {
        let mut stage = Stage::new();
        assert!(stage.outbound.touch());
        assert!(!stage.outbound.touch());
        stage.outbound.untouch();
        assert!(stage.outbound.touch());
    }

    #[test]
    fn what_a_connection_was_sent_is_known_until_it_is_forgotten() {
        let mut stage = Stage::new();
        let (queue, gone) = (stage.consume("q", QUEUE, true, Credit::Unlimited), stage.subscribe("gone"));
        let live = stage.subscribe("live");
        stage.outbound.remove_reader(gone);
        let slots =
            |stage: &Stage, from| stage.outbound.readers_from(from).map(|(slot, _)| slot).collect::<Vec<_>>();
        assert_eq!((slots(&stage, 0), slots(&stage, 1), slots(&stage, 3)), (vec![0, 2], vec![2], vec![]));
        stage.offer(queue, 1, "one");
        stage.send(live, "two");
        let appended = stage.outbound.appended();
        assert_eq!((stage.outbound.delivered(), appended), (2, "q#1?:one;live#2:two;".len() as u64));
        stage.outbound.close(usize::MAX, usize::MAX);
        assert_eq!((stage.outbound.delivered(), stage.outbound.appended()), (2, appended));
        assert_eq!(stage.outbound.unsent(), 0);
    }
}
