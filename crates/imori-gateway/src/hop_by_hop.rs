//! Headers that concern one connection alone (RFC 9110, 7.6.1).

use http::HeaderName;
use http::header::{CONNECTION, TE, TRANSFER_ENCODING, UPGRADE};

/// Headers that neither a message from a script nor one that is passed on may have: HTTP's codec writes its own.
pub(crate) const HOP_BY_HOP: [HeaderName; 6] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    TE,
    TRANSFER_ENCODING,
    UPGRADE,
];
