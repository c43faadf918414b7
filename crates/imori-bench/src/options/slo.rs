//! The objectives of a run: `p99.9<20ms,lost=0,stall50=99.9%`.

use std::str::FromStr;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};

/// One condition that a run must meet.
#[derive(Debug, Clone, PartialEq)]
pub enum Objective {
    /// This quantile of the response times, 0 to 1, is below this time.
    Quantile(f64, Duration),
    /// The longest response is below this time.
    Max(Duration),
    /// At most this many messages or calls are lost.
    Lost(u64),
    /// At least this share of the operations, 0 to 1, is answered within 50 ms.
    Available(f64),
}

/// All objectives, each with its text from the command line.
#[derive(Debug, Clone, PartialEq)]
pub struct Slo(pub Vec<(String, Objective)>);

impl FromStr for Slo {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Slo> {
        text.split(',')
            .map(|part| Ok((part.trim().to_owned(), objective(part.trim())?)))
            .collect::<Result<_>>()
            .map(Slo)
    }
}

fn objective(text: &str) -> Result<Objective> {
    let unknown =
        || anyhow!("`{text}` is no objective; write `p99.9<20ms`, `max<1s`, `lost=0` or `stall50=99.9%`");
    if let Some((name, bound)) = text.split_once('<') {
        let bound = time(bound).ok_or_else(unknown)?;
        return match (name, name.strip_prefix('p').map(str::parse::<f64>)) {
            ("max", _) => Ok(Objective::Max(bound)),
            (_, Some(Ok(percent))) if percent > 0.0 && percent < 100.0 => {
                Ok(Objective::Quantile(percent / 100.0, bound))
            }
            _ => bail!(unknown()),
        };
    }
    match text.split_once('=') {
        Some(("lost", count)) => count.parse().map(Objective::Lost).map_err(|_| unknown()),
        Some(("stall50", share)) => match share.strip_suffix('%').map(str::parse::<f64>) {
            Some(Ok(percent)) if (0.0..=100.0).contains(&percent) => {
                Ok(Objective::Available(percent / 100.0))
            }
            _ => bail!(unknown()),
        },
        _ => bail!(unknown()),
    }
}

/// Reads `20ms`, `1.5s` or `300us`.
fn time(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at(text.find(|c: char| c.is_ascii_alphabetic())?);
    let factor = match unit {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        _ => return None,
    };
    let seconds = digits.parse::<f64>().ok()? * factor;
    Duration::try_from_secs_f64(seconds).ok().filter(|time| !time.is_zero())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objectives_are_read() {
        for (text, expected) in [
            ("p99.9<20ms", Some(Objective::Quantile(0.999, Duration::from_millis(20)))),
            ("p50<300us", Some(Objective::Quantile(0.5, Duration::from_micros(300)))),
            ("max<1.5s", Some(Objective::Max(Duration::from_millis(1_500)))),
            ("lost=0", Some(Objective::Lost(0))),
            ("stall50=99.9%", Some(Objective::Available(0.999))),
            ("p100<1ms", None),
            ("p99<1", None),
            ("p99<0ms", None),
            ("p99=1ms", None),
            ("lost<1", None),
            ("", None),
        ] {
            let read = objective(text).ok();
            let is_near = match (&read, &expected) {
                (Some(Objective::Quantile(a, x)), Some(Objective::Quantile(b, y))) => {
                    (a - b).abs() < 1e-9 && x == y
                }
                (Some(Objective::Available(a)), Some(Objective::Available(b))) => (a - b).abs() < 1e-9,
                (read, expected) => read == expected,
            };
            assert!(is_near, "{text}: {read:?}");
        }
        assert_eq!("p99<1ms, lost=0".parse::<Slo>().unwrap().0.len(), 2);
    }
}
