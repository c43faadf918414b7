//! A session: the conversation that numbers its deliveries, and its unsettled deliveries.

use std::collections::VecDeque;
use std::mem::size_of;
use std::ops::RangeInclusive;

use super::answers::Answers;
use super::credit::FrameWindow;
use super::readers::Record;
use crate::delivery::QueuePosition;
use crate::id::ReaderId;
use crate::id::SessionId;

/// A delivery that its reader has not settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unsettled {
    /// The delivery's number in the session.
    pub number: u64,
    /// The message's queue, and its position in that queue.
    pub place: QueuePosition,
    /// The reader that has the message.
    pub reader: ReaderId,
}

/// The deliveries that a client selects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Numbers {
    /// This delivery.
    One(u64),
    /// This delivery and all earlier ones in the session.
    UpTo(u64),
    /// This delivery and all earlier ones of one reader.
    UpToOf(u64, ReaderId),
    /// The delivery with the first number and those directly after it, up to the last number, until one is
    /// settled or missing.
    InRow(u64, u64),
    /// The unsettled deliveries from the first number to the last, possibly none.
    Range(u64, u64),
    /// All unsettled deliveries of the session, possibly none.
    All,
    /// All unsettled deliveries of one reader, possibly none.
    AllOf(ReaderId),
}

impl Numbers {
    /// The number of the delivery that must be unsettled for anything to be selected; `None` if nothing is required.
    pub fn named(self) -> Option<u64> {
        match self {
            Numbers::One(number)
            | Numbers::UpTo(number)
            | Numbers::UpToOf(number, _)
            | Numbers::InRow(number, _) => Some(number),
            Numbers::Range(..) | Numbers::All | Numbers::AllOf(_) => None,
        }
    }

    /// Whether a delivery within the range of numbers is selected.
    fn mean(self, unsettled: &Unsettled) -> bool {
        match self {
            Numbers::One(_) | Numbers::UpTo(_) | Numbers::InRow(..) | Numbers::Range(..) | Numbers::All => {
                true
            }
            Numbers::UpToOf(_, reader) | Numbers::AllOf(reader) => unsettled.reader == reader,
        }
    }
}

/// Settled deliveries that may keep a slot, in addition to as many as are unsettled.
const HOLES_MAX: usize = 64;

/// A session: its numbered deliveries, and all other state that only this session has.
#[derive(Debug, Default)]
pub(super) struct Session {
    pub(super) id: SessionId,
    /// The session takes no more deliveries; answers may still wait.
    pub(super) is_ended: bool,
    /// Maximum number of unsettled deliveries; `None` for no limit.
    pub(super) window: Option<u32>,
    /// Readers that were refused because the window was full, in order.
    pub(super) line: VecDeque<ReaderId>,
    /// Slots of the session's readers, in no order; empty for the first session, which ends with the connection.
    pub(super) readers: Vec<u32>,
    /// The last round in which a reader of this session was seen.
    pub(super) seen_in: u64,
    /// Number of inboxes that the session has opened, which are limited for each connection.
    pub(super) inboxes: u16,
    pub(super) answers: Answers,
    /// The window of frames that the peer takes, if frames are counted.
    pub(super) frames: Option<Box<FrameWindow>>,
    last_number: u64,
    /// By rising number; `None` if the delivery was settled before an earlier one.
    unsettled: VecDeque<(u64, Option<Unsettled>)>,
    unsettled_len: usize,
}

/// A session as shown to an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionInspection {
    /// The session's number in the connection.
    pub id: SessionId,
    /// Maximum number of unsettled deliveries; `None` for no limit.
    pub window: Option<u32>,
    /// Number of unsettled deliveries.
    pub unsettled: usize,
    /// Number of consumers and subscriptions.
    pub readers: usize,
    /// Number of deliveries so far.
    pub delivered: u64,
}

impl Session {
    /// Shows the session to an operator.
    pub(super) fn inspect(&self) -> SessionInspection {
        SessionInspection {
            id: self.id,
            window: self.window,
            unsettled: self.unsettled_len,
            readers: self.readers.len(),
            delivered: self.delivered(),
        }
    }

    /// Bytes charged for an unsettled delivery in its session; the list doubles its capacity as it grows.
    pub(super) const UNSETTLED_BYTES: usize = size_of::<(u64, Option<Unsettled>)>() * 3 / 2;

    /// The number of the next delivery.
    pub(super) fn next_number(&self) -> u64 {
        self.last_number + 1
    }

    /// Number of deliveries sent.
    pub(super) fn delivered(&self) -> u64 {
        self.last_number
    }

    /// Bytes that wait for the frame window.
    pub(super) fn rest_bytes(&self) -> usize {
        self.frames.as_ref().map_or(0, |frames| frames.rest_bytes())
    }

