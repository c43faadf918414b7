//! Responses: their bodies, and those that report an error.

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};
use hyper::body::{Frame, SizeHint};
use imori_core::error::BrokerError;
use imori_server::InternalError;
use serde_json::json;

/// An error of a body.
pub(crate) type BodyError = Box<dyn Error + Send + Sync>;

/// The body of a response.
pub(crate) enum Body {
    /// All of it is there.
    Full(Option<Bytes>),
    /// It comes piece by piece.
    Stream(Pin<Box<dyn hyper::body::Body<Data = Bytes, Error = BodyError>>>),
}

impl Body {
    /// A body that is there.
    pub(crate) fn full(bytes: impl Into<Bytes>) -> Body {
        let bytes = bytes.into();
        Body::Full((!bytes.is_empty()).then_some(bytes))
    }

    /// A body that comes piece by piece.
    pub(crate) fn stream<B>(body: B) -> Body
    where
        B: hyper::body::Body<Data = Bytes> + 'static,
        B::Error: Into<BodyError>,
    {
        Body::Stream(Box::pin(http_body_util::BodyExt::map_err(body, Into::into)))
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Body::Full(bytes) => f.debug_tuple("Full").field(&bytes.as_ref().map_or(0, Bytes::len)).finish(),
            Body::Stream(_) => f.write_str("Stream"),
        }
    }
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match &mut *self {
            Body::Full(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Body::Stream(body) => body.as_mut().poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Body::Full(bytes) => bytes.is_none(),
            Body::Stream(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Body::Full(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            Body::Stream(body) => body.size_hint(),
        }
    }
}

/// A response that reports an error (RFC 9457).
pub(crate) fn problem(status: StatusCode, detail: &str) -> Response<Body> {
    let title = status.canonical_reason().unwrap_or("Error");
    let document =
        json!({"type": "about:blank", "title": title, "status": status.as_u16(), "detail": detail});
    let mut response = Response::new(Body::full(document.to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    if matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

/// A response that is a JSON document.
pub(crate) fn document(status: StatusCode, document: &serde_json::Value) -> Response<Body> {
    let mut response = Response::new(Body::full(document.to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// The response to a request that the broker has refused.
pub(crate) fn refused(error: &InternalError) -> Response<Body> {
    problem(status_of(error), &error.to_string())
}

fn status_of(error: &InternalError) -> StatusCode {
    match error {
        InternalError::Broker(error) => match error {
            BrokerError::Refused(_) => StatusCode::FORBIDDEN,
            BrokerError::NoQueue(_) | BrokerError::Route(_) => StatusCode::NOT_FOUND,
            BrokerError::QueueFull(_) | BrokerError::Unavailable { .. } => StatusCode::SERVICE_UNAVAILABLE,
            BrokerError::RecordTooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            BrokerError::Locked(_) | BrokerError::ConsumedExclusively(_) => StatusCode::CONFLICT,
            _ => StatusCode::BAD_REQUEST,
        },
        InternalError::NoResponder | InternalError::TooMany | InternalError::Ended(_) => {
            StatusCode::SERVICE_UNAVAILABLE
        }
        InternalError::Late => StatusCode::GATEWAY_TIMEOUT,
        InternalError::TooManyCalls => StatusCode::TOO_MANY_REQUESTS,
        InternalError::OtherUser => StatusCode::FORBIDDEN,
        InternalError::LoginRefused => StatusCode::UNAUTHORIZED,
        InternalError::NoVhost(_) => StatusCode::NOT_FOUND,
        InternalError::NoCell(_) => StatusCode::INTERNAL_SERVER_ERROR,
    }
}
