//! NATS: rules for clients. The codec does the rest.

use imori_nats::codec::headers::{BLOCK_END, VERSION_LINE, push_header, status};
use imori_nats::codec::operation::Message;

/// The headers of a message as one block.
///
/// # Errors
/// The name of a header that NATS cannot carry.
pub fn header_block<'a>(headers: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Vec<u8>, &'a str> {
    let mut block = VERSION_LINE.to_vec();
    for (name, value) in headers {
        if !push_header(&mut block, name.as_bytes(), value.as_bytes()) {
            return Err(name);
        }
    }
    block.extend_from_slice(BLOCK_END);
    Ok(block)
}

/// Whether a message is the status "no responders": no subscription matches the subject of a request.
pub fn is_unheard(message: &Message<'_>) -> bool {
    message.headers.and_then(status) == Some(b"503")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_carried_or_refused() {
        for (headers, expected) in [
            (&[("a", "b"), ("c", "")][..], Ok(b"NATS/1.0\r\na: b\r\nc: \r\n\r\n".to_vec())),
            (&[("a b", "c")], Err("a b")),
            (&[("a", "b"), ("c", "d\ne: f")], Err("c")),
        ] {
            let block = header_block(headers.iter().copied());
            assert_eq!(block, expected);
        }
    }

    #[test]
    fn nobody_is_subscribed_if_the_status_says_so() {
        for (headers, expected) in
            [(None, false), (Some(&b"NATS/1.0 503\r\n\r\n"[..]), true), (Some(b"NATS/1.0\r\n\r\n"), false)]
        {
            let message = Message { subject: b"s", sid: b"1", reply: None, headers, payload: b"" };
            assert_eq!(is_unheard(&message), expected, "{headers:?}");
        }
    }
}
