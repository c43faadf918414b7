//! Requests and messages encoded once and patched in place: what a client writes again and again.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::protocol::credit::Credit;
use crate::stamp::STAMP_BYTES;

/// Bytes of the number of a call in hexadecimal, with which a correlation ends.
pub const NUMBER_BYTES: usize = 8;

/// Bytes of a correlation: run, requester and number in hexadecimal.
pub const CORRELATION_BYTES: usize = 8 + 1 + 4 + 1 + NUMBER_BYTES;

/// Whose call it is, and which one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Correlation {
    /// The run, so that leftovers of another one are told apart.
    pub run: u32,
    /// The requester, from 0.
    pub requester: u16,
    /// The number of the call within its requester, from 0.
    pub number: u32,
}

impl Correlation {
    /// Reads a correlation; none if it is not one of this tool. A protocol may write a dot for the
    /// last dash, so that all calls of a requester have a prefix that ends there.
    pub fn read(text: &[u8]) -> Option<Correlation> {
        let text = text.first_chunk::<CORRELATION_BYTES>().filter(|chunk| chunk.len() == text.len())?;
        let [run @ .., b'-', _, _, _, _, b'-' | b'.', _, _, _, _, _, _, _, _] = text else {
            return None;
        };
        Some(Correlation {
            run: hex(run)?,
            requester: hex(text.get(9..13)?)? as u16,
            number: hex(text.get(14..)?)?,
        })
    }
}

/// Whose call and which one, in hexadecimal.
impl fmt::Display for Correlation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}-{:04x}-{:08x}", self.run, self.requester, self.number)
    }
}

/// A request of one requester, complete but for its numbers: that of the call, and its body.
#[derive(Debug)]
pub struct RequestTemplate {
    bytes: Vec<u8>,
    number: NumberPlace,
    delivery_at: Option<DeliveryNumbers>,
    body_at: usize,
    body_bytes: usize,
    /// The credit of the other side, where it gives one.
    credit: Option<Arc<Credit>>,
}

/// Where a message carries its number in four bytes, as the number and as the name of its delivery.
type DeliveryNumbers = [usize; 2];

/// Where a request carries the number of its call.
#[derive(Debug)]
enum NumberPlace {
    /// In hexadecimal, at this place.
    Correlation(usize),
    /// As a stream, which the frames at these places name.
    Stream([usize; 2]),
}

impl RequestTemplate {
    /// A request of which the head ends with a correlation; the body has `size` bytes.
    pub fn new(head: &[u8], before_body: &[u8], size: usize, end: &[u8]) -> RequestTemplate {
        let number_at = head.len().saturating_sub(NUMBER_BYTES);
        let mut bytes = [head, before_body].concat();
        let body_at = bytes.len();
        bytes.resize(body_at + size, b' ');
        bytes.extend_from_slice(end);
        let number = NumberPlace::Correlation(number_at);
        RequestTemplate { bytes, number, delivery_at: None, body_at, body_bytes: size, credit: None }
    }

    /// A request on a stream of its own, which is named at two places of what precedes the body.
    pub fn on_stream(before_body: Vec<u8>, stream_at: [usize; 2], size: usize) -> RequestTemplate {
        let body_at = before_body.len();
        let mut bytes = before_body;
        bytes.resize(body_at + size, b' ');
        let number = NumberPlace::Stream(stream_at);
        RequestTemplate { bytes, number, delivery_at: None, body_at, body_bytes: size, credit: None }
    }

    /// Numbers the deliveries too.
    pub(crate) fn with_delivery_numbers(self, at: DeliveryNumbers) -> RequestTemplate {
        RequestTemplate { delivery_at: Some(at), ..self }
    }

    /// Holds the requester to what the other side takes.
    pub fn set_credit(&mut self, credit: Arc<Credit>) {
        self.credit = Some(credit);
    }

    /// Bytes of the body.
    pub fn body_bytes(&self) -> usize {
        self.body_bytes
    }

    /// How many requests the other side takes now.
    pub fn room(&self) -> u64 {
        self.credit.as_ref().map_or(u64::MAX, |credit| credit.room())
    }

