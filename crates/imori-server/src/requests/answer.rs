//! Answers of `/api`, in RabbitMQ's format.

use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::operation_error::OperationError;

/// The headers of every JSON answer.
pub(crate) const HEADERS: [(axum::http::HeaderName, &str); 3] =
    [(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "no-cache"), (X_CONTENT_TYPE_OPTIONS, "nosniff")];

/// Answers with JSON.
pub(crate) fn json_with(status: StatusCode, value: &Value) -> Response {
    (status, HEADERS, value.to_string()).into_response()
}

/// Answers a change that succeeded: 204 without a body.
pub(crate) fn done() -> Response {
    StatusCode::NO_CONTENT.into_response()
}

/// Answers that an object was created: 201.
pub(crate) fn created() -> Response {
    StatusCode::CREATED.into_response()
}

impl IntoResponse for OperationError {
    /// Converts the error to an answer of `/api` with RabbitMQ's status.
    fn into_response(self) -> Response {
        match self {
            OperationError::Missing(..) => not_found(),
            OperationError::NotPermitted(reason) => {
                error(StatusCode::UNAUTHORIZED, "not_authorized", &reason)
            }
            OperationError::Bad(reason) | OperationError::Conflict(reason) => bad_request(&reason),
            OperationError::Unavailable(reason) => {
                error(StatusCode::SERVICE_UNAVAILABLE, "service_unavailable", &reason)
            }
            OperationError::Ended => ended(),
        }
    }
}

/// Answers that the user has no right to use the path.
pub(crate) fn not_permitted() -> Response {
    error(StatusCode::UNAUTHORIZED, "not_authorized", "Not administrator user")
}

/// Answers that the object does not exist.
pub(crate) fn not_found() -> Response {
    error(StatusCode::NOT_FOUND, "Object Not Found", "Not Found")
}

/// Answers that the request is wrong, or contradicts the current state.
pub(crate) fn bad_request(reason: &str) -> Response {
    error(StatusCode::BAD_REQUEST, "bad_request", reason)
}

/// Answers that the path does not support this method.
pub(crate) fn not_allowed() -> Response {
    error(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "Method Not Allowed")
}

/// Answers that the broker is stopping.
pub(crate) fn ended() -> Response {
    error(StatusCode::SERVICE_UNAVAILABLE, "service_unavailable", "the broker is stopping")
}

/// Answers that too many logins are being checked.
pub(crate) fn busy() -> Response {
    error(
        StatusCode::SERVICE_UNAVAILABLE,
        "service_unavailable",
        "too many logins at once; try again in a moment",
    )
}

/// Answers that the request needs a login, or that its login was refused.
pub(crate) fn not_authorized() -> Response {
    let challenge = [(WWW_AUTHENTICATE, "Basic realm=\"Imori\"")];
    (challenge, error(StatusCode::UNAUTHORIZED, "not_authorized", "Not_Authorized")).into_response()
}

fn error(status: StatusCode, error: &str, reason: &str) -> Response {
    json_with(status, &json!({"error": error, "reason": reason}))
}
