//! Refusals in one shape: RFC 9457, problem details.

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::Value;

use crate::objects::operation_error::OperationError;

/// The content type of a problem.
pub(crate) const PROBLEM_TYPE: &str = "application/problem+json";

/// Bytes read of a refusal that is not a problem yet. More: the problem gives only the status.
const REFUSAL_BYTES_MAX: usize = 64 * 1024;

/// The reason why a request was refused (RFC 9457).
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Problem {
    /// The kind of problem, for programs.
    #[serde(rename = "type")]
    #[cfg_attr(feature = "openapi", schema(example = "urn:imori:problem:not-found"))]
    kind: String,
    /// The kind of problem in words.
    #[cfg_attr(feature = "openapi", schema(example = "Not Found"))]
    title: String,
    /// The status of the answer.
    #[cfg_attr(feature = "openapi", schema(example = 404))]
    status: u16,
    /// The mistake in this request, and how to fix it.
    #[cfg_attr(feature = "openapi", schema(example = "there is no queue `orders`"))]
    detail: String,
}

impl Problem {
    /// A problem with this status.
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> Problem {
        let title = status.canonical_reason().unwrap_or("Refused");
        Problem {
            kind: format!("urn:imori:problem:{}", title.to_lowercase().replace(' ', "-")),
            title: title.to_owned(),
            status: status.as_u16(),
            detail: detail.into(),
        }
    }

    /// A request that contradicts itself or cannot be read.
    pub(crate) fn bad(detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::BAD_REQUEST, detail)
    }
}

impl From<OperationError> for Problem {
    fn from(error: OperationError) -> Problem {
        match error {
            OperationError::Missing(kind, name) => {
                let name = name.escape_debug();
                Problem::new(StatusCode::NOT_FOUND, format!("there is no {kind} `{name}`"))
            }
            OperationError::NotPermitted(reason) => Problem::new(StatusCode::FORBIDDEN, reason),
            OperationError::Bad(reason) => Problem::bad(reason),
            OperationError::Conflict(reason) => Problem::new(StatusCode::CONFLICT, reason),
            OperationError::Unavailable(reason) => Problem::new(StatusCode::SERVICE_UNAVAILABLE, reason),
            OperationError::Ended => Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the broker is stopping"),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let text = serde_json::to_string(&self).unwrap_or_default();
        (status, [(CONTENT_TYPE, PROBLEM_TYPE)], text).into_response()
    }
}

/// Converts refusals by the layers before `/v1` into problems with the same headers: refusals by the guard and the
/// login, and of unknown paths and methods. The status stays too, except a 401 without a challenge, which becomes 403.
pub(crate) async fn word_refusals(request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let is_ours = path == "/v1" || path.starts_with("/v1/");
    let mut answer = next.run(request).await;
    if !is_ours {
        return answer;
    }
    let headers = answer.headers_mut();
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-cache"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    let is_worded = headers.get(CONTENT_TYPE).is_some_and(|kind| kind == PROBLEM_TYPE);
    // As in RabbitMQ, a user without the right gets 401 too, but without a challenge for another login.
    let is_denied = !is_worded
        && answer.status() == StatusCode::UNAUTHORIZED
        && !answer.headers().contains_key(WWW_AUTHENTICATE);
    if is_denied {
        *answer.status_mut() = StatusCode::FORBIDDEN;
    }
    let status = answer.status();
    if is_worded || !(status.is_client_error() || status.is_server_error()) {
        return answer;
    }
    let (mut parts, body) = answer.into_parts();
    let body = to_bytes(body, REFUSAL_BYTES_MAX).await.unwrap_or_default();
    let said: Option<Value> = serde_json::from_slice(&body).ok();
    let detail = match said.as_ref().and_then(|said| said["reason"].as_str()) {
        _ if is_denied => String::from("the tags of your user do not allow it; ask an administrator"),
        Some(_) if status == StatusCode::UNAUTHORIZED => String::from("log in as a user of the broker"),
        Some("Not Found") => String::from("there is no such path; `/v1/openapi.json` lists them"),
        Some(reason) => reason.to_owned(),
        None => String::from_utf8_lossy(&body).trim_end().to_owned(),
    };
    let detail = if detail.is_empty() { status.to_string() } else { detail };
    let text = serde_json::to_string(&Problem::new(status, detail)).unwrap_or_default();
    parts.headers.insert(CONTENT_TYPE, HeaderValue::from_static(PROBLEM_TYPE));
    parts.headers.remove(CONTENT_LENGTH);
    Response::from_parts(parts, Body::from(text))
}