    /// Appends the request with this number, which asks for the successor of `value`.
    pub fn append(&self, out: &mut Vec<u8>, number: u32, value: u64) {
        let from = out.len();
        out.extend_from_slice(&self.bytes);
        let request = out.get_mut(from..).unwrap_or_default();
        match self.number {
            NumberPlace::Correlation(at) => {
                put_hex(request.get_mut(at..).and_then(|rest| rest.first_chunk_mut()), number);
            }
            NumberPlace::Stream(places) => {
                let stream = stream_of(number).to_be_bytes();
                for at in places {
                    if let Some(place) = request.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
                        *place = stream;
                    }
                }
            }
        }
        put_delivery_numbers(request, self.delivery_at, number);
        if let Some(body) = request.get_mut(self.body_at..) {
            put_decimal(body, value);
        }
        if let Some(credit) = &self.credit {
            credit.spend();
        }
    }
}

/// The stream of a call: a client has the odd ones, and the first of them is for logging in.
fn stream_of(number: u32) -> u32 {
    number.wrapping_mul(2).wrapping_add(3)
}

/// The call that a stream belongs to; none if it is no stream of a call.
pub fn call_of(stream: u32) -> Option<u32> {
    (stream % 2 == 1).then_some(stream.checked_sub(3)? / 2)
}

/// A message of one publisher, complete but for its stamp and, if it is to be confirmed, its number.
#[derive(Debug)]
pub struct MessageTemplate {
    bytes: Vec<u8>,
    number_at: Option<usize>,
    delivery_at: Option<DeliveryNumbers>,
    body_at: usize,
    body_bytes: usize,
    /// Where its priority stands, the octet of the lowest, and how many priorities there are.
    priority: Option<(usize, u8, u8)>,
    /// Where the time stands at which it ends, and how long it lives.
    deadline: Option<(usize, Duration)>,
    /// The credit of the other side, where it gives one.
    credit: Option<Arc<Credit>>,
}

/// Digits of a time in milliseconds since 1970, until the year 2286.
const DEADLINE_BYTES: usize = 13;

/// The priority of the message with this number, of so many that are taken in turns.
pub(crate) fn priority_of(number: u32, priorities: u8) -> u8 {
    number.checked_rem(u32::from(priorities)).unwrap_or(0) as u8
}

impl MessageTemplate {
    /// A message whose head knows the size of the body; the filler follows the stamp.
    pub fn new<H: Into<Vec<u8>>>(
        head: impl FnOnce(usize) -> H,
        filler: &[u8],
        end: &[u8],
    ) -> MessageTemplate {
        let mut bytes = head(STAMP_BYTES + filler.len()).into();
        let body_at = bytes.len();
        bytes.resize(body_at + STAMP_BYTES, 0);
        bytes.extend_from_slice(filler);
        bytes.extend_from_slice(end);
        MessageTemplate {
            bytes,
            number_at: None,
            delivery_at: None,
            body_at,
            body_bytes: STAMP_BYTES + filler.len(),
            priority: None,
            deadline: None,
            credit: None,
        }
    }

    /// Numbers the deliveries.
    pub(crate) fn with_delivery_numbers(self, at: DeliveryNumbers) -> MessageTemplate {
        MessageTemplate { delivery_at: Some(at), ..self }
    }

    /// Holds the publisher to what the other side takes.
    pub(crate) fn set_credit(&mut self, credit: Arc<Credit>) {
        self.credit = Some(credit);
    }

    /// Bytes of the body, and of the heads of the frames within it.
    pub(crate) fn body_bytes(&self) -> usize {
        self.body_bytes
    }

    /// How many messages the other side takes now.
    pub(crate) fn room(&self) -> u64 {
        self.credit.as_ref().map_or(u64::MAX, |credit| credit.room())
    }

    /// Adds so many priorities in turns; the digit stands in the head behind these words.
    pub(crate) fn with_priorities(self, words: &str, priorities: u8) -> MessageTemplate {
        let priority = self.behind(words).map(|at| (at, b'0', priorities));
        MessageTemplate { priority, ..self }
    }

    /// Adds so many priorities in turns; each is one octet of the head, at this place.
    pub(crate) fn with_priorities_at(self, at: usize, priorities: u8) -> MessageTemplate {
        MessageTemplate { priority: Some((at, 0, priorities)), ..self }
    }

    /// Adds the time at which each expires; it stands in the head behind these words.
    pub(crate) fn with_deadline(self, words: &str, lives: Duration) -> MessageTemplate {
        let deadline = self.behind(words).map(|at| (at, lives));
        MessageTemplate { deadline, ..self }
    }

