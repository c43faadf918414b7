//! Estimates a usual duration, so that a slow disk or a distant host is not taken for a stall.

/// Multiple of the usual duration that counts as long.
const TIMES: u64 = 4;

/// A running estimate that a single outlier hardly affects.
#[derive(Debug)]
pub(crate) struct Usual {
    /// Nanoseconds below which nothing counts as long.
    short: u64,
    nanos: Option<u64>,
}

impl Usual {
    /// Creates an estimate; below `short` nanoseconds nothing counts as long.
    pub(crate) fn new(short: u64) -> Usual {
        Usual { short, nanos: None }
    }

    /// Adds a measurement, and returns whether it is long compared with the earlier ones.
    pub(crate) fn is_long(&mut self, took: u64) -> bool {
        let usual = *self.nanos.get_or_insert(took.min(self.short));
        let capped = took.min(usual.saturating_mul(2).max(1));
        self.nanos = Some((usual.saturating_mul(15).saturating_add(capped)) / 16);
        took >= self.short.max(usual.saturating_mul(TIMES))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn long_is_long_against_what_is_usual() {
        for (usual_ms, took_ms, expected) in
            [(1, 19, false), (1, 20, true), (4, 20, true), (30, 60, false), (30, 200, true), (80, 200, false)]
        {
            let mut usual = Usual::new(20 * MS);
            for _ in 0..200 {
                usual.is_long(usual_ms * MS);
            }
            assert_eq!(usual.is_long(took_ms * MS), expected, "{took_ms} ms against {usual_ms} ms");
            assert!(!usual.is_long(usual_ms * MS), "one outlier changes nothing");
        }
    }
}
