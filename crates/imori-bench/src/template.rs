//! Requests and messages encoded once and patched in place: what a client writes again and again.

use crate::destination::Destination;
use crate::stamp::STAMP_BYTES;

/// Bytes of a correlation id: run, requester and number in hexadecimal.
const CORRELATION_BYTES: usize = 8 + 1 + 4 + 1 + 8;

/// Whose call it is, and which one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Correlation {
    /// The run, so that leftovers of another one are told apart.
    pub(crate) run: u32,
    /// The requester, from 0.
    pub(crate) requester: u16,
    /// The number of the call within its requester, from 0.
    pub(crate) number: u32,
}

impl Correlation {
    /// Reads a correlation id; none if it is not one of this tool.
    pub(crate) fn read(text: &[u8]) -> Option<Correlation> {
        let text = text.first_chunk::<CORRELATION_BYTES>().filter(|chunk| chunk.len() == text.len())?;
        let [run @ .., b'-', _, _, _, _, b'-', _, _, _, _, _, _, _, _] = text else {
            return None;
        };
        Some(Correlation {
            run: hex(run)?,
            requester: hex(text.get(9..13)?)? as u16,
            number: hex(text.get(14..)?)?,
        })
    }

    fn write(&self, place: &mut [u8; CORRELATION_BYTES]) {
        *place = *b"00000000-0000-00000000";
        let (run, rest) = place.split_at_mut(9);
        let (requester, number) = rest.split_at_mut(5);
        put_hex(run.get_mut(..8), self.run);
        put_hex(requester.get_mut(..4), u32::from(self.requester));
        put_hex(Some(number), self.number);
    }
}

/// A request of one requester, complete but for its correlation id and its number.
#[derive(Debug)]
pub(crate) struct RequestTemplate {
    bytes: Vec<u8>,
    correlation_at: usize,
    body_at: usize,
    correlation: Correlation,
}

impl RequestTemplate {
    /// Encodes the request; the body has `size` bytes.
    pub(crate) fn new(
        destination: &Destination,
        reply_to: &str,
        size: usize,
        run: u32,
        requester: u16,
    ) -> RequestTemplate {
        let mut bytes = format!(
            "SEND\ndestination:{}\n{}reply-to:{reply_to}\ncontent-length:{size}\ncorrelation-id:",
            destination.name, destination.send_headers
        )
        .into_bytes();
        let correlation_at = bytes.len();
        bytes.resize(correlation_at + CORRELATION_BYTES, b'0');
        bytes.extend_from_slice(b"\n\n");
        let body_at = bytes.len();
        bytes.resize(body_at + size, b' ');
        bytes.push(0);
        RequestTemplate {
            bytes,
            correlation_at,
            body_at,
            correlation: Correlation { run, requester, number: 0 },
        }
    }

    /// Appends the request with this number, which asks for the successor of `value`.
    pub(crate) fn append(&self, out: &mut Vec<u8>, number: u32, value: u64) {
        let from = out.len();
        out.extend_from_slice(&self.bytes);
        let request = out.get_mut(from..).unwrap_or_default();
        let place = request.get_mut(self.correlation_at..).and_then(|rest| rest.first_chunk_mut());
        if let Some(place) = place {
            Correlation { number, ..self.correlation }.write(place);
        }
        if let Some(body) = request.get_mut(self.body_at..) {
            put_decimal(body, value);
        }
    }
}

/// A message of one publisher, complete but for its stamp.
#[derive(Debug)]
pub(crate) struct MessageTemplate {
    bytes: Vec<u8>,
    body_at: usize,
}

impl MessageTemplate {
    /// Encodes the message; the filler follows the stamp.
    pub(crate) fn new(destination: &Destination, extra_headers: &str, filler: &[u8]) -> MessageTemplate {
        let size = STAMP_BYTES + filler.len();
        let mut bytes = format!(
            "SEND\ndestination:{}\n{}{extra_headers}content-length:{size}\n\n",
            destination.name, destination.send_headers
        )
        .into_bytes();
        let body_at = bytes.len();
        bytes.resize(body_at + STAMP_BYTES, 0);
        bytes.extend_from_slice(filler);
        bytes.push(0);
        MessageTemplate { bytes, body_at }
    }

