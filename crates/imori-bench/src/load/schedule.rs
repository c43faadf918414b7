//! The schedule of an open loop: due times that follow from a seed and a rate alone, whatever the broker does.

use crate::options::Arrival;

/// Nanoseconds of a second.
const SECOND: f64 = 1e9;

/// The due times of one connection's operations, in nanoseconds of the run's clock.
#[derive(Debug, Clone)]
pub struct Schedule {
    arrival: Arrival,
    /// Mean time between two operations, in nanoseconds.
    gap: f64,
    /// State of the random number generator.
    state: u64,
    next: f64,
    end: f64,
    /// Operations still due at `next`, in a burst.
    burst_left: u32,
}

impl Schedule {
    /// Creates the schedule of one connection, at `rate` operations a second over all connections.
    ///
    /// `share` is the index of this connection and the number of connections. A fixed pace is
    /// shifted by the index, so that the gaps between all operations are equal too.
    pub fn new(arrival: Arrival, rate: f64, seed: u64, share: (u32, u32), span: (u64, u64)) -> Schedule {
        let (index, count) = (f64::from(share.0), f64::from(share.1.max(1)));
        let gap = SECOND * count / rate;
        let mut schedule = Schedule {
            arrival,
            gap,
            state: seed.wrapping_add(u64::from(share.0)).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            next: span.0 as f64,
            end: span.1 as f64,
            burst_left: 0,
        };
        match arrival {
            Arrival::Fixed => schedule.next += gap * index / count,
            Arrival::Poisson => schedule.next += schedule.exponential(),
            Arrival::Burst(size) => {
                schedule.next += gap * f64::from(size) * index / count;
                schedule.burst_left = size;
            }
        }
        schedule
    }

    /// When the next operation is due; `None` after the end.
    pub fn peek(&self) -> Option<u64> {
        (self.next < self.end).then_some(self.next as u64)
    }

    /// Moves on to the next operation.
    pub fn advance(&mut self) {
        match self.arrival {
            Arrival::Fixed => self.next += self.gap,
            Arrival::Poisson => self.next += self.exponential(),
            Arrival::Burst(_) if self.burst_left > 1 => self.burst_left -= 1,
            Arrival::Burst(size) => {
                self.burst_left = size;
                self.next += self.gap * f64::from(size);
            }
        }
    }

    /// A random gap between independent arrivals.
    fn exponential(&mut self) -> f64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        // 53 bits plus a half are never 0, so the logarithm is finite.
        let uniform = ((self.state >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
        -uniform.ln() * self.gap
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn times(arrival: Arrival, rate: f64, seed: u64, share: (u32, u32), span: (u64, u64)) -> Vec<u64> {
        let mut schedule = Schedule::new(arrival, rate, seed, share, span);
        let mut times = Vec::new();
        while let Some(time) = schedule.peek() {
            times.push(time);
            schedule.advance();
        }
        times
    }

    #[test]
    fn a_fixed_pace_is_shared_by_the_connections() {
        let first = times(Arrival::Fixed, 4.0, 1, (0, 2), (S, 3 * S));
        let second = times(Arrival::Fixed, 4.0, 1, (1, 2), (S, 3 * S));
        assert_eq!(first, [S, S + S / 2, 2 * S, 2 * S + S / 2]);
        assert_eq!(second, first.iter().map(|time| time + S / 4).collect::<Vec<_>>());
    }

    #[test]
    fn bursts_come_at_once() {
        assert_eq!(times(Arrival::Burst(3), 3.0, 1, (0, 1), (0, 2 * S)), [0, 0, 0, S, S, S]);
    }

    #[test]
    fn poisson_keeps_its_rate_and_its_spread() {
        let times = times(Arrival::Poisson, 10_000.0, 7, (0, 1), (0, 20 * S));
        assert!((195_000..205_000).contains(&times.len()), "{}", times.len());
        let gaps: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        let spread = variance.sqrt() / mean;
        assert!((0.97..1.03).contains(&spread), "an exponential spreads as far as its mean: {spread}");
    }

    #[test]
    fn a_seed_draws_the_same_again() {
        let drawn = |seed, share| times(Arrival::Poisson, 100.0, seed, share, (0, S));
        assert_eq!(drawn(3, (0, 2)), drawn(3, (0, 2)));
        assert_ne!(drawn(3, (0, 2)), drawn(4, (0, 2)));
        assert_ne!(drawn(3, (0, 2)), drawn(3, (1, 2)));
    }
}
