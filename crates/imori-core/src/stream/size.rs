//! The size of a message, as the limits of a stream count it.

use crate::message::{MessageView, Property};

/// Bytes of a message in nats-server's files besides subject, headers and body.
const FRAME_BYTES: usize = 22 + 8;

/// Bytes that the length of the headers takes there.
const HEADER_LEN_BYTES: usize = 4;

/// Bytes of a message as limits of a stream count them, which is as nats-server does.
pub(crate) fn stored_bytes(subject: &[u8], view: &MessageView<'_>) -> u32 {
    let headers = header_bytes(view);
    let headers = if headers == 0 { 0 } else { headers + HEADER_LEN_BYTES };
    u32::try_from(FRAME_BYTES + subject.len() + headers + view.body.len()).unwrap_or(u32::MAX)
}

/// Bytes of the headers, without the reply address in front of them.
pub(crate) fn header_bytes(view: &MessageView<'_>) -> usize {
    let reply = view.property(Property::ReplyTo).map_or(0, <[u8]>::len);
    let has_reply_in_front =
        view.text.len() >= reply && view.property(Property::ReplyTo) == view.text.get(..reply);
    if has_reply_in_front { view.text.len() - reply } else { view.text.len() }
}
