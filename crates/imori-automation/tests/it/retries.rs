//! Policies of retries.

use std::time::Duration;

use imori_automation::retries::{Outcome, RetryPolicy, RetryPolicyError};

use crate::map;

fn read(parameters: &str) -> Result<RetryPolicy, RetryPolicyError> {
    RetryPolicy::read(&map(parameters))
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
        (r#"{"retry_on":"failure","max_retry_count":6}"#, "`max_retry_count` is 6; use a number from 1 to 5"),
        (
            r#"{"retry_on":"failure","max_retry_count":-4294967295}"#,
            "`max_retry_count` is -4294967295; use a number from 1 to 5",
        ),
        (r#"{"retry_on":"failure","delay":-1}"#, "`delay` is -1; use a number of seconds from 0 to 120"),
        (r#"{"retry_on":"failure","delay":"1"}"#, "`delay` is \"1\"; use a number of seconds from 0 to 120"),
        (
            r#"{"retry_on":"failure","retries":1}"#,
            "parameter `retries` is unknown; use one of `retry_on`, `max_retry_count`, `delay`",
        ),
    ];
    for (parameters, message) in rows {
        assert_eq!(read(parameters).unwrap_err().to_string(), message);
    }
}
