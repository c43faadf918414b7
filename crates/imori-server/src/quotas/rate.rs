//! Publish rate of a user or vhost: a token bucket, created only if a limit is set.
//!
//! A bucket is one number, the time at which it is full again, which all publishing cells update. The wait for tokens
//! is computed from it, so a waiting publisher does not poll.

use std::sync::atomic::{AtomicU64, Ordering};

use imori_core::time::Time;

use crate::limits::{RATE_BURST, RATE_WAIT_MIN};

/// Limits on messages and bytes published per second, and their use.
#[derive(Debug)]
pub(crate) struct Rate {
    messages: Option<Bucket>,
    bytes: Option<Bucket>,
}

#[derive(Debug)]
struct Bucket {
    per_second: u64,
    /// When the bucket is full again, in nanoseconds since the broker started.
    full_at: AtomicU64,
}

impl Rate {
    /// An unused rate; `None` if nothing is limited. A limit of 0 allows one per second, because a publisher that
    /// waits forever cannot be told why.
    pub(crate) fn new(messages: Option<u64>, bytes: Option<u64>) -> Option<Rate> {
        let bucket = |per_second: u64| Bucket { per_second: per_second.max(1), full_at: AtomicU64::new(0) };
        (messages.is_some() || bytes.is_some())
            .then(|| Rate { messages: messages.map(bucket), bytes: bytes.map(bucket) })
    }

    /// Whether both have the same limits.
    pub(crate) fn is_as(&self, other: &Rate) -> bool {
        let limits =
            |rate: &Rate| [&rate.messages, &rate.bytes].map(|bucket| bucket.as_ref().map(|of| of.per_second));
        limits(self) == limits(other)
    }

    /// Takes tokens for a publish; the buckets may go into debt.
    pub(crate) fn charge(&self, now: Time, messages: usize, bytes: usize) {
        for (bucket, amount) in [(&self.messages, messages), (&self.bytes, bytes)] {
            if let Some(bucket) = bucket {
                bucket.charge(now, amount as u64);
            }
        }
    }

    /// When the next publish is allowed; `None` if it is now.
    pub(crate) fn open_at(&self, now: Time) -> Option<Time> {
        [&self.messages, &self.bytes].into_iter().flatten().filter_map(|bucket| bucket.open_at(now)).max()
    }

    /// Approximate messages and bytes published in the last second, each only if it is limited.
    pub(crate) fn used(&self, now: Time) -> [Option<u64>; 2] {
        [&self.messages, &self.bytes].map(|bucket| bucket.as_ref().map(|bucket| bucket.used(now)))
    }
}

impl Bucket {
    fn charge(&self, now: Time, amount: u64) {
        let cost = u128::from(amount) * u128::from(NANOS) / u128::from(self.per_second);
        let cost = u64::try_from(cost).unwrap_or(u64::MAX);
        let charged = |full_at: u64| Some(full_at.max(nanos(now)).saturating_add(cost));
        let _ = self.full_at.fetch_update(Ordering::Relaxed, Ordering::Relaxed, charged);
    }

    fn open_at(&self, now: Time) -> Option<Time> {
        let burst = u64::try_from(RATE_BURST.as_nanos()).unwrap_or(u64::MAX);
        let at = Time(self.full_at.load(Ordering::Relaxed).saturating_sub(burst).div_ceil(1000));
        // Waits for a minimum time, so that the publisher is not woken for every single message.
        (at > now).then(|| at.max(now.after(RATE_WAIT_MIN)))
    }

    /// Tokens missing from the bucket, without its debt.
    fn used(&self, now: Time) -> u64 {
        let lacks = self.full_at.load(Ordering::Relaxed).saturating_sub(nanos(now));
        let used = u128::from(lacks) * u128::from(self.per_second) / u128::from(NANOS);
        u64::try_from(used).unwrap_or(u64::MAX).min(self.per_second)
    }
}

const NANOS: u64 = 1_000_000_000;

fn nanos(time: Time) -> u64 {
    time.0.saturating_mul(1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000;

    /// SECURITY LIM-10: one second's burst passes at once, then the rate holds.
    #[test]
    fn a_rate_holds_for_every_time_behind_its_burst() {
        let rate = Rate::new(Some(10), None).unwrap();
        let (mut now, mut passed) = (Time(5 * SECOND), 0);
        let begin = now;
        while now < Time(15 * SECOND) {
            match rate.open_at(now) {
                None => {
                    rate.charge(now, 1, 1_000_000);
                    passed += 1;
                }
                Some(at) => {
                    assert!(at > now);
                    now = at;
                }
            }
            let allowed = 10 + now.since(begin).as_micros() / 100_000 + 1;
            assert!(passed <= allowed, "{passed} by {now:?}");
        }
        assert!(passed >= 110, "{passed}");
    }

    #[test]
    fn bytes_are_counted_beside_messages() {
        let rate = Rate::new(Some(1000), Some(1000)).unwrap();
        let now = Time(SECOND);
        rate.charge(now, 1, 3000);
        assert_eq!(rate.open_at(now), Some(Time(3 * SECOND)), "two seconds of debt");
        assert_eq!(rate.used(now), [Some(1), Some(1000)]);
        assert_eq!(rate.open_at(Time(3 * SECOND)), None);
        assert_eq!(rate.used(Time(9 * SECOND)), [Some(0), Some(0)]);
    }

    /// SECURITY LIM-16: extreme numbers from operators or clients do not overflow.
    #[test]
    fn extreme_numbers_are_taken() {
        let rate = Rate::new(Some(0), Some(u64::MAX)).unwrap();
        rate.charge(Time(1), usize::MAX, usize::MAX);
        rate.charge(Time(2), usize::MAX, usize::MAX);
        assert!(rate.open_at(Time(3)).is_some());
        assert_eq!(rate.used(Time(3))[0], Some(1));
    }
}
