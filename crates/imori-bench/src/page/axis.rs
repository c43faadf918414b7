//! Axes: where a value lies between both ends, and which values are worth a line and a label.

use crate::page::quantity::{bytes, grouped, percent, significant, time};

/// The placement of values along an axis.
#[derive(Debug, Clone, PartialEq)]
pub enum Scale {
    /// Equal differences are equally long.
    Linear,
    /// Equal ratios are equally long; only values above zero have a place.
    Log,
    /// Quantiles, 0.5 to 1: each nine is as long as the one before.
    Tail,
    /// Names, side by side; a value is the index of one.
    Names(Vec<String>),
}

/// The unit of values, for their labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Just numbers.
    Number,
    /// Microseconds, shown as is fit.
    Micros,
    /// Bytes, shown as is fit.
    Bytes,
    /// A share of one, shown as per cent.
    Share,
    /// Seconds since the beginning, shown as seconds, minutes or hours.
    Elapsed,
}

/// One axis of a plot.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// The title.
    pub title: String,
    /// The placement of its values.
    pub scale: Scale,
    /// The unit of its values.
    pub unit: Unit,
    /// Values that the axis always includes.
    pub reaches: Vec<f64>,
}

impl Axis {
    /// An axis that ends at the values it shows.
    pub fn new(title: &str, scale: Scale, unit: Unit) -> Axis {
        Axis { title: title.to_owned(), scale, unit, reaches: Vec::new() }
    }

    /// This axis, reaching at least these values.
    pub fn reaching(mut self, values: &[f64]) -> Axis {
        self.reaches.extend_from_slice(values);
        self
    }

    /// Formats a value for a table.
    pub(crate) fn show(&self, value: f64) -> String {
        if let Scale::Names(names) = &self.scale {
            return names.get(value as usize).cloned().unwrap_or_default();
        }
        match self.unit {
            Unit::Number => significant(value),
            Unit::Micros => time(value).replace("us", "µs"),
            Unit::Bytes => bytes(value),
            Unit::Share => percent(value),
            Unit::Elapsed => format!("{} s", plain(value)),
        }
    }

    fn transform(&self, value: f64) -> Option<f64> {
        let there = match self.scale {
            // Beyond it lies no measurement, and differences would have no digits left.
            Scale::Linear | Scale::Names(_) => value.clamp(-1e15, 1e15),
            Scale::Log => value.log10(),
            Scale::Tail => -(1.0 - value.min(1.0)).log10(),
        };
        (!there.is_nan() && there != f64::NEG_INFINITY).then_some(there)
    }
}

/// A mark on an axis.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tick {
    /// Where it is, 0 to 1.
    pub(crate) place: f64,
    /// The label; empty for a line between two that are labelled.
    pub(crate) label: String,
}

/// An axis with both its ends.
#[derive(Debug, Clone)]
pub(crate) struct Span<'a> {
    axis: &'a Axis,
    from: f64,
    to: f64,
}