    /// Counts deliveries that need no settling.
    pub(super) fn sent(&mut self, deliveries: usize) {
        self.last_number += deliveries as u64;
    }

    /// Adds a delivery that has to be settled.
    pub(super) fn sent_unsettled(&mut self, place: QueuePosition, reader: ReaderId) {
        self.last_number += 1;
        let unsettled = Unsettled { number: self.last_number, place, reader };
        self.unsettled.push_back((self.last_number, Some(unsettled)));
        self.unsettled_len += 1;
    }

    /// The delivery with this number, if it is unsettled.
    pub(super) fn find(&self, number: u64) -> Option<&Unsettled> {
        let index = self.unsettled.binary_search_by_key(&number, |(number, _)| *number).ok()?;
        self.unsettled.get(index)?.1.as_ref()
    }

    /// The unsettled deliveries.
    pub(super) fn unsettled(&self) -> impl Iterator<Item = &Unsettled> {
        self.unsettled.iter().filter_map(|(_, unsettled)| unsettled.as_ref())
    }

    /// Number of unsettled deliveries.
    #[cfg(test)]
    pub(super) fn unsettled_len(&self) -> usize {
        self.unsettled_len
    }

    /// Whether a window can limit such a delivery: the window of unsettled deliveries, or the window of frames.
    #[inline]
    pub(super) fn limits(&self, settles: bool) -> bool {
        settles || self.frames.is_some()
    }

    /// Whether the windows allow one more delivery.
    #[inline]
    pub(super) fn has_window(&self, settles: bool) -> bool {
        let is_full = settles && self.window.is_some_and(|window| self.unsettled_len >= window as usize);
        !is_full && self.frames.as_ref().is_none_or(|frames| frames.is_open())
    }

    /// Puts a reader at the end of the line for the window, unless it is in the line.
    pub(super) fn join_line(&mut self, record: &mut Record, id: ReaderId) {
        if !record.is_in_line {
            record.is_in_line = true;
            self.line.push_back(id);
        }
    }

    /// Whether the session has ended with nothing left.
    pub(super) fn is_over(&self) -> bool {
        self.is_ended && self.readers.is_empty() && self.unsettled_len == 0 && self.answers.is_empty()
    }

    /// Takes the deliveries that `numbers` selects, in order and up to `max`; also returns whether others are
    /// left. Takes none if a named delivery is not unsettled.
    pub(super) fn settle(&mut self, numbers: Numbers, max: usize) -> (Vec<Unsettled>, bool) {
        let Some(range) = self.range(numbers) else {
            return (Vec::new(), false);
        };
        let count = (range.end() - range.start()).saturating_add(1).min(self.unsettled_len).min(max);
        let (mut taken, mut has_more) = (Vec::with_capacity(count), false);
        for (_, place) in self.unsettled.range_mut(range) {
            if place.as_ref().is_some_and(|unsettled| numbers.mean(unsettled)) {
                if taken.len() >= max {
                    has_more = true;
                    break;
                }
                taken.extend(place.take());
            }
        }
        self.note_taken(taken.len());
        (taken, has_more)
    }

    /// Takes the delivery that `numbers` selects, if its range holds this one alone; otherwise `None`.
    #[inline]
    pub(super) fn settle_only(&mut self, numbers: Numbers) -> Option<Unsettled> {
        // The general path gathers a row anyway; counting it here would count it twice.
        if matches!(numbers, Numbers::InRow(first, last) if first != last) {
            return None;
        }
        let range = self.range(numbers)?;
        let (_, place) = self.unsettled.get_mut(*range.start()).filter(|_| range.start() == range.end())?;
        let only = place.take_if(|unsettled| numbers.mean(unsettled))?;
        self.note_taken(1);
        Some(only)
    }

    /// Notes that this many deliveries were taken out.
    fn note_taken(&mut self, count: usize) {
        self.unsettled_len -= count;
        while self.unsettled.front().is_some_and(|(_, unsettled)| unsettled.is_none()) {
            self.unsettled.pop_front();
        }
        self.close_holes();
    }

    /// The deliveries that `numbers` selects above the number `above`, in order; none if a named delivery is
    /// not unsettled.
    pub(super) fn meant(&self, numbers: Numbers, above: u64) -> Vec<Unsettled> {
        let Some(range) = self.range(numbers) else {
            return Vec::new();
        };
        let first = self.unsettled.partition_point(|(number, _)| *number <= above).max(*range.start());
        let range = first..=*range.end();
        if range.is_empty() {
            return Vec::new();
        }
        let meant = self.unsettled.range(range).filter_map(|(_, unsettled)| *unsettled);
        meant.filter(|unsettled| numbers.mean(unsettled)).collect()
    }

