//! A request as the gateway takes it.

use std::rc::Rc;

use http::request::Parts;
use hyper::upgrade::OnUpgrade;

use crate::facts::ConnectionOrigin;
use crate::request_body::RequestBody;

/// A request, of a client or of a script.
pub(crate) struct Asking {
    pub(crate) place: Rc<ConnectionOrigin>,
    pub(crate) parts: Parts,
    pub(crate) body: RequestBody,
    pub(crate) upgrade: Option<OnUpgrade>,
    /// The requests above it, which scripts have sent.
    pub(crate) depth: u32,
}
