//! Finds the cycle in which stalls recur.
//!
//! Every pair of nearby stalls proposes a period; with few events, that replaces the peaks of an
//! autocorrelation. From there, a chain is followed in both directions, tolerating missed cycles
//! and unrelated stalls, and a line is fitted through it. A chain is accepted only if random stalls
//! would hardly produce one as good, given the number of proposals tried.

use crate::record::series::{Period, Verdict};

/// The fewest cycles that establish a period.
const CYCLES_MIN: usize = 6;

/// The most stalls considered; of more, the longest are used.
const ONSETS_MAX: usize = 300;

/// Number of later stalls that each stall is paired with.
const AHEAD: usize = 6;

/// The shortest period in seconds; below it, stalls do not occur one by one.
const PERIOD_MIN_S: f64 = 0.2;

/// Fractions of the period by which a stall may be off; narrow ones find periods with few cycles.
const TOLERANCES: [f64; 4] = [0.01, 0.03, 0.08, 0.16];

/// The most consecutive cycles without a stall.
const MISSES_MAX: u32 = 3;

/// The least share of cycles that must have a stall.
const HITS_MIN: f64 = 0.6;

/// Logarithm of the highest accepted probability that random stalls show such a cycle.
const CHANCE_LN_MAX: f64 = -6.9;

/// Start, length and cause of a stall.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Onset {
    pub(crate) at_s: f64,
    pub(crate) length_s: f64,
    pub(crate) verdict: Verdict,
}

/// The cycle of these stalls in a run of `run_s` seconds with their most common cause, or the
/// reason why no cycle was found.
pub(crate) fn find_period(onsets: &[Onset], run_s: f64) -> Result<(Period, Verdict), String> {
    if onsets.is_empty() {
        return Err("no stalls".to_owned());
    }
    if onsets.len() < CYCLES_MIN {
        return Err(format!("not enough: {} stalls, a cycle shows with {CYCLES_MIN}", onsets.len()));
    }
    let sets = sets(onsets);
    let tries = (sets.len() as f64).ln();
    let best = sets
        .iter()
        .filter_map(|set| Some((best_chain(set, run_s)?, set)))
        .min_by(|(a, _), (b, _)| a.chance_ln.total_cmp(&b.chance_ln))
        .filter(|(chain, _)| chain.chance_ln + tries <= CHANCE_LN_MAX);
    let Some((chain, set)) = best else {
        return Err("the stalls follow no cycle".to_owned());
    };
    let members = chain.hits.iter().filter_map(|(_, at)| set.iter().find(|onset| onset.at_s == *at));
    let verdict = most_common(members.map(|onset| onset.verdict));
    let share = chain.hits.len() as f64 / chain.cycles();
    let period = Period {
        period_s: chain.period_s,
        phase_s: chain.first_s.rem_euclid(chain.period_s),
        confidence: (share * (1.0 - 2.0 * chain.spread_s / chain.period_s)).clamp(0.0, 1.0),
        cycles: chain.hits.len() as u32,
        suspect: None,
    };
    Ok((period, verdict))
}

/// All stalls, the longer ones, and those of each cause: a cycle of some may be hidden among others.
fn sets(onsets: &[Onset]) -> Vec<Vec<Onset>> {
    let mut by_length = onsets.to_vec();
    by_length.sort_by(|a, b| b.length_s.total_cmp(&a.length_s));
    let mut sets: Vec<Vec<Onset>> =
        [1, 2, 4].map(|part| by_length.iter().take(onsets.len().div_ceil(part)).copied().collect()).to_vec();
    let mut verdicts: Vec<Verdict> = onsets.iter().map(|onset| onset.verdict).collect();
    verdicts.sort_unstable();
    verdicts.dedup();
    if verdicts.len() > 1 {
        let of = |verdict| by_length.iter().filter(|onset| onset.verdict == verdict).copied().collect();
        sets.extend(verdicts.into_iter().map(of));
    }
    sets.retain(|set| set.len() >= CYCLES_MIN);
    for set in &mut sets {
        set.truncate(ONSETS_MAX);
        set.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
    }
    sets
}

fn most_common(verdicts: impl Iterator<Item = Verdict>) -> Verdict {
    let mut counts: Vec<(usize, Verdict)> = Vec::new();
    for verdict in verdicts {
        match counts.iter_mut().find(|(_, counted)| *counted == verdict) {
            Some((count, _)) => *count += 1,
            None => counts.push((1, verdict)),
        }
    }
    counts.into_iter().max().map_or(Verdict::Unknown, |(_, verdict)| verdict)
}

/// Stalls that follow a cycle.
#[derive(Debug, Clone)]
struct Chain {
    /// Number of the cycle and start of its stall, ordered by time.
    hits: Vec<(i64, f64)>,
    period_s: f64,
    first_s: f64,
    /// Root mean square of the stalls' deviations from the fitted times.
    spread_s: f64,
    chance_ln: f64,
}

impl Chain {
    /// Number of cycles from the first to the last stall.
    fn cycles(&self) -> f64 {
        let (first, last) = (self.hits.first(), self.hits.last());
        last.zip(first).map_or(0.0, |(last, first)| (last.0 - first.0 + 1) as f64)
    }

