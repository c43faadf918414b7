//! A message before it is sent, and what its body is.

use super::place::Place;
pub(crate) use crate::message_text::{body, shared_name};
use crate::model::To;

/// A message to send.
#[derive(Debug, Clone)]
pub(crate) struct Outgoing<'a> {
    pub(crate) to: To,
    pub(crate) place: Place,
    pub(crate) arguments: &'a [(&'static str, String)],
    /// The inbox of its publisher that takes replies.
    pub(crate) reply_to: Option<usize>,
    /// The message bears its number, and its other properties, in headers.
    pub(crate) has_headers: bool,
    pub(crate) size: usize,
    pub(crate) priority: Option<u8>,
    pub(crate) expiration_ms: Option<u64>,
    pub(crate) delay_ms: Option<u64>,
    /// The message whose id it bears, perhaps itself.
    pub(crate) once: Option<usize>,
    pub(crate) wants_receipt: bool,
    pub(crate) is_in_transaction: bool,
    pub(crate) is_persistent: bool,
    /// The journal has no room for it.
    pub(crate) is_too_large: bool,
}

impl Outgoing<'_> {
    pub(crate) fn new(to: To, place: Place) -> Outgoing<'static> {
        Outgoing {
            to,
            place,
            arguments: &[],
            reply_to: None,
            has_headers: true,
            size: 8,
            priority: None,
            expiration_ms: None,
            delay_ms: None,
            once: None,
            wants_receipt: false,
            is_in_transaction: false,
            is_persistent: false,
            is_too_large: false,
        }
    }
}

/// A publisher's name for a message.
pub(crate) fn message_name(message: usize) -> String {
    format!("m{message}")
}
