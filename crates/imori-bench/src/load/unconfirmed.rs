//! The unconfirmed messages of one publisher.

use std::collections::VecDeque;

/// Unconfirmed messages by number, each with its due time.
#[derive(Debug, Default)]
pub(crate) struct Unconfirmed {
    /// Due times from number `first` on; a message confirmed out of order leaves `None`.
    due: VecDeque<Option<u64>>,
    first: u32,
    count: usize,
}

impl Unconfirmed {
    /// Number of unconfirmed messages.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Adds the next message, due at `due`.
    pub(crate) fn send(&mut self, number: u32, due: u64) {
        if self.due.is_empty() {
            self.first = number;
        }
        self.due.push_back(Some(due));
        self.count += 1;
    }

    /// Removes all messages and returns their numbers.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = u32> {
        let Unconfirmed { due, first, .. } = std::mem::take(self);
        due.into_iter().enumerate().filter_map(move |(at, due)| due.map(|_| first.wrapping_add(at as u32)))
    }

    /// Removes a confirmed message and returns its due time; `None` if it was not awaited.
    pub(crate) fn confirm(&mut self, number: u32) -> Option<u64> {
        let place = number.wrapping_sub(self.first) as usize;
        let due = self.due.get_mut(place)?.take()?;
        self.count -= 1;
        while let Some(None) = self.due.front() {
            self.due.pop_front();
            self.first = self.first.wrapping_add(1);
        }
        Some(due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn confirms_may_come_in_any_order_and_count_once() {
        let mut unconfirmed = Unconfirmed::default();
        for number in 5..9 {
            unconfirmed.send(number, u64::from(number) * 10);
        }
        for (number, expected, left) in [
            (6, Some(60), 3),
            (6, None, 3),
            (5, Some(50), 2),
            (5, None, 2),
            (8, Some(80), 1),
            (9, None, 1),
            (4, None, 1),
            (7, Some(70), 0),
        ] {
            assert_eq!(unconfirmed.confirm(number), expected, "{number}");
            assert_eq!(unconfirmed.count(), left);
        }
        for number in 9..12 {
            unconfirmed.send(number, 90);
        }
        assert_eq!(unconfirmed.confirm(10), Some(90));
        assert_eq!(unconfirmed.drain().collect::<Vec<_>>(), [9, 11]);
        assert_eq!(unconfirmed.count(), 0);
    }
}