impl<'a> Span<'a> {
    /// An axis that goes from the least to the greatest value and no further.
    pub(crate) fn across(axis: &'a Axis, values: impl Iterator<Item = f64>) -> Span<'a> {
        let (least, greatest) = ends(axis, values);
        let (from, to) = match &axis.scale {
            Scale::Names(names) => (-0.5, names.len().max(1) as f64 - 0.5),
            Scale::Tail => (-(0.5f64.log10()), greatest.clamp(1.0, 9.0)),
            Scale::Linear | Scale::Log => (least, greatest),
        };
        Span::apart(axis, from, to)
    }

    /// An axis that ends at round values, and begins at zero if it has one.
    pub(crate) fn up(axis: &'a Axis, values: impl Iterator<Item = f64>) -> Span<'a> {
        let (least, greatest) = ends(axis, values);
        let (from, to) = match axis.scale {
            Scale::Log => (round_log(least, f64::floor), round_log(greatest, f64::ceil)),
            _ => {
                let (from, to) = (least.min(0.0), greatest.max(0.0));
                let step = axis.step((to - from).max(f64::MIN_POSITIVE) / 5.0, to);
                ((from / step).floor() * step, (to / step).ceil() * step)
            }
        };
        Span::apart(axis, from, to)
    }

    fn apart(axis: &'a Axis, from: f64, to: f64) -> Span<'a> {
        let to = if to > from { to } else { from + 1.0 };
        Span { axis, from, to }
    }

    /// Where a value lies, 0 to 1; nowhere if the scale has no place for it.
    pub(crate) fn place(&self, value: f64) -> Option<f64> {
        let there = self.axis.transform(value)?;
        Some(((there - self.from) / (self.to - self.from)).clamp(0.0, 1.0))
    }

    /// Whether it lies within both ends.
    pub(crate) fn has(&self, value: f64) -> bool {
        self.axis.transform(value).is_some_and(|there| there >= self.from - 1e-9)
    }

    /// The marks, at most about `labels_max` of them labelled.
    pub(crate) fn ticks(&self, labels_max: usize) -> Vec<Tick> {
        match &self.axis.scale {
            Scale::Names(names) => names
                .iter()
                .enumerate()
                .map(|(at, name)| Tick { place: self.place(at as f64).unwrap_or(0.0), label: name.clone() })
                .collect(),
            Scale::Tail => self.tail_ticks(),
            Scale::Log => self.log_ticks(labels_max),
            Scale::Linear => self.linear_ticks(labels_max),
        }
    }

    fn linear_ticks(&self, labels_max: usize) -> Vec<Tick> {
        let step = self.axis.step((self.to - self.from) / labels_max.max(1) as f64, self.to);
        let first = (self.from / step - 1e-9).ceil();
        (0..=labels_max.saturating_mul(2))
            .map(|index| (first + index as f64) * step)
            .take_while(|value| *value <= self.to + step * 1e-6)
            .filter_map(|value| Some(Tick { place: self.place(value)?, label: self.label(value) }))
            .collect()
    }

    fn log_ticks(&self, labels_max: usize) -> Vec<Tick> {
        let decades = self.to - self.from;
        let every = (decades / labels_max.max(1) as f64).ceil().max(1.0);
        let first = self.from.floor();
        let mut ticks = Vec::new();
        for index in 0..=(decades / every).ceil().min(400.0) as u32 + 1 {
            let decade = first + f64::from(index) * every;
            for (factor, is_labelled) in [(1.0, true), (2.0, decades <= 2.0), (5.0, decades <= 2.0)] {
                let value: f64 = 10f64.powf(decade) * factor;
                let there = value.log10();
                let is_within = there >= self.from - 1e-9 && there <= self.to + 1e-9;
                if is_within
                    && (factor == 1.0 || every == 1.0)
                    && let Some(place) = self.place(value)
                {
                    let label = if is_labelled { self.label(value) } else { String::new() };
                    ticks.push(Tick { place, label });
                }
            }
        }
        ticks
    }

    fn tail_ticks(&self) -> Vec<Tick> {
        let mut ticks = vec![Tick { place: 0.0, label: "50 %".to_owned() }];
        for nines in 1..=self.to.floor() as usize {
            let label = match nines {
                1 => "90 %".to_owned(),
                2 => "99 %".to_owned(),
                _ => format!("99.{} %", "9".repeat(nines - 2)),
            };
            let place = ((nines as f64 - self.from) / (self.to - self.from)).clamp(0.0, 1.0);
            ticks.push(Tick { place, label });
        }
        ticks
    }

    /// A label for a round value: no more digits than it has.
    fn label(&self, value: f64) -> String {
        match self.axis.unit {
            Unit::Number if value.abs() >= 1e6 => format!("{} M", plain(value / 1e6)),
            Unit::Number if value.abs() >= 1e3 => grouped(value),
            Unit::Number => plain(value),
            Unit::Share => format!("{} %", plain(value * 100.0)),
            Unit::Micros if value < 999.5 => format!("{} µs", plain(value)),
            Unit::Micros if value < 999_500.0 => format!("{} ms", plain(value / 1e3)),
            Unit::Micros => format!("{} s", plain(value / 1e6)),
            Unit::Bytes => {
                let (size, unit) = binary(value.abs().max(self.to));
                if value == 0.0 { "0".to_owned() } else { format!("{} {unit}", plain(value / size)) }
            }
            Unit::Elapsed if value == 0.0 => "0".to_owned(),
            Unit::Elapsed if self.to >= 7_200.0 => format!("{} h", plain(value / 3_600.0)),
            Unit::Elapsed if self.to >= 300.0 => format!("{} min", plain(value / 60.0)),
            Unit::Elapsed => format!("{} s", plain(value)),
        }
    }
}

impl Axis {
    /// The least round difference that is at least this, in the unit that suits the greatest value.
    fn step(&self, at_least: f64, greatest: f64) -> f64 {
        match self.unit {
            // Only a run of a few seconds has labels within a second.
            Unit::Elapsed if at_least <= 1.0 && greatest > 5.0 => 1.0,
            Unit::Elapsed if at_least > 5.0 && at_least <= 43_200.0 => {
                let round = [
                    10.0, 15.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1_800.0, 3_600.0, 7_200.0,
                    14_400.0, 21_600.0, 43_200.0,
                ];
                round.into_iter().find(|step| *step >= at_least * 0.999_999).unwrap_or(43_200.0)
            }
            Unit::Bytes => {
                let (size, _) = binary(greatest);
                round_up(at_least / size) * size
            }
            _ => round_up(at_least),
        }
    }
}

/// The least of 1, 2, 5, 10, 20 … that is at least this.
fn round_up(value: f64) -> f64 {
    if !value.is_finite() || value <= 0.0 {
        return 1.0;
    }
    let decade = 10f64.powf(value.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| factor * decade >= value * 0.999_999);
    factor.unwrap_or(10.0) * decade
}

/// Rounds a logarithm to the logarithm of 1, 2 or 5 times a power of ten.
fn round_log(value: f64, towards: fn(f64) -> f64) -> f64 {
    let decade = value.floor();
    let steps = [0.0, 2f64.log10(), 5f64.log10(), 1.0];
    let is_up = towards(0.5) > 0.5;
    let within = value - decade;
    let found = match is_up {
        true => steps.into_iter().find(|step| *step >= within - 1e-9),
        false => steps.into_iter().rev().find(|step| *step <= within + 1e-9),
    };
    decade + found.unwrap_or(0.0)
}

/// The binary unit that suits a number of bytes.
fn binary(count: f64) -> (f64, &'static str) {
    match count {
        _ if count < 1_024.0 => (1.0, "B"),
        _ if count < 1_048_576.0 => (1_024.0, "KiB"),
        _ if count < 1_073_741_824.0 => (1_048_576.0, "MiB"),
        _ => (1_073_741_824.0, "GiB"),
    }
}

/// The least and the greatest value that the scale can show, transformed.
fn ends(axis: &Axis, values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (mut least, mut greatest) = (f64::INFINITY, f64::NEG_INFINITY);
    let values = values.chain(axis.reaches.iter().copied());
    for there in values.filter_map(|value| axis.transform(value)).filter(|there| there.is_finite()) {
        least = least.min(there);
        greatest = greatest.max(there);
    }
    if least > greatest { (0.0, 1.0) } else { (least, greatest) }
}

/// A number without empty decimal places.
fn plain(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(scale: Scale, unit: Unit, values: &[f64], max: usize) -> Vec<String> {
        let axis = Axis::new("", scale, unit);
        let span = Span::up(&axis, values.iter().copied());
        span.ticks(max).into_iter().map(|tick| tick.label).filter(|label| !label.is_empty()).collect()
    }

    #[test]
    fn labels_are_round() {
        for (scale, unit, values, max, expected) in [
            (Scale::Linear, Unit::Number, vec![3.0, 97.0], 5, vec!["0", "20", "40", "60", "80", "100"]),
            (Scale::Linear, Unit::Number, vec![0.7], 4, vec!["0", "0.2", "0.4", "0.6", "0.8"]),
            (
                Scale::Linear,
                Unit::Number,
                vec![4_200.0],
                5,
                vec!["0", "1 000", "2 000", "3 000", "4 000", "5 000"],
            ),
            (Scale::Linear, Unit::Number, vec![], 2, vec!["0", "0.5", "1"]),
            (Scale::Linear, Unit::Bytes, vec![3.9e6], 4, vec!["0", "1 MiB", "2 MiB", "3 MiB", "4 MiB"]),
            (
                Scale::Log,
                Unit::Micros,
                vec![90.0, 2.1e6],
                6,
                vec!["100 µs", "1 ms", "10 ms", "100 ms", "1 s"],
            ),
            (Scale::Log, Unit::Micros, vec![120.0, 900.0], 6, vec!["100 µs", "200 µs", "500 µs", "1 ms"]),
            (Scale::Log, Unit::Micros, vec![0.0, -4.0], 6, vec!["1 µs", "2 µs", "5 µs", "10 µs"]),
        ] {
            assert_eq!(labels(scale, unit, &values, max), expected, "{values:?}");
        }
    }

    #[test]
    fn time_and_tail_have_marks_of_their_own() {
        let time = Axis::new("", Scale::Linear, Unit::Elapsed);
        let span = Span::across(&time, [0.0, 600.0].into_iter());
        let shown: Vec<_> = span.ticks(6).into_iter().map(|tick| tick.label).collect();
        assert_eq!(shown, ["0", "2 min", "4 min", "6 min", "8 min", "10 min"]);
        let tail = Axis::new("", Scale::Tail, Unit::Share);
        let span = Span::across(&tail, [0.5, 0.9999].into_iter());
        let shown: Vec<_> = span.ticks(6).into_iter().map(|tick| tick.label).collect();
        assert_eq!(shown, ["50 %", "90 %", "99 %", "99.9 %", "99.99 %"]);
        assert_eq!((span.place(0.5), span.place(1.0)), (Some(0.0), Some(1.0)));
        assert!(!span.has(0.3));
    }

    #[test]
    fn no_value_makes_an_axis_without_end() {
        for scale in [Scale::Linear, Scale::Log, Scale::Tail] {
            for values in
                [vec![f64::MAX, f64::MIN], vec![f64::MIN_POSITIVE, f64::MAX], vec![f64::NAN], vec![1.0; 3]]
            {
                let axis = Axis::new("", scale.clone(), Unit::Number);
                for span in
                    [Span::up(&axis, values.iter().copied()), Span::across(&axis, values.iter().copied())]
                {
                    assert!(span.ticks(6).len() < 1_000, "{scale:?} {values:?}");
                    for value in &values {
                        assert!(
                            span.place(*value).is_none_or(|place| (0.0..=1.0).contains(&place)),
                            "{scale:?} {values:?}"
                        );
                    }
                }
            }
        }
    }
}
