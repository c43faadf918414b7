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

#[cfg(test)]
mod tests {
    use super::*;

    fn read(parameters: &str) -> Result<RetryPolicy, RetryPolicyError> {
        RetryPolicy::read(Value::from_json(parameters.as_bytes()).unwrap().as_map().unwrap())
    }

    #[test]
    fn execution_runs_again_as_often_as_the_policy_says() {
        let policy = read(r#"{"retry_on":"timeout","max_retry_count":2,"delay":1.5}"#).unwrap();
        let delay = Some(Duration::from_millis(1_500));
        assert_eq!(policy.decide(0, Outcome::Timeout), delay);
        assert_eq!(policy.decide(1, Outcome::Timeout), delay);
        assert_eq!(policy.decide(2, Outcome::Timeout), None);
        assert_eq!(policy.decide(0, Outcome::Failure), None);
    }

    #[test]
    fn count_and_delay_have_defaults() {
        let policy = read(r#"{"retry_on":"failure","delay":null}"#).unwrap();
        assert_eq!(policy.decide(1, Outcome::Failure), Some(Duration::ZERO));
        assert_eq!(policy.decide(2, Outcome::Failure), None);
    }

    #[test]
    fn wrong_policies_are_refused() {
        let rows = [
            ("{}", "`retry_on` is missing; use `failure` or `timeout`"),
            (r#"{"retry_on":"success"}"#, "`retry_on` is \"success\"; use `failure` or `timeout`"),
            (
                r#"{"retry_on":"failure","max_retry_count":6}"#,
                "`max_retry_count` is 6; use a number from 1 to 5",
            ),
            (
                r#"{"retry_on":"failure","max_retry_count":-4294967295}"#,
                "`max_retry_count` is -4294967295; use a number from 1 to 5",
            ),
            (r#"{"retry_on":"failure","delay":-1}"#, "`delay` is -1; use a number of seconds from 0 to 120"),
            (
                r#"{"retry_on":"failure","delay":"1"}"#,
                "`delay` is \"1\"; use a number of seconds from 0 to 120",
            ),
            (
                r#"{"retry_on":"failure","retries":1}"#,
                "parameter `retries` is unknown; use one of `retry_on`, `max_retry_count`, `delay`",
            ),
        ];
        for (parameters, message) in rows {
            assert_eq!(read(parameters).unwrap_err().to_string(), message);
        }
    }
}
