//! Refusals of `/v1`, which have one shape.

use imori_admin::for_tests::{OperationError, Problem};
use serde_json::json;

#[test]
fn a_problem_names_its_kind_status_and_detail() {
    for (error, status, kind, detail) in [
        (OperationError::Missing("queue", "a\n".to_owned()), 404, "not-found", "there is no queue `a\\n`"),
        (OperationError::NotPermitted("no".to_owned()), 403, "forbidden", "no"),
        (OperationError::Conflict("full".to_owned()), 409, "conflict", "full"),
        (OperationError::Ended, 503, "service-unavailable", "the broker is stopping"),
    ] {
        let problem = serde_json::to_value(Problem::from(error)).unwrap();
        assert_eq!((&problem["status"], &problem["detail"]), (&json!(status), &json!(detail)));
        assert_eq!(problem["type"], format!("urn:imori:problem:{kind}"));
    }
}