    /// Appends the message with this stamp.
    pub(crate) fn append(&self, out: &mut Vec<u8>, stamp: &[u8; STAMP_BYTES]) {
        let at = out.len() + self.body_at;
        out.extend_from_slice(&self.bytes);
        if let Some(place) = out.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
            *place = *stamp;
        }
    }
}

/// The decimal number that the text begins with.
pub(crate) fn read_decimal(text: &[u8]) -> Option<u64> {
    let mut value = None;
    for digit in text.iter().map_while(|byte| byte.is_ascii_digit().then(|| u64::from(byte - b'0'))) {
        value = Some(value.unwrap_or(0u64).checked_mul(10)?.checked_add(digit)?);
    }
    value
}

/// Writes a number over the front of a text that is longer; says how many digits it has.
pub(crate) fn put_decimal(text: &mut [u8], mut value: u64) -> usize {
    let mut digits = [b'0'; 20];
    let mut length = 0;
    for place in digits.iter_mut().rev() {
        *place = b'0' + (value % 10) as u8;
        value /= 10;
        length += 1;
        if value == 0 {
            break;
        }
    }
    let digits = digits.get(digits.len() - length..).unwrap_or_default();
    if let Some(place) = text.get_mut(..length) {
        place.copy_from_slice(digits);
    }
    length
}

fn put_hex(place: Option<&mut [u8]>, mut value: u32) {
    for byte in place.unwrap_or_default().iter_mut().rev() {
        let digit = (value & 15) as u8;
        *byte = if digit < 10 { b'0' + digit } else { b'a' - 10 + digit };
        value >>= 4;
    }
}

/// At most eight digits, so the value fits.
fn hex(digits: &[u8]) -> Option<u32> {
    let mut value = 0u32;
    for byte in digits {
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            _ => return None,
        };
        value = value << 4 | u32::from(digit);
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::destination::Style;

    #[test]
    fn a_patched_request_is_what_the_protocol_wants() {
        let queue = Destination::queue(Style::Rabbitmq, "rpc");
        let template = RequestTemplate::new(&queue, "/temp-queue/bench", 6, 0xdead_beef, 3);
        let mut out = b"before".to_vec();
        template.append(&mut out, 0x1f, 99);
        template.append(&mut out, 0x20, 100_000);
        let request = |correlation: &str, body: &str| {
            format!(
                "SEND\ndestination:/queue/rpc\nreply-to:/temp-queue/bench\ncontent-length:6\ncorrelation-id:{correlation}\n\n{body}\0"
            )
        };
        let expected = format!(
            "before{}{}",
            request("deadbeef-0003-0000001f", "99    "),
            request("deadbeef-0003-00000020", "100000")
        );
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn a_correlation_id_is_read_back_and_another_is_not() {
        let correlation = Correlation { run: u32::MAX, requester: 0xabcd, number: 0x0123_4567 };
        let mut text = [0; CORRELATION_BYTES];
        correlation.write(&mut text);
        assert_eq!(&text, b"ffffffff-abcd-01234567");
        assert_eq!(Correlation::read(&text), Some(correlation));
        for text in
            [&b""[..], b"1", b"ffffffff-abcd-012345678", b"ffffffff_abcd-01234567", b"fffffffg-abcd-01234567"]
        {
            assert_eq!(Correlation::read(text), None);
        }
    }

    #[test]
    fn numbers_are_written_and_read_as_decimal_text() {
        for (value, expected) in [(0, "0"), (9, "9"), (10, "10"), (u64::MAX, "18446744073709551615")] {
            let mut text = [b' '; 24];
            let length = put_decimal(&mut text, value);
            assert_eq!(text.get(..length), Some(expected.as_bytes()));
            assert_eq!(read_decimal(&text), Some(value));
        }
        for text in ["", " 1", "x", "18446744073709551616"] {
            assert_eq!(read_decimal(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn a_patched_message_carries_its_stamp_and_filler() {
        let topic = Destination::topic(Style::Artemis, "t");
        let template = MessageTemplate::new(&topic, "persistent:true\n", b"fill");
        let mut out = Vec::new();
        template.append(&mut out, b"0123456789abcdef");
        let expected: &[u8] =
            b"SEND\ndestination:t\ndestination-type:MULTICAST\npersistent:true\ncontent-length:20\n\n0123456789abcdeffill\0";
        assert_eq!(out, expected);
    }
}
