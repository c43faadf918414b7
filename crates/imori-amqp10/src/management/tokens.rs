//! `/auth/tokens`: replaces the client's access token.

use crate::limits::LOGIN_FRAME_BYTES_MAX;
use crate::management::request::Request;
use crate::management::response::Response;

/// Returns the new token in a request; `None` for any other request.
///
/// # Errors
/// The body is not binary, or is longer than a token at login may be.
pub(super) fn new_token<'a>(request: &Request<'a>) -> Option<Result<&'a [u8], Response>> {
    if request.method != "PUT" || request.segments != ["auth", "tokens"] {
        return None;
    }
    Some(match request.binary() {
        None => {
            Err(Response::refused(400, "the body of the request is not a token: binary in an `amqp-value`"))
        }
        // The same limit as at login.
        Some(token) if token.len() > LOGIN_FRAME_BYTES_MAX => {
            let text =
                format_args!("the token has more than {LOGIN_FRAME_BYTES_MAX} bytes; use a shorter one");
            Err(Response::refused(400, text))
        }
        Some(token) => Ok(token),
    })
}