    /// Stalls per second over the span of the chain, because stalls may be clustered.
    fn rate(&self, times: &[f64]) -> f64 {
        let (Some((_, first)), Some((_, last))) = (self.hits.first(), self.hits.last()) else {
            return 0.0;
        };
        let begin = times.partition_point(|time| time < first);
        let end = times.partition_point(|time| time <= last);
        (end - begin) as f64 / (last - first + self.period_s)
    }
}

/// The chain that is least likely to be random.
fn best_chain(onsets: &[Onset], run_s: f64) -> Option<Chain> {
    let times: Vec<f64> = onsets.iter().map(|onset| onset.at_s).collect();
    let longest = run_s / (CYCLES_MIN as f64 - 1.0);
    let mut best: Option<Chain> = None;
    let mut tried = 0u32;
    for (at, anchor) in times.iter().enumerate() {
        for next in times.iter().skip(at + 1).take(AHEAD) {
            let proposed = next - anchor;
            if !(PERIOD_MIN_S..=longest).contains(&proposed) {
                continue;
            }
            for tolerance in TOLERANCES {
                tried += 1;
                let Some(chain) = follow(&times, at, proposed, tolerance) else {
                    continue;
                };
                if best.as_ref().is_none_or(|best| chain.chance_ln < best.chance_ln) {
                    best = Some(chain);
                }
            }
        }
    }
    let mut best = best?;
    best.chance_ln += f64::from(tried).ln();
    Some(best)
}

/// Follows a period from a stall in both directions.
fn follow(times: &[f64], anchor: usize, proposed: f64, tolerance: f64) -> Option<Chain> {
    let from = *times.get(anchor)?;
    let mut hits = vec![(0, from)];
    let mut fit = Fit::default();
    fit.add(0, from);
    for direction in [1.0, -1.0] {
        let (mut cycle, mut last) = (0i64, from);
        let mut missed = 0;
        while missed <= MISSES_MAX {
            let period = fit.slope().unwrap_or(proposed);
            let expected = last + direction * period * f64::from(missed + 1);
            if period <= 0.0 || expected < times.first()? - period || expected > times.last()? + period {
                break;
            }
            let closest = closest(times, expected)?;
            if (closest - expected).abs() > tolerance * proposed {
                missed += 1;
                continue;
            }
            cycle += direction as i64 * i64::from(missed + 1);
            last = closest;
            missed = 0;
            hits.push((cycle, closest));
            fit.add(cycle, closest);
        }
    }
    hits.sort_by_key(|(cycle, _)| *cycle);
    let period_s = fit.slope().filter(|period| *period >= PERIOD_MIN_S)?;
    let mut chain = Chain { hits, period_s, first_s: fit.intercept(), spread_s: 0.0, chance_ln: 0.0 };
    let (hits, cycles) = (chain.hits.len() as f64, chain.cycles());
    if chain.hits.len() < CYCLES_MIN || hits < HITS_MIN * cycles {
        return None;
    }
    let misses = chain.hits.iter().map(|(cycle, at)| at - (chain.first_s + *cycle as f64 * period_s));
    chain.spread_s = (misses.map(|miss| miss * miss).sum::<f64>() / hits).sqrt();
    // The first two stalls only propose the chain, so they prove nothing.
    let by_chance = 1.0 - (-2.0 * tolerance * period_s * chain.rate(times)).exp();
    chain.chance_ln = tail_ln(hits - 2.0, cycles - 2.0, by_chance);
    Some(chain)
}

fn closest(times: &[f64], expected: f64) -> Option<f64> {
    let at = times.partition_point(|time| *time < expected);
    let around = [at.checked_sub(1).and_then(|before| times.get(before)), times.get(at)];
    around.into_iter().flatten().copied().min_by(|a, b| (a - expected).abs().total_cmp(&(b - expected).abs()))
}

/// Chernoff bound for the logarithm of the probability of at least `hits` hits in `tries` tries.
fn tail_ln(hits: f64, tries: f64, chance: f64) -> f64 {
    let share = (hits / tries).min(1.0);
    if tries <= 0.0 || share <= chance {
        return 0.0;
    }
    let missed = if share < 1.0 { (1.0 - share) * ((1.0 - share) / (1.0 - chance)).ln() } else { 0.0 };
    -tries * (share * (share / chance).ln() + missed)
}

/// A line fitted by least squares.
#[derive(Debug, Default)]
struct Fit {
    points: f64,
    x: f64,
    y: f64,
    xx: f64,
    xy: f64,
}

impl Fit {
    fn add(&mut self, x: i64, y: f64) {
        let x = x as f64;
        self.points += 1.0;
        self.x += x;
        self.y += y;
        self.xx += x * x;
        self.xy += x * y;
    }

    fn slope(&self) -> Option<f64> {
        let spread = self.points * self.xx - self.x * self.x;
        (self.points >= 2.0 && spread > 0.0).then(|| (self.points * self.xy - self.x * self.y) / spread)
    }

    fn intercept(&self) -> f64 {
        (self.y - self.slope().unwrap_or(0.0) * self.x) / self.points.max(1.0)
    }
}

#[cfg(test)]
mod tests;
