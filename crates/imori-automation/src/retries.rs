//! StackStorm's policy `action.retry`: an execution that fails or times out runs again.

use std::fmt;
use std::time::Duration;

use crate::limits::{RETRIES_MAX, RETRY_DELAY_SECONDS_MAX};
use crate::value::{Map, Value};

/// When an execution runs again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// After what.
    pub retry_on: Outcome,
    /// How often, besides the first time.
    pub max_retry_count: u32,
    /// After how long.
    pub delay: Duration,
}

/// The ends that a retry may follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Its status is `failed`.
    Failure,
    /// Its status is `timeout`.
    Timeout,
}

/// Why parameters make no policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetryPolicyError(String);

const NAMES: [&str; 3] = ["retry_on", "max_retry_count", "delay"];
const RETRIES_DEFAULT: u32 = 2;

impl RetryPolicy {
    /// Reads `retry_on` (`failure` or `timeout`), `max_retry_count` (2) and `delay` in seconds (0).
    ///
    /// # Errors
    /// A parameter is absent, wrong or unknown.
    pub fn read(parameters: &Map) -> Result<RetryPolicy, RetryPolicyError> {
        if let Some((name, _)) = parameters.iter().find(|(name, _)| !NAMES.contains(name)) {
            return Err(wrong(format!("parameter `{name}` is unknown; use one of `{}`", NAMES.join("`, `"))));
        }
        let value = |name: &str| parameters.get(name).filter(|value| !value.is_null());
        let retry_on = match value("retry_on").map(|value| (value, value.as_str())) {
            Some((_, Some("failure"))) => Outcome::Failure,
            Some((_, Some("timeout"))) => Outcome::Timeout,
            Some((value, _)) => {
                return Err(wrong(format!("`retry_on` is {value}; use `failure` or `timeout`")));
            }
            None => return Err(wrong("`retry_on` is missing; use `failure` or `timeout`")),
        };
        let max_retry_count = value("max_retry_count").map_or(Some(RETRIES_DEFAULT), |value| {
            let count = value.as_int().filter(|count| (1..=RETRIES_MAX).contains(count))?;
            u32::try_from(count).ok()
        });
        let max_retry_count = max_retry_count.ok_or_else(|| {
            refused("max_retry_count", value("max_retry_count"), &format!("from 1 to {RETRIES_MAX}"))
        })?;
        let delay = value("delay").map_or(Some(0.0), Value::as_number);
        let delay =
            delay.filter(|seconds| (0.0..=RETRY_DELAY_SECONDS_MAX).contains(seconds)).ok_or_else(|| {
                refused("delay", value("delay"), &format!("of seconds from 0 to {RETRY_DELAY_SECONDS_MAX}"))
            })?;
        Ok(RetryPolicy { retry_on, max_retry_count, delay: Duration::from_secs_f64(delay) })
    }

    /// How long to wait before the execution runs again, or `None` if it does not. `attempt` counts its retries so
    /// far. A task of a workflow has the retries of its workflow instead, so that its caller does not ask.
    pub fn decide(&self, attempt: u32, outcome: Outcome) -> Option<Duration> {
        (attempt < self.max_retry_count && outcome == self.retry_on).then_some(self.delay)
    }
}

fn refused(name: &str, value: Option<&Value>, range: &str) -> RetryPolicyError {
    let value = value.map_or(String::new(), Value::to_json);
    wrong(format!("`{name}` is {value}; use a number {range}"))
}

fn wrong(message: impl Into<String>) -> RetryPolicyError {
    RetryPolicyError(message.into())
}

impl fmt::Display for RetryPolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for RetryPolicyError {}
