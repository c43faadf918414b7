//! Groups seconds into buckets, so that a run of hours fits into a plot.

use crate::record::series::{BrokerSecond, HostSecond, Second};

/// The most buckets that a plot can show side by side.
pub(crate) const BUCKETS_MAX: u32 = 600;
/// The most buckets per run on a page with several runs, which keeps ten runs fast to open.
pub(crate) const BUCKETS_EACH: u32 = 300;
/// The most buckets at which noisy lines are still distinguishable.
pub(crate) const BUCKETS_FEW: u32 = 120;

/// Several seconds as one: sums of counts, and the worst of times and states.
#[derive(Debug, Clone)]
pub(crate) struct Bucket {
    /// Start, in seconds since measuring began.
    pub(crate) start: f64,
    /// Number of measured seconds in the bucket.
    pub(crate) seconds: f64,
    /// All its seconds combined.
    pub(crate) sum: Second,
}

impl Bucket {
    /// A count as a rate per second.
    pub(crate) fn rate(&self, count: u64) -> f64 {
        count as f64 / self.seconds
    }

    /// The middle of the bucket.
    pub(crate) fn middle(&self) -> f64 {
        self.start + self.seconds / 2.0
    }
}

/// A run divided into buckets of equal width.
#[derive(Debug, Clone, Default)]
pub(crate) struct Buckets {
    /// Width of a bucket in seconds.
    pub(crate) width: u32,
    /// The buckets that contain measurements.
    pub(crate) list: Vec<Bucket>,
    /// End of the last bucket.
    pub(crate) end: f64,
}

impl Buckets {
    /// Divides the rows of a run of `measured` seconds into at most `most` buckets.
    pub(crate) fn of(rows: &[Second], measured: f64, most: u32) -> Buckets {
        let last = rows.iter().map(|row| row.t).max().unwrap_or(0);
        Buckets::of_width(rows, measured, last / most.max(1) + 1)
    }

    /// Divides the rows of a run of `measured` seconds into buckets of `width` seconds.
    pub(crate) fn of_width(rows: &[Second], measured: f64, width: u32) -> Buckets {
        let last = rows.iter().map(|row| row.t).max().unwrap_or(0);
        let width = width.max(1);
        let mut list: Vec<Bucket> = Vec::new();
        let mut sorted: Vec<&Second> = rows.iter().collect();
        sorted.sort_by_key(|row| row.t);
        for row in sorted {
            // The last second is rarely complete: a small fraction of it would be noise, and rows
            // after it only have stragglers. If rows lie far beyond the end, they do not belong to
            // `measured`, and all of them count.
            let is_of_this_time = measured + 1.5 > f64::from(last);
            let seconds = if is_of_this_time { (measured - f64::from(row.t)).clamp(0.0, 1.0) } else { 1.0 };
            if seconds < 0.1 {
                continue;
            }
            let start = f64::from(row.t / width * width);
            match list.last_mut().filter(|bucket| bucket.start == start) {
                Some(bucket) => {
                    add(&mut bucket.sum, row);
                    bucket.seconds += seconds;
                }
                None => list.push(Bucket { start, seconds, sum: row.clone() }),
            }
        }
        let end = list.last().map_or(1.0, |bucket| bucket.start + bucket.seconds);
        // Rounded up, because an axis that ends just before a whole second has no label there.
        let end = if end.ceil() - end < 0.1 { end.ceil() } else { end };
        Buckets { width, list, end }
    }
}