    /// Drops the slots of settled deliveries, so that one unsettled delivery does not keep all slots behind
    /// it.
    fn close_holes(&mut self) {
        if self.unsettled.len() > 2 * self.unsettled_len + HOLES_MAX {
            self.unsettled.retain(|(_, unsettled)| unsettled.is_some());
        }
        if self.unsettled.capacity() > 8 * (self.unsettled.len() + HOLES_MAX) {
            self.unsettled.shrink_to(2 * self.unsettled.len());
        }
    }

    fn range(&self, numbers: Numbers) -> Option<RangeInclusive<usize>> {
        if let Some(named) = numbers.named() {
            let place = self.unsettled.binary_search_by_key(&named, |(number, _)| *number).ok()?;
            self.unsettled.get(place)?.1.as_ref()?;
            return Some(match numbers {
                Numbers::One(_) => place..=place,
                Numbers::InRow(first, last) => {
                    let in_row = (first..=last).zip(self.unsettled.range(place..));
                    let count = in_row
                        .take_while(|(expected, (number, unsettled))| {
                            expected == number && unsettled.is_some()
                        })
                        .count();
                    place..=place + count.saturating_sub(1)
                }
                _ => 0..=place,
            });
        }
        let (first, last) = match numbers {
            Numbers::Range(first, last) => (first, last),
            _ => (0, u64::MAX),
        };
        let first = self.unsettled.partition_point(|(number, _)| *number < first);
        let last = self.unsettled.partition_point(|(number, _)| *number <= last).checked_sub(1)?;
        (first <= last).then_some(first..=last)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::id::QueueId;

    fn place(sequence: u64) -> QueuePosition {
        QueuePosition { queue: QueueId { slot: 0, generation: 0 }, sequence }
    }

    fn reader(slot: u32) -> ReaderId {
        ReaderId { slot, generation: 0 }
    }

    fn numbers(taken: &[Unsettled]) -> Vec<u64> {
        taken.iter().map(|unsettled| unsettled.number).collect()
    }

    /// Settles the selected deliveries, three at a time, as long as there are more.
    fn settled_in_pieces(session: &mut Session, meant: Numbers) -> Vec<u64> {
        let mut settled = Vec::new();
        loop {
            let (taken, has_more) = session.settle(meant, 3);
            settled.extend(numbers(&taken));
            assert!(taken.len() == 3 || !has_more);
            if !has_more {
                return settled;
            }
        }
    }

    #[test]
    fn clients_settle_one_or_up_to_one_or_those_of_a_reader() {
        // Deliveries 1 to 6: number 3 needs no settling, even ones are reader 2's, 5 is settled already.
        for (meant, expected) in [
            (Numbers::One(4), &[4][..]),
            (Numbers::One(3), &[]),
            (Numbers::One(5), &[]),
            (Numbers::One(0), &[]),
            (Numbers::One(7), &[]),
            (Numbers::One(u64::MAX), &[]),
            (Numbers::UpTo(4), &[1, 2, 4]),
            (Numbers::UpTo(6), &[1, 2, 4, 6]),
            (Numbers::UpTo(5), &[]),
            (Numbers::UpTo(u64::MAX), &[]),
            (Numbers::UpToOf(6, reader(2)), &[2, 4, 6]),
            (Numbers::UpToOf(4, reader(1)), &[1]),
            (Numbers::UpToOf(4, reader(9)), &[]),
            (Numbers::InRow(1, 4), &[1, 2]),
            (Numbers::InRow(1, 1), &[1]),
            (Numbers::InRow(4, 6), &[4]),
            (Numbers::InRow(6, 9), &[6]),
            (Numbers::InRow(3, 4), &[]),
            (Numbers::InRow(5, 6), &[]),
            (Numbers::InRow(4, 2), &[4]),
            (Numbers::InRow(u64::MAX, u64::MAX), &[]),
            (Numbers::Range(2, 4), &[2, 4]),
            (Numbers::Range(3, 3), &[]),
            (Numbers::Range(5, 9), &[6]),
            (Numbers::Range(0, u64::MAX), &[1, 2, 4, 6]),
            (Numbers::Range(4, 2), &[]),
            (Numbers::Range(7, 9), &[]),
            (Numbers::All, &[1, 2, 4, 6]),
            (Numbers::AllOf(reader(2)), &[2, 4, 6]),
            (Numbers::AllOf(reader(9)), &[]),
        ] {
            let mut session = Session::default();
            for number in 1..=6_u64 {
                match number {
                    3 => session.sent(1),
                    _ => session.sent_unsettled(place(number), reader(if number % 2 == 0 { 2 } else { 1 })),
                }
            }
            session.settle(Numbers::One(5), 1);
            for above in 0..8 {
                let higher: Vec<u64> = expected.iter().copied().filter(|number| *number > above).collect();
                assert_eq!(numbers(&session.meant(meant, above)), higher, "{meant:?} above {above}");
            }
            assert_eq!(numbers(&session.settle(meant, usize::MAX).0), expected, "{meant:?}");
            assert_eq!(session.unsettled_len(), 4 - expected.len(), "{meant:?}");
            assert_eq!(session.settle(Numbers::All, usize::MAX).0.len(), 4 - expected.len(), "{meant:?}");
            assert_eq!((session.unsettled_len(), session.next_number()), (0, 7));
        }
    }

    #[test]
    fn a_delivery_that_is_never_settled_does_not_keep_those_after_it() {
        let mut session = Session::default();
        for number in 1..=100_000 {
            session.sent_unsettled(place(number), reader(1));
            if number > 1 {
                assert_eq!(session.settle(Numbers::One(number), 1).0.len(), 1);
            }
        }
        assert_eq!(session.unsettled_len(), 1);
        assert!(session.find(1).is_some());
        let kept = session.unsettled.len();
        assert!(kept < 1000, "{kept} places are kept for one delivery");
    }

    #[derive(Debug, Clone)]
    enum Step {
        Sent,
        SentUnsettled(u32),
        One(u64),
        UpTo(u64),
        UpToOf(u64, u32),
        InRow(u64, u64),
        Range(u64, u64),
        All,
        AllOf(u32),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            1 => Just(Step::Sent),
            6 => (0..3_u32).prop_map(Step::SentUnsettled),
            4 => any::<u64>().prop_map(Step::One),
            1 => any::<u64>().prop_map(Step::UpTo),
            1 => (any::<u64>(), 0..3_u32).prop_map(|(number, slot)| Step::UpToOf(number, slot)),
            1 => any::<(u64, u64)>().prop_map(|(first, last)| Step::InRow(first, last)),
            1 => any::<(u64, u64)>().prop_map(|(first, last)| Step::Range(first, last)),
            1 => Just(Step::All),
            1 => (0..3_u32).prop_map(Step::AllOf),
        ]
    }

