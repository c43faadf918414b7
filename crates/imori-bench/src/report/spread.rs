//! The median of several measurements, and how far they lie apart.

/// A median with the least and the greatest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spread {
    /// Half of them are at most this.
    pub(crate) median: f64,
    /// The least.
    pub(crate) least: f64,
    /// The greatest.
    pub(crate) greatest: f64,
    /// How many there are.
    pub(crate) count: usize,
}

impl Spread {
    /// That of these values; none if there are none.
    pub(crate) fn of(values: impl Iterator<Item = f64>) -> Option<Spread> {
        let mut values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        let count = values.len();
        let (least, greatest) = (*values.first()?, *values.last()?);
        let (low, high) = (values.get((count - 1) / 2)?, values.get(count / 2)?);
        Some(Spread { median: low + (high - low) / 2.0, least, greatest, count })
    }

    /// The median, and the range if there is more than one.
    pub(crate) fn show(&self, show: impl Fn(f64) -> String) -> String {
        match self.count {
            1 => show(self.median),
            _ => format!("{} ({} to {})", show(self.median), show(self.least), show(self.greatest)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        for (values, expected) in [
            (vec![], None),
            (vec![3.0], Some((3.0, 3.0, 3.0))),
            (vec![4.0, 1.0], Some((2.5, 1.0, 4.0))),
            (vec![9.0, 1.0, 2.0], Some((2.0, 1.0, 9.0))),
            (vec![f64::NAN, 2.0], Some((2.0, 2.0, 2.0))),
        ] {
            let found = Spread::of(values.into_iter()).map(|s| (s.median, s.least, s.greatest));
            assert_eq!(found, expected);
        }
    }
}
