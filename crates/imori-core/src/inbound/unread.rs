//! Input that has not been processed yet.

use bytes::Bytes;

use crate::message::BODY_SHARED_MIN;

/// The rest of a connection's input, starting with the next frame.
#[derive(Debug, Clone, Copy)]
pub struct Unread<'a> {
    bytes: &'a [u8],
    /// The whole input, in shared memory that a body can keep alive.
    whole: Option<&'a Bytes>,
    consumed: usize,
}

impl<'a> Unread<'a> {
    /// The input after the first `consumed` bytes. `whole`, if given, holds exactly `input`.
    #[inline]
    pub(super) fn new(input: &'a [u8], whole: Option<&'a Bytes>, consumed: usize) -> Unread<'a> {
        Unread { bytes: input.get(consumed..).unwrap_or_default(), whole, consumed }
    }

    /// The unprocessed bytes.
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The body of `len` bytes that ends at byte `end`, without a copy; `None` if the input is not
    /// shared or the body is too short for that to pay.
    #[inline]
    pub fn kept_body(&self, end: usize, len: usize) -> Option<Bytes> {
        let whole = self.whole?;
        let end = self.consumed + end;
        (len >= BODY_SHARED_MIN && (len..=whole.len()).contains(&end)).then(|| whole.slice(end - len..end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_long_body_of_shared_input_is_kept() {
        let input = Bytes::from([b"ab".as_slice(), &vec![b'c'; BODY_SHARED_MIN], b"\0"].concat());
        let unread = Unread::new(&input, Some(&input), 1);
        let end = 1 + BODY_SHARED_MIN;
        let body = unread.kept_body(end, BODY_SHARED_MIN).unwrap();
        assert!(body.iter().all(|byte| *byte == b'c'));
        assert_eq!(unread.kept_body(end, BODY_SHARED_MIN - 1), None, "it is short");
        assert_eq!(unread.kept_body(end + 2, BODY_SHARED_MIN), None, "it is not whole");
        assert_eq!(Unread::new(&input, None, 1).kept_body(end, BODY_SHARED_MIN), None);
    }
}
