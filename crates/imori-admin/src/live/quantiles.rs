//! Quantiles of latencies that are counted in buckets.

/// Counts of a histogram's buckets, and their upper bounds in microseconds; the last bucket has none.
pub(super) struct Buckets<'a> {
    pub(super) bounds_us: &'a [u64],
    pub(super) counts: &'a [u64],
}

impl Buckets<'_> {
    /// The time in microseconds below which this part of the measurements lies, interpolated within its bucket; `None`
    /// without measurements.
    pub(super) fn quantile_us(&self, part: f64) -> Option<f64> {
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
    pub(super) fn max_us(&self) -> Option<f64> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_lie_within_their_buckets() {
        let of = |counts: &[u64], part| Buckets { bounds_us: &[100, 200, 1_000], counts }.quantile_us(part);
        for (counts, part, expected) in [
            (&[0, 0, 0, 0][..], 0.5, None),
            (&[10, 0, 0, 0], 0.5, Some(50.0)),
            (&[10, 10, 0, 0], 0.5, Some(100.0)),
            (&[0, 10, 0, 0], 0.99, Some(199.0)),
            (&[99, 0, 1, 0], 0.99, Some(100.0)),
            (&[99, 0, 1, 0], 1.0, Some(1_000.0)),
            (&[0, 0, 0, 3], 0.5, Some(1_000.0)),
            (&[1, 0, 0, 0], 0.01, Some(100.0)),
        ] {
            assert_eq!(of(counts, part), expected, "{part} of {counts:?}");
        }
        let max = |counts: &[u64]| Buckets { bounds_us: &[100, 200], counts }.max_us();
        assert_eq!(
            (max(&[0, 0, 0]), max(&[5, 0, 0]), max(&[5, 1, 0]), max(&[0, 0, 1])),
            (None, Some(100.0), Some(200.0), Some(200.0))
        );
    }
}
