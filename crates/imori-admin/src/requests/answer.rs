//! Answers of both admin APIs, and refusals of `/api` in RabbitMQ's format.

use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Value, json};

use crate::objects::operation_error::OperationError;

/// The headers of every JSON answer.
pub(crate) const HEADERS: [(HeaderName, &str); 3] =
    [(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "no-cache"), (X_CONTENT_TYPE_OPTIONS, "nosniff")];

/// An answer: status, headers, and a body in JSON if there is one.
#[derive(Debug)]
pub struct Answer<T = Value> {
    status: StatusCode,
    /// Headers besides those of JSON.
    headers: Vec<(HeaderName, HeaderValue)>,
    body: Option<T>,
}

impl<T> Answer<T> {
    /// The answer 200 with a body.
    pub(crate) fn of(body: T) -> Answer<T> {
        Answer { status: StatusCode::OK, headers: Vec::new(), body: Some(body) }
    }

    fn empty(status: StatusCode) -> Answer<T> {
        Answer { status, headers: Vec::new(), body: None }
    }

    /// The answer to a change that succeeded: 204.
    pub(crate) fn done() -> Answer<T> {
        Answer::empty(StatusCode::NO_CONTENT)
    }

    /// The answer to a change that created an object: 201.
    pub(crate) fn created() -> Answer<T> {
        Answer::empty(StatusCode::CREATED)
    }

    /// The answer to a change that creates or replaces an object: 201 if the object is new, 204 if it existed.
    pub(crate) fn put(is_new: bool) -> Answer<T> {
        if is_new { Answer::created() } else { Answer::done() }
    }

    /// The same answer with another status.
    pub(crate) fn with_status(self, status: StatusCode) -> Answer<T> {
        Answer { status, ..self }
    }

    /// The same answer with one more header.
    pub(crate) fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Answer<T> {
        self.headers.push((name, value));
        self
    }
}

impl Answer {
    /// A refusal of `/api`.
    fn refused(status: StatusCode, error: &str, reason: &str) -> Answer {
        Answer::of(json!({"error": error, "reason": reason})).with_status(status)
    }

    /// The user has no right to use the path.
    pub(crate) fn not_permitted() -> Answer {
        Answer::refused(StatusCode::UNAUTHORIZED, "not_authorized", "Not administrator user")
    }

    /// The object does not exist.
    pub(crate) fn not_found() -> Answer {
        Answer::refused(StatusCode::NOT_FOUND, "Object Not Found", "Not Found")
    }

    /// The request is wrong, or contradicts the current state.
    pub(crate) fn bad_request(reason: &str) -> Answer {
        Answer::refused(StatusCode::BAD_REQUEST, "bad_request", reason)
    }

    /// The path does not support the method.
    pub(crate) fn not_allowed() -> Answer {
        Answer::refused(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "Method Not Allowed")
    }

    fn unavailable(reason: &str) -> Answer {
        Answer::refused(StatusCode::SERVICE_UNAVAILABLE, "service_unavailable", reason)
    }

    /// Too many logins are being checked.
    pub(crate) fn busy() -> Answer {
        Answer::unavailable("too many logins at once; try again in a moment")
    }

    /// The request needs a login, or its login was refused.
    pub(crate) fn not_authorized() -> Answer {
        let challenge = HeaderValue::from_static("Basic realm=\"Imori\"");
        let refused = Answer::refused(StatusCode::UNAUTHORIZED, "not_authorized", "Not_Authorized");
        refused.with_header(WWW_AUTHENTICATE, challenge)
    }
}

impl From<OperationError> for Answer {
    /// The refusal with RabbitMQ's status.
    fn from(error: OperationError) -> Answer {
        match error {
            OperationError::Missing(..) => Answer::not_found(),
            OperationError::NotPermitted(reason) => {
                Answer::refused(StatusCode::UNAUTHORIZED, "not_authorized", &reason)
            }
            OperationError::Bad(reason) | OperationError::Conflict(reason) => Answer::bad_request(&reason),
            OperationError::Unavailable(reason) => Answer::unavailable(&reason),
            OperationError::Ended => Answer::unavailable("the broker is stopping"),
        }
    }
}

impl IntoResponse for OperationError {
    fn into_response(self) -> Response {
        Answer::from(self).into_response()
    }
}

impl<T: Serialize> IntoResponse for Answer<T> {
    fn into_response(self) -> Response {
        let Answer { status, headers, body } = self;
        // Plain data with text keys always serializes to JSON.
        let text = body.map(|body| serde_json::to_string(&body).unwrap_or_default());
        let mut response = match text {
            Some(text) => (status, HEADERS, text).into_response(),
            None => status.into_response(),
        };
        response.headers_mut().extend(headers);
        response
    }
}
