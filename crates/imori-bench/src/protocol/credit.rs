//! The credit of one connection: calls in flight, bytes, and total calls.
//!
//! The reader and the template of a connection share it. Both stay on one thread, so the counters
//! are atomic only so that they can be moved to that thread.

use std::sync::atomic::{AtomicI64, Ordering};

/// The requests that the peer accepts now.
#[derive(Debug)]
pub struct Credit {
    /// Calls that may be started; negative after the peer lowered its limit.
    calls: AtomicI64,
    /// Bytes that may be sent; the bodies of requests consume them.
    bytes: AtomicI64,
    /// Calls left in the lifetime of the connection.
    left: AtomicI64,
    /// Bytes that one request consumes.
    request_bytes: AtomicI64,
}

impl Credit {
    /// Limits the calls in flight, but neither bytes nor total calls.
    pub fn of_calls(calls: i64) -> Credit {
        Credit {
            calls: AtomicI64::new(calls),
            bytes: AtomicI64::new(i64::MAX),
            left: AtomicI64::new(i64::MAX),
            request_bytes: AtomicI64::new(1),
        }
    }

    /// Limits calls in flight, bytes, and total calls.
    pub fn new(calls: i64, bytes: i64, left: i64) -> Credit {
        Credit { bytes: AtomicI64::new(bytes), left: AtomicI64::new(left), ..Credit::of_calls(calls) }
    }

    /// Sets the number of bytes that a request consumes.
    pub fn set_request_bytes(&self, bytes: usize) {
        self.request_bytes.store(i64::try_from(bytes).unwrap_or(i64::MAX).max(1), Ordering::Relaxed);
    }

    /// Number of requests that may be sent now.
    pub fn room(&self) -> u64 {
        let by_bytes = self.bytes() / self.request_bytes.load(Ordering::Relaxed);
        let room = self.calls.load(Ordering::Relaxed).min(by_bytes).min(self.left.load(Ordering::Relaxed));
        u64::try_from(room).unwrap_or(0)
    }

    /// Accounts for a request that is sent.
    pub fn spend(&self) {
        add(&self.calls, -1);
        add(&self.bytes, -self.request_bytes.load(Ordering::Relaxed));
        add(&self.left, -1);
    }

    /// Adds calls, because some have ended or the limit was changed.
    pub fn add_calls(&self, calls: i64) {
        add(&self.calls, calls);
    }

    /// Adds bytes that the peer accepts.
    pub fn add_bytes(&self, bytes: i64) {
        add(&self.bytes, bytes);
    }

    /// Bytes that may be sent.
    pub fn bytes(&self) -> i64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

/// A load and a store suffice, because only one thread at a time uses the credit.
fn add(number: &AtomicI64, change: i64) {
    number.store(number.load(Ordering::Relaxed).saturating_add(change), Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_of_the_limits_counts() {
        for (calls, bytes, left, expected) in
            [(9, 100, 9, 9), (3, 100, 9, 3), (9, 25, 9, 2), (9, 100, 1, 1), (-1, 100, 9, 0), (9, 9, 9, 0)]
        {
            let credit = Credit::new(calls, bytes, left);
            credit.set_request_bytes(10);
            assert_eq!(credit.room(), expected, "{calls} {bytes} {left}");
        }
    }

    #[test]
    fn what_is_spent_comes_back_by_what_the_other_side_says() {
        let credit = Credit::new(1, 20, 3);
        credit.set_request_bytes(10);
        credit.spend();
        assert_eq!(credit.room(), 0);
        credit.add_calls(1);
        assert_eq!(credit.room(), 1);
        credit.spend();
        credit.add_calls(5);
        assert_eq!(credit.room(), 0);
        credit.add_bytes(100);
        assert_eq!(credit.room(), 1, "the connection is used up after three");
    }
}
