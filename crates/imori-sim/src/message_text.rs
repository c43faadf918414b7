//! The texts of messages by which both ends of a run know them.

/// The id that messages share of which a queue takes one.
pub(crate) fn shared_name(first: usize) -> String {
    format!("once{first}")
}

/// The body of a message: its number, and letters that go with it.
pub(crate) fn body(message: usize, size: usize) -> Vec<u8> {
    let letter = b'a' + (message % 26) as u8;
    let mut body = format!("{message:08x}").into_bytes();
    body.resize(size.max(8), letter);
    body
}

/// The reason that an operator gives for closing a connection.
pub(crate) const OPERATORS_REASON: &str = "Closed via management plugin";
