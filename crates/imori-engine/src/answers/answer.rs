//! Answers in StackStorm's shape: JSON, and errors with `faultstring`.

use axum::body::Body;
use axum::http::{Response, StatusCode, header};
use axum::response::IntoResponse;
use imori_automation::value::{Map, Value};
use tracing::error;

use crate::store::StoreError;

/// An error of the API.
#[derive(Debug)]
pub(crate) struct ApiError {
    status: StatusCode,
    body: Map,
}

/// The result of a handler.
pub(crate) type Answer = Result<Response<Body>, ApiError>;

impl ApiError {
    /// An error of this status.
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> ApiError {
        ApiError { status, body: [("faultstring", message.into())].into_iter().collect() }
    }

    /// The request can be answered later.
    pub(crate) fn unavailable(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, message)
    }

    /// The request needs a login, and has none that counts.
    pub(crate) fn unauthorized() -> ApiError {
        ApiError::new(StatusCode::UNAUTHORIZED, "Unauthorized - One of Token or API key required.")
    }

    /// The request is wrong.
    pub(crate) fn bad_request(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::BAD_REQUEST, message)
    }

    /// There is no object of this name or id.
    pub(crate) fn not_found(what: &str, name: &str) -> ApiError {
        ApiError::new(StatusCode::NOT_FOUND, format!("{what} `{name}` does not exist"))
    }

    /// There is such an object already.
    pub(crate) fn conflict(message: impl Into<String>, id: &str) -> ApiError {
        let mut error = ApiError::new(StatusCode::CONFLICT, message);
        error.body.insert("conflict-id", id);
        error
    }
}

impl From<StoreError> for ApiError {
    fn from(reason: StoreError) -> ApiError {
        error!(error = %reason, "a request of the automation's API cannot be answered");
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, reason.to_string())
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response<Body> {
        let mut response = json(self.status, &Value::Map(self.body));
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(header::RETRY_AFTER, header::HeaderValue::from_static("1"));
        }
        response
    }
}

/// An answer of this status and body.
pub(crate) fn json(status: StatusCode, body: &Value) -> Response<Body> {
    let mut response = Response::new(Body::from(body.to_json()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    response
}

/// The answer 200 with this object.
pub(crate) fn ok(body: impl Into<Value>) -> Answer {
    Ok(json(StatusCode::OK, &body.into()))
}

/// The answer 201 with this object.
pub(crate) fn created(body: impl Into<Value>) -> Answer {
    Ok(json(StatusCode::CREATED, &body.into()))
}

/// The answer 204.
pub(crate) fn no_content() -> Answer {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    Ok(response)
}

/// The JSON object in a request's body.
///
/// # Errors
/// The body is no JSON object.
pub(crate) fn object(body: &[u8]) -> Result<Map, ApiError> {
    match Value::from_json(body) {
        Ok(Value::Map(map)) => Ok(map),
        Ok(other) => {
            Err(ApiError::bad_request(format!("the body is a JSON {}; send an object", other.type_name())))
        }
        Err(error) => Err(ApiError::bad_request(format!("the body is no JSON: {error}"))),
    }
}
