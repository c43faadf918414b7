//! Quantiles of latencies that are counted in buckets.

/// Counts of a histogram's buckets, and their upper bounds in microseconds; the last bucket has none.
pub struct Buckets<'a> {
    /// Upper bounds, rising.
    pub bounds_us: &'a [u64],
    /// One count for each bound, and one for what is above all of them.
    pub counts: &'a [u64],
}

impl Buckets<'_> {
    /// The time in microseconds below which this part of the measurements lies, interpolated within its bucket; `None`
    /// without measurements.
    pub fn quantile_us(&self, part: f64) -> Option<f64> {
        let all: u64 = self.counts.iter().sum();
        if all == 0 {
            return None;
        }
        let rank = (part * all as f64).max(1.0);
        let mut below = 0.0;
        for (index, count) in self.counts.iter().enumerate() {
            let count = *count as f64;
            if below + count >= rank {
                let (lower, upper) = self.limits_us(index);
                return Some(lower + (upper - lower) * ((rank - below) / count));
            }
            below += count;
        }
        None
    }

    /// The upper bound of the highest bucket that has a measurement.
    pub fn max_us(&self) -> Option<f64> {
        let highest = self.counts.iter().rposition(|count| *count > 0)?;
        Some(self.limits_us(highest).1)
    }

    /// The bounds of a bucket. The last one, which has no upper bound, ends at its lower bound.
    fn limits_us(&self, index: usize) -> (f64, f64) {
        let bound = |index: usize| self.bounds_us.get(index).map(|bound| *bound as f64);
        let lower = index.checked_sub(1).and_then(bound).unwrap_or(0.0);
        (lower, bound(index).unwrap_or(lower))
    }
}