    proptest! {
        #[test]
        fn a_session_does_what_a_map_does(steps in prop::collection::vec(step(), 1..400)) {
            let mut session = Session::default();
            let mut model = BTreeMap::<u64, u32>::new();
            let mut last = 0;
            for step in steps {
                let near = |number: u64| number % (last + 2);
                let meant = match step {
                    Step::Sent => {
                        last += 1;
                        session.sent(1);
                        continue;
                    }
                    Step::SentUnsettled(slot) => {
                        last += 1;
                        session.sent_unsettled(place(last), reader(slot));
                        model.insert(last, slot);
                        continue;
                    }
                    Step::One(number) => Numbers::One(near(number)),
                    Step::UpTo(number) => Numbers::UpTo(near(number)),
                    Step::UpToOf(number, slot) => Numbers::UpToOf(near(number), reader(slot)),
                    Step::InRow(first, last) => Numbers::InRow(near(first), near(last)),
                    Step::Range(first, last) => Numbers::Range(near(first), near(last)),
                    Step::All => Numbers::All,
                    Step::AllOf(slot) => Numbers::AllOf(reader(slot)),
                };
                let named = meant.named().unwrap_or(u64::MAX);
                let expected: Vec<u64> = model
                    .iter()
                    .filter(|(number, slot)| match meant {
                        Numbers::One(_) => **number == named,
                        Numbers::UpTo(_) => model.contains_key(&named) && **number <= named,
                        Numbers::UpToOf(_, of) => {
                            model.contains_key(&named) && **number <= named && reader(**slot) == of
                        }
                        Numbers::InRow(first, last) => {
                            (first..=last.max(first)).contains(*number)
                                && (first..**number).all(|before| model.contains_key(&before))
                        }
                        Numbers::Range(first, last) => (first..=last).contains(*number),
                        Numbers::All => true,
                        Numbers::AllOf(of) => reader(**slot) == of,
                    })
                    .map(|(number, _)| *number)
                    .collect();
                prop_assert_eq!(session.find(named).is_some(), model.contains_key(&named));
                prop_assert_eq!(numbers(&session.meant(meant, 0)), expected.clone());
                // Once a part is settled, the rest of a row begins at a later number.
                let settled = match meant {
                    Numbers::InRow(..) => numbers(&session.settle(meant, usize::MAX).0),
                    meant => settled_in_pieces(&mut session, meant),
                };
                prop_assert_eq!(settled, expected.clone());
                model.retain(|number, _| !expected.contains(number));
                prop_assert_eq!(session.unsettled_len(), model.len());
                prop_assert!(session.unsettled.len() <= 2 * model.len() + HOLES_MAX);
            }
            prop_assert_eq!(numbers(&session.settle(Numbers::All, usize::MAX).0), model.into_keys().collect::<Vec<u64>>());
        }
    }
}
