//! How much a user or a vhost may publish a second: a bucket of tokens, of which each publish takes some.
//!
//! A bucket is one number, the time at which it is full again. All cells that publish for its user change it; there is
//! none where no limit is set. Who finds it empty waits until there is something in it, so that no look is ever repeated.

use std::sync::atomic::{AtomicU64, Ordering};

use imori_core::time::Time;

use crate::limits::{RATE_BURST, RATE_WAIT_MIN};

/// A limit on messages, on bytes or on both that are published a second, and how much of it is used.
#[derive(Debug)]
pub(crate) struct Rate {
    messages: Option<Bucket>,
    bytes: Option<Bucket>,
}

#[derive(Debug)]
struct Bucket {
    per_second: u64,
    /// When it is full again, in nanoseconds since the broker began.
    full_at: AtomicU64,
}

impl Rate {
    /// A rate of which nothing is used; `None` where there is no limit. A limit of none at all lets one pass a second,
    /// as nobody could be told why a message waits for ever.
    pub(crate) fn new(messages: Option<u64>, bytes: Option<u64>) -> Option<Rate> {
        let bucket = |per_second: u64| Bucket { per_second: per_second.max(1), full_at: AtomicU64::new(0) };
        (messages.is_some() || bytes.is_some())
            .then(|| Rate { messages: messages.map(bucket), bytes: bytes.map(bucket) })
    }

    /// Tells whether both let the same amount pass.
    pub(crate) fn is_as(&self, other: &Rate) -> bool {
        let limits =
            |rate: &Rate| [&rate.messages, &rate.bytes].map(|bucket| bucket.as_ref().map(|of| of.per_second));
        limits(self) == limits(other)
    }

    /// Takes what was published out of the buckets, which may then owe something.
    pub(crate) fn charge(&self, now: Time, messages: usize, bytes: usize) {
        for (bucket, amount) in [(&self.messages, messages), (&self.bytes, bytes)] {
            if let Some(bucket) = bucket {
                bucket.charge(now, amount as u64);
            }
        }
    }

    /// When more may be published; `None` where that is now.
    pub(crate) fn open_at(&self, now: Time) -> Option<Time> {
        [&self.messages, &self.bytes].into_iter().flatten().filter_map(|bucket| bucket.open_at(now)).max()
    }

    /// How much was published in the last second, or about so much: messages and bytes, each where it is limited.
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
        // Whoever is woken for one message would be woken for each.
        (at > now).then(|| at.max(now.after(RATE_WAIT_MIN)))
    }

    /// The amount that it lacks, without its debt.
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

    /// SECURITY LIM-10: a burst of a second passes at once, and then no more than the rate.
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

    /// SECURITY LIM-16: no number that an operator or a client gives overflows.
    #[test]
    fn extreme_numbers_are_taken() {
        let rate = Rate::new(Some(0), Some(u64::MAX)).unwrap();
        rate.charge(Time(1), usize::MAX, usize::MAX);
        rate.charge(Time(2), usize::MAX, usize::MAX);
        assert!(rate.open_at(Time(3)).is_some());
        assert_eq!(rate.used(Time(3))[0], Some(1));
    }
}