fn add(sum: &mut Second, row: &Second) {
    sum.offered = sum.offered.saturating_add(row.offered);
    sum.sent = sum.sent.saturating_add(row.sent);
    sum.confirmed = sum.confirmed.saturating_add(row.confirmed);
    sum.delivered = sum.delivered.saturating_add(row.delivered);
    sum.in_flight = sum.in_flight.max(row.in_flight);
    sum.reconnects = sum.reconnects.saturating_add(row.reconnects);
    for (worst, other) in [
        (&mut sum.p50_us, row.p50_us),
        (&mut sum.p99_us, row.p99_us),
        (&mut sum.p999_us, row.p999_us),
        (&mut sum.max_us, row.max_us),
        (&mut sum.send_lag_max_us, row.send_lag_max_us),
    ] {
        *worst = greater(*worst, other);
    }
    sum.client_cpu_s += row.client_cpu_s;
    if let Some(broker) = &row.broker {
        add_broker(sum.broker.get_or_insert_default(), broker);
    }
    if let Some(host) = &row.host {
        add_host(sum.host.get_or_insert_default(), host);
    }
    if sum.heat.len() < row.heat.len() {
        sum.heat.resize(row.heat.len(), 0);
    }
    for (all, count) in sum.heat.iter_mut().zip(&row.heat) {
        *all = all.saturating_add(*count);
    }
}

fn add_broker(sum: &mut BrokerSecond, row: &BrokerSecond) {
    sum.cpu_s += row.cpu_s;
    sum.rss_bytes = sum.rss_bytes.max(row.rss_bytes);
    sum.context_switches = sum.context_switches.saturating_add(row.context_switches);
    sum.read_bytes = sum.read_bytes.saturating_add(row.read_bytes);
    sum.write_bytes = sum.write_bytes.saturating_add(row.write_bytes);
}

fn add_host(sum: &mut HostSecond, row: &HostSecond) {
    for (worst, other) in [
        (&mut sum.psi_cpu, row.psi_cpu),
        (&mut sum.psi_io, row.psi_io),
        (&mut sum.psi_memory, row.psi_memory),
        (&mut sum.steal, row.steal),
        (&mut sum.client_canary_max_us, row.client_canary_max_us),
        (&mut sum.cpu_canary_max_us, row.cpu_canary_max_us),
        (&mut sum.disk_canary_max_us, row.disk_canary_max_us),
        (&mut sum.network_canary_max_us, row.network_canary_max_us),
    ] {
        *worst = greater(*worst, other);
    }
    sum.running = sum.running.max(row.running);
}

fn greater(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.max(b)),
        (a, b) => a.or(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(t: u32) -> Second {
        Second { t, offered: 100, max_us: Some(f64::from(t)), heat: vec![1], ..Second::default() }
    }

    #[test]
    fn seconds_are_put_together_when_there_are_too_many() {
        for (rows, measured, width, count, end) in [
            (vec![], 0.0, 1, 0, 1.0),
            ((0..60).map(row).collect(), 60.0, 1, 60, 60.0),
            ((0..61).map(row).collect(), 60.02, 1, 60, 60.0),
            ((0..61).map(row).collect(), 60.5, 1, 61, 60.5),
            ((0..61).map(row).collect(), 59.98, 1, 60, 60.0),
            ((0..61).map(row).collect(), 5.0, 1, 61, 61.0),
            ((0..3_600).map(row).collect(), 3_600.0, 6, 600, 3_600.0),
            (vec![row(0), row(u32::MAX)], 10.0, 7_158_279, 2, 4_287_809_122.0),
        ] {
            let buckets = Buckets::of(&rows, measured, BUCKETS_MAX);
            assert_eq!((buckets.width, buckets.list.len()), (width, count), "{measured}");
            assert!((buckets.end - end).abs() < 1e-6, "{} is not {end}", buckets.end);
        }
    }

    #[test]
    fn counts_are_added_and_the_worst_is_kept() {
        let rows: Vec<Second> = (0..1_200).map(row).collect();
        let buckets = Buckets::of(&rows, 1_200.0, BUCKETS_MAX);
        let second = &buckets.list[1];
        assert_eq!(
            (second.start, second.rate(second.sum.offered), second.sum.max_us),
            (2.0, 100.0, Some(3.0))
        );
        assert_eq!(second.sum.heat, [2]);
    }
}
