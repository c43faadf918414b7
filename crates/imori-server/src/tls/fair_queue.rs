//! A bounded queue that serves its sources in turn.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;

/// Takes one piece of work of each source in turn, and a source's own work in order.
#[derive(Debug)]
pub(super) struct FairQueue<T> {
    by_source: HashMap<IpAddr, VecDeque<T>>,
    /// Sources with waiting work, the next one first.
    turns: VecDeque<IpAddr>,
    len: usize,
    len_max: usize,
}

impl<T> FairQueue<T> {
    /// A queue of at most `len_max` pieces.
    pub(super) fn new(len_max: usize) -> FairQueue<T> {
        FairQueue { by_source: HashMap::new(), turns: VecDeque::new(), len: 0, len_max }
    }

    /// Pieces of work waiting.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Adds work. If the queue is full, returns the oldest piece of the source that has the most.
    pub(super) fn push(&mut self, source: IpAddr, work: T) -> Option<T> {
        let gives_way =
            if self.len >= self.len_max { self.fullest().and_then(|of| self.take(of)) } else { None };
        let of_source = self.by_source.entry(source).or_default();
        if of_source.is_empty() {
            self.turns.push_back(source);
        }
        of_source.push_back(work);
        self.len += 1;
        gives_way
    }

    /// Takes the next piece.
    pub(super) fn pop(&mut self) -> Option<T> {
        let source = self.turns.front().copied()?;
        let work = self.take(source);
        if self.turns.front() == Some(&source) {
            self.turns.rotate_left(1);
        }
        work
    }

    /// Drops all waiting work.
    pub(super) fn clear(&mut self) {
        self.by_source.clear();
        self.turns.clear();
        self.len = 0;
    }

    fn fullest(&self) -> Option<IpAddr> {
        self.by_source.iter().max_by_key(|(_, work)| work.len()).map(|(source, _)| *source)
    }

    /// Takes the oldest piece of a source, and ends the source's turns with its last piece.
    fn take(&mut self, source: IpAddr) -> Option<T> {
        let of_source = self.by_source.get_mut(&source)?;
        let work = of_source.pop_front()?;
        if of_source.is_empty() {
            self.by_source.remove(&source);
            self.turns.retain(|other| *other != source);
        }
        self.len -= 1;
        Some(work)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOOD: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
    const OTHER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2));

    fn rest(queue: &mut FairQueue<u32>) -> Vec<u32> {
        std::iter::from_fn(|| queue.pop()).collect()
    }

    #[test]
    fn sources_take_turns_and_each_keeps_its_order() {
        let mut queue = FairQueue::new(10);
        for work in [1, 2, 3] {
            assert_eq!(queue.push(FLOOD, work), None);
        }
        assert_eq!(queue.push(OTHER, 7), None);
        assert_eq!(queue.pop(), Some(1));
        assert_eq!(queue.push(OTHER, 8), None);
        assert_eq!(rest(&mut queue), [7, 2, 8, 3]);
        assert_eq!((queue.len(), queue.pop()), (0, None));
    }

    /// SECURITY LIM-04.
    #[test]
    fn where_too_much_waits_the_source_with_the_most_gives_its_oldest_piece_away() {
        let mut queue = FairQueue::new(4);
        for work in [1, 2, 3] {
            queue.push(FLOOD, work);
        }
        queue.push(OTHER, 7);
        assert_eq!(queue.push(FLOOD, 4), Some(1), "a flood pushes itself out");
        assert_eq!(queue.push(OTHER, 8), Some(2), "and makes room for others");
        assert_eq!(queue.len(), 4);
        assert_eq!(rest(&mut queue), [3, 7, 4, 8]);
        let mut queue = FairQueue::new(1);
        queue.push(OTHER, 7);
        assert_eq!(queue.push(OTHER, 8), Some(7), "its last piece is its oldest one");
        assert_eq!(rest(&mut queue), [8]);
    }
}
