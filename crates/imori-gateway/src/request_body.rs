//! Bodies of requests.

use bytes::Bytes;
use http::{Response, StatusCode};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::{Body as _, Incoming};
use imori_server::http::ReceivedBody;

use crate::respond::{Body, problem};

/// The body of a request.
#[derive(Debug)]
pub(crate) enum RequestBody {
    /// It is on its way.
    Incoming(ReceivedBody<Incoming>),
    /// It is there.
    Read(Bytes),
}

impl RequestBody {
    /// The fewest bytes that it has.
    pub(crate) fn bytes_min(&self) -> u64 {
        match self {
            RequestBody::Incoming(body) => body.size_hint().lower(),
            RequestBody::Read(bytes) => bytes.len() as u64,
        }
    }

    /// Reads it.
    ///
    /// # Errors
    /// The response to a body of more than `bytes_max` bytes, or to one that has not come to its end.
    pub(crate) async fn read(self, bytes_max: u64) -> Result<Bytes, Response<Body>> {
        if self.bytes_min() > bytes_max {
            return Err(too_long(bytes_max));
        }
        let body = match self {
            RequestBody::Read(bytes) => return Ok(bytes),
            RequestBody::Incoming(body) => body,
        };
        let limited = Limited::new(body, usize::try_from(bytes_max).unwrap_or(usize::MAX));
        match limited.collect().await {
            Ok(collected) => Ok(collected.to_bytes()),
            Err(error) if error.is::<LengthLimitError>() => Err(too_long(bytes_max)),
            Err(_) => Err(broken()),
        }
    }
}

/// The response to a body that ends early, or whose chunks are broken.
pub(crate) fn broken() -> Response<Body> {
    problem(StatusCode::BAD_REQUEST, "the body has not come to its end")
}

/// The response to a body that is too long.
pub(crate) fn too_long(bytes_max: u64) -> Response<Body> {
    problem(StatusCode::PAYLOAD_TOO_LARGE, &format!("a body has at most {bytes_max} bytes here"))
}
