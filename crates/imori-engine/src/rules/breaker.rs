//! The breaker of a rule: it suspends a rule that matches too often, such as one that triggers itself.

use imori_automation::rules::Window;
use imori_automation::times::Timestamp;
use imori_automation::value::{Map, Value};

use crate::limits::RULE_SUSPENSION;

/// Counts the matches of a rule, and suspends it.
#[derive(Debug, Clone, Default)]
pub struct Breaker {
    /// When the current span began, in microseconds since 1970.
    began: i64,
    matches: u64,
    suspension: Option<Suspension>,
}

#[derive(Debug, Clone)]
struct Suspension {
    until: Timestamp,
    reason: String,
    /// Matches since then that did not run.
    skipped: u64,
}

/// What the breaker makes of a match.
#[derive(Debug, PartialEq, Eq)]
pub enum Passage {
    /// It passes.
    Open,
    /// It is one too many: the rule is suspended from now on, for this reason.
    Suspends(String),
    /// The rule is suspended.
    Suspended,
}

impl Breaker {
    /// Counts a match.
    pub fn pass(&mut self, allowed: Window, now: Timestamp) -> Passage {
        if let Some(suspension) = &mut self.suspension {
            if now < suspension.until {
                suspension.skipped += 1;
                return Passage::Suspended;
            }
            *self = Breaker::default();
        }
        if self.matches == 0 || now.micros() >= self.began.saturating_add(allowed.micros) {
            self.began = now.micros();
            self.matches = 0;
        }
        self.matches += 1;
        if self.matches <= u64::from(allowed.count) {
            return Passage::Open;
        }
        let pause = i64::try_from(RULE_SUSPENSION.as_micros()).unwrap_or(i64::MAX);
        let until = now.plus_micros(pause).unwrap_or(Timestamp::MAX);
        let seconds = allowed.micros as f64 / 1e6;
        let reason = format!(
            "the rule matched more than {} times in {seconds} s and is suspended until {until}; look whether it triggers \
             itself, change it, or set `x-imori.breaker`",
            allowed.count
        );
        self.suspension = Some(Suspension { until, reason: reason.clone(), skipped: 0 });
        Passage::Suspends(reason)
    }

    /// The suspension, for the API and the store; `None` if the rule is not suspended.
    pub fn shown(&self, now: Timestamp) -> Option<Map> {
        let suspension = self.suspension.as_ref().filter(|suspension| now < suspension.until)?;
        let mut shown = Map::new();
        shown.insert("until", suspension.until.to_string());
        shown.insert("reason", suspension.reason.as_str());
        shown.insert("skipped", i64::try_from(suspension.skipped).unwrap_or(i64::MAX));
        Some(shown)
    }

    /// Takes over a suspension that was stored.
    pub fn restore(&mut self, stored: &Value) {
        let text = |key: &str| stored.get(key).and_then(Value::as_str);
        if let Some(until) = text("until").and_then(|until| until.parse().ok()) {
            let reason = text("reason").unwrap_or_default().to_owned();
            self.suspension = Some(Suspension { until, reason, skipped: 0 });
        }
    }
}
