//! The columns of a heat map: as narrow as the length of the run allows.

use crate::page::buckets::Buckets;
use crate::record::heat::column_width_ms;
use crate::record::report::Report;

/// Counts of each class of response times within one column.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Column {
    /// Start, in seconds since measuring began.
    pub(crate) start: f64,
    /// Responses in each class.
    pub(crate) counts: Vec<u32>,
}

/// The columns of a run.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct Columns {
    /// Width of a column in seconds.
    pub(crate) width: f64,
    /// The columns that have counts.
    pub(crate) list: Vec<Column>,
}

impl Columns {
    /// The columns of a report: of less than a second if it has them, otherwise of whole seconds.
    pub(crate) fn of(report: &Report) -> Columns {
        if let Some(heat) = report.heat.as_ref().filter(|heat| heat.width_ms > 0) {
            let width = f64::from(heat.width_ms) / 1_000.0;
            let starts = (0_u32..).map(|index| f64::from(index) * width);
            let list = starts.zip(heat.columns.iter().cloned());
            // The last responses may arrive after the end of measuring.
            let list = list.take_while(|(start, _)| *start < report.seconds);
            return Columns { width, list: list.map(|(start, counts)| Column { start, counts }).collect() };
        }
        let last = report.rows.iter().map(|row| row.t).max().unwrap_or(0);
        let seconds = report.seconds.max(f64::from(last));
        let buckets =
            Buckets::of_width(&report.rows, report.seconds, (column_width_ms(seconds) / 1_000).max(1));
        let list = buckets.list.into_iter();
        let list = list.map(|bucket| Column { start: bucket.start, counts: bucket.sum.heat }).collect();
        Columns { width: f64::from(buckets.width), list }
    }

    /// The width with its unit.
    pub(crate) fn width_in_words(&self) -> String {
        match self.width {
            width if width < 1.0 => format!("{:.0} ms", width * 1_000.0),
            width if width < 120.0 => format!("{width:.0} s"),
            width => format!("{:.0} min", width / 60.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::heat::HeatColumns;
    use crate::record::series::Second;
    use crate::report::sample;

    #[test]
    fn narrow_columns_are_used_where_the_report_has_them() {
        let mut report = sample::report();
        report.seconds = 0.05;
        report.heat = Some(HeatColumns { width_ms: 20, columns: vec![vec![1], vec![], vec![3], vec![4]] });
        let columns = Columns::of(&report);
        let found: Vec<(f64, u32)> =
            columns.list.iter().map(|column| (column.start, column.counts.iter().sum())).collect();
        assert_eq!(found, [(0.0, 1), (0.02, 0), (0.04, 3)]);
        assert_eq!(columns.width_in_words(), "20 ms");
    }

    #[test]
    fn a_long_run_has_at_most_two_hundred_columns() {
        for (seconds, width, count, words) in
            [(60_u32, 1.0, 60, "1 s"), (600, 5.0, 120, "5 s"), (28_800, 300.0, 96, "5 min")]
        {
            let mut report = sample::report();
            report.seconds = f64::from(seconds);
            report.rows = (0..seconds).map(|t| Second { t, heat: vec![1], ..Second::default() }).collect();
            let columns = Columns::of(&report);
            assert_eq!((columns.width, columns.list.len()), (width, count), "{seconds} s");
            assert_eq!(columns.width_in_words(), words);
        }
    }
}
