//! Texts of messages that both clients and checks derive from a message's number.

/// The message id shared by duplicates, of which a queue accepts one.
pub(crate) fn shared_name(first: usize) -> String {
    format!("once{first}")
}

/// The body of a message: its number in hexadecimal, padded with a letter derived from it.
pub(crate) fn body(message: usize, size: usize) -> Vec<u8> {
    let letter = b'a' + (message % 26) as u8;
    let mut body = format!("{message:08x}").into_bytes();
    body.resize(size.max(8), letter);
    body
}

/// The reason given when an operator closes a connection.
pub(crate) const OPERATORS_REASON: &str = "Closed via management plugin";
