//! The median of several measurements, and their range.

/// A median with its range.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// The median.
    pub median: f64,
    /// The least value.
    pub least: f64,
    /// The greatest value.
    pub greatest: f64,
    /// Number of values.
    pub count: usize,
}

impl Spread {
    /// The spread of these values; `None` if there are none.
    pub fn of(values: impl Iterator<Item = f64>) -> Option<Spread> {
        let mut values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        let count = values.len();
        let (least, greatest) = (*values.first()?, *values.last()?);
        let (low, high) = (values.get((count - 1) / 2)?, values.get(count / 2)?);
        Some(Spread { median: low + (high - low) / 2.0, least, greatest, count })
    }

    /// Formats the median, and the range if the values differ.
    pub fn show(&self, show: impl Fn(f64) -> String) -> String {
        let (median, least, greatest) = (show(self.median), show(self.least), show(self.greatest));
        if least == greatest {
            return median;
        }
        // Prints the unit only once if both ends have the same.
        let least = match (least.rsplit_once(' '), greatest.rsplit_once(' ')) {
            (Some((number, unit)), Some((_, same))) if unit == same && !is_number(unit) => number,
            _ => &least,
        };
        format!("{median} ({least} to {greatest})")
    }
}

/// Whether a word is a group of digits, so that it is no unit.
fn is_number(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::quantity::{grouped, time};

    #[test]
    fn a_range_is_shown_if_there_is_one() {
        for (values, show, expected) in [
            (vec![200.0], time as fn(f64) -> String, "200 us"),
            (vec![200.0, 200.1], time, "200 us"),
            (vec![190.0, 200.0, 210.0], time, "200 us (190 to 210 us)"),
            (vec![900.0, 900.0, 2_000.0], time, "900 us (900 us to 2.00 ms)"),
            (vec![1_000.0, 1_000.0, 2_000.0], grouped, "1 000 (1 000 to 2 000)"),
        ] {
            assert_eq!(Spread::of(values.into_iter()).unwrap().show(show), expected);
        }
    }

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