    /// Where the value of a header begins.
    fn behind(&self, words: &str) -> Option<usize> {
        let line = format!("\n{words}");
        let head = self.bytes.get(..self.body_at).unwrap_or_default();
        let at = head.windows(line.len()).position(|window| window == line.as_bytes())?;
        Some(at + line.len())
    }

    /// A message whose head ends with a place for its number, eight hexadecimal digits.
    pub(crate) fn numbered(
        head: impl FnOnce(usize) -> String,
        before_body: &str,
        filler: &[u8],
        end: &[u8],
    ) -> MessageTemplate {
        let template = MessageTemplate::new(|size| head(size) + before_body, filler, end);
        let number_at = template.body_at.checked_sub(before_body.len() + NUMBER_BYTES);
        MessageTemplate { number_at, ..template }
    }

    /// Appends the message with this number and stamp.
    pub(crate) fn append(&self, out: &mut Vec<u8>, number: u32, stamp: &[u8; STAMP_BYTES]) {
        let from = out.len();
        out.extend_from_slice(&self.bytes);
        let message = out.get_mut(from..).unwrap_or_default();
        if let Some(place) = message.get_mut(self.body_at..).and_then(|rest| rest.first_chunk_mut()) {
            *place = *stamp;
        }
        if let Some(number_at) = self.number_at {
            put_hex(message.get_mut(number_at..).and_then(|rest| rest.first_chunk_mut()), number);
        }
        put_delivery_numbers(message, self.delivery_at, number);
        if let Some((at, lowest, priorities)) = self.priority
            && let Some(octet) = message.get_mut(at)
        {
            *octet = lowest + priority_of(number, priorities);
        }
        if let Some((at, lives)) = self.deadline
            && let Some(place) = message.get_mut(at..at + DEADLINE_BYTES)
        {
            let ends = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default() + lives;
            put_decimal(place, ends.as_millis() as u64);
        }
        if let Some(credit) = &self.credit {
            credit.spend();
        }
    }
}

fn put_delivery_numbers(message: &mut [u8], at: Option<DeliveryNumbers>, number: u32) {
    for at in at.into_iter().flatten() {
        if let Some(place) = message.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
            *place = number.to_be_bytes();
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

/// Appends a number.
pub(crate) fn push_decimal(out: &mut Vec<u8>, value: u64) {
    let mut digits = [0; 20];
    let length = put_decimal(&mut digits, value);
    out.extend_from_slice(digits.get(..length).unwrap_or_default());
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

/// Writes the number of a call in hexadecimal.
pub fn put_hex(place: Option<&mut [u8; NUMBER_BYTES]>, mut value: u32) {
    for byte in place.into_iter().flatten().rev() {
        let digit = (value & 15) as u8;
        *byte = if digit < 10 { b'0' + digit } else { b'a' - 10 + digit };
        value >>= 4;
    }
}

/// The number that a confirm names; none if it is not one of a message.
pub(crate) fn read_number(text: &[u8]) -> Option<u32> {
    hex(text.first_chunk::<NUMBER_BYTES>().filter(|chunk| chunk.len() == text.len())?)
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

    #[test]
    fn a_correlation_id_is_read_back_and_another_is_not() {
        let correlation = Correlation { run: u32::MAX, requester: 0xabcd, number: 0x0123_4567 };
        assert_eq!(correlation.to_string(), "ffffffff-abcd-01234567");
        for text in ["ffffffff-abcd-01234567", "ffffffff-abcd.01234567"] {
            assert_eq!(Correlation::read(text.as_bytes()), Some(correlation), "{text}");
        }
        for text in
            [&b""[..], b"1", b"ffffffff-abcd-012345678", b"ffffffff_abcd-01234567", b"fffffffg-abcd-01234567"]
        {
            assert_eq!(Correlation::read(text), None);
        }
    }

    #[test]
    fn a_call_and_its_stream_know_each_other() {
        for (number, stream) in [(0, 3), (1, 5), (0x3fff_fffe, 0x7fff_ffff)] {
            assert_eq!((stream_of(number), call_of(stream)), (stream, Some(number)));
            let template = RequestTemplate::on_stream(vec![1; 12], [1, 7], 2);
            let mut out = vec![9];
            template.append(&mut out, number, 7);
            let id = stream.to_be_bytes();
            assert_eq!(out, [&[9, 1][..], &id, &[1, 1], &id, &[1], b"7 "].concat());
        }
        assert_eq!([call_of(0), call_of(1), call_of(4)], [None; 3]);
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
}
