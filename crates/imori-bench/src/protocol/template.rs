//! Requests and messages that are encoded once; only numbers, stamps and the like are patched per message.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::protocol::credit::Credit;
use crate::stamp::STAMP_BYTES;

/// Bytes of a call's hexadecimal number, which ends a correlation.
pub const NUMBER_BYTES: usize = 8;

/// Bytes of a correlation: run, requester and number in hexadecimal.
pub const CORRELATION_BYTES: usize = 8 + 1 + 4 + 1 + NUMBER_BYTES;

/// The identity of a call: run, requester and number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Correlation {
    /// The run, which tells our replies from those left over by another run.
    pub run: u32,
    /// The requester, from 0.
    pub requester: u16,
    /// The number of the call within its requester, from 0.
    pub number: u32,
}

impl Correlation {
    /// Reads a correlation; `None` if this tool did not write it. A protocol may write a dot
    /// instead of the last dash, so that the calls of a requester share a subject prefix.
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

/// Run, requester and number in hexadecimal.
impl fmt::Display for Correlation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}-{:04x}-{:08x}", self.run, self.requester, self.number)
    }
}

/// Encodes requests whose bytes depend on the state of their connection.
pub trait Caller: fmt::Debug + Send + Sync {
    /// Number of calls that the peer accepts now.
    fn room(&self) -> u64;

    /// Makes the call with this number.
    fn call(&self, number: u32, message: Vec<u8>);

    /// Appends the bytes of the calls since the last time.
    fn write(&self, out: &mut Vec<u8>);
}

/// An encoded request of one requester; only the call's number and the value in the body vary.
#[derive(Debug)]
pub struct RequestTemplate {
    bytes: Vec<u8>,
    /// Offset of the call's number in hexadecimal; `None` if a [`Caller`] writes the number.
    number_at: Option<usize>,
    delivery_at: Option<DeliveryNumbers>,
    body_at: usize,
    body_bytes: usize,
    /// Credit given by the peer, if the protocol has any.
    credit: Option<Arc<Credit>>,
    /// Encodes each request, if the template alone cannot.
    caller: Option<Box<dyn Caller>>,
}

/// Offsets of the delivery-id and the delivery-tag, each four bytes and equal to the message's number.
type DeliveryNumbers = [usize; 2];

impl RequestTemplate {
    /// Creates a request whose head, if it has one, ends with a correlation; the body has `size` bytes.
    pub fn new(head: &[u8], before_body: &[u8], size: usize, end: &[u8]) -> RequestTemplate {
        let number_at = head.len().checked_sub(NUMBER_BYTES);
        let mut bytes = [head, before_body].concat();
        let body_at = bytes.len();
        bytes.resize(body_at + size, b' ');
        bytes.extend_from_slice(end);
        RequestTemplate {
            bytes,
            number_at,
            delivery_at: None,
            body_at,
            body_bytes: size,
            credit: None,
            caller: None,
        }
    }

    /// Creates a request from its encoding, where a correlation ends at `correlation_ends`; the body
    /// is blank. `size` is what [`RequestTemplate::body_bytes`] returns.
    pub(crate) fn encoded(
        bytes: Vec<u8>,
        correlation_ends: usize,
        body_at: usize,
        size: usize,
    ) -> RequestTemplate {
        RequestTemplate {
            bytes,
            number_at: correlation_ends.checked_sub(NUMBER_BYTES),
            delivery_at: None,
            body_at,
            body_bytes: size,
            credit: None,
            caller: None,
        }
    }

    /// Also writes the call's number as delivery-id and delivery-tag.
    pub(crate) fn with_delivery_numbers(self, at: DeliveryNumbers) -> RequestTemplate {
        RequestTemplate { delivery_at: Some(at), ..self }
    }

    /// Makes the requester wait for the peer's credit.
    pub fn set_credit(&mut self, credit: Arc<Credit>) {
        self.credit = Some(credit);
    }

    /// Lets `caller` encode the requests, from the bytes of this template.
    pub fn set_caller(&mut self, caller: Box<dyn Caller>) {
        self.caller = Some(caller);
    }

    /// Bytes of the body, or of the whole message if the protocol's credit counts that.
    pub fn body_bytes(&self) -> usize {
        self.body_bytes
    }

    /// Number of requests that the peer accepts now.
    pub fn room(&self) -> u64 {
        match (&self.caller, &self.credit) {
            (Some(caller), _) => caller.room(),
            (None, credit) => credit.as_ref().map_or(u64::MAX, |credit| credit.room()),
        }
    }

    /// Appends the request with this number; the expected reply is the successor of `value`.
    pub fn append(&self, out: &mut Vec<u8>, number: u32, value: u64) {
        let from = out.len();
        out.extend_from_slice(&self.bytes);
        let request = out.get_mut(from..).unwrap_or_default();
        if let Some(at) = self.number_at {
            put_hex(request.get_mut(at..).and_then(|rest| rest.first_chunk_mut()), number);
        }
        put_delivery_numbers(request, self.delivery_at, number);
        if let Some(body) = request.get_mut(self.body_at..) {
            put_decimal(body, value);
        }
        if let Some(credit) = &self.credit {
            credit.spend();
        }
        if let Some(caller) = &self.caller {
            caller.call(number, request.to_vec());
            out.truncate(from);
        }
    }

    /// Appends what the caller, if there is one, has encoded of the requests so far.
    pub fn finish(&self, out: &mut Vec<u8>) {
        if let Some(caller) = &self.caller {
            caller.write(out);
        }
    }
}

/// An encoded message of one publisher; only the stamp and a few numbers vary.
#[derive(Debug)]
pub struct MessageTemplate {
    bytes: Vec<u8>,
    number_at: Option<usize>,
    delivery_at: Option<DeliveryNumbers>,
    body_at: usize,
    body_bytes: usize,
    /// Offset of the priority, the octet of the lowest priority, and the number of priorities.
    priority: Option<(usize, u8, u8)>,
    /// Offset of the expiry time, and the time to live.
    deadline: Option<(usize, Duration)>,
    /// Credit given by the peer, if the protocol has any.
    credit: Option<Arc<Credit>>,
}

/// Digits of a time in milliseconds since 1970; enough until the year 2286.
const DEADLINE_BYTES: usize = 13;

/// The priority of the message with this number, if messages cycle through `priorities`.
pub(crate) fn priority_of(number: u32, priorities: u8) -> u8 {
    number.checked_rem(u32::from(priorities)).unwrap_or(0) as u8
}

impl MessageTemplate {
    /// Creates a message; `head` is given the size of the body, and the filler follows the stamp.
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
        MessageTemplate::encoded(bytes, body_at, STAMP_BYTES + filler.len())
    }

    /// Creates a message from its encoding, whose body begins with the stamp. `body_bytes` is what
    /// [`MessageTemplate::body_bytes`] returns.
    pub(crate) fn encoded(bytes: Vec<u8>, body_at: usize, body_bytes: usize) -> MessageTemplate {
        MessageTemplate {
            bytes,
            number_at: None,
            delivery_at: None,
            body_at,
            body_bytes,
            priority: None,
            deadline: None,
            credit: None,
        }
    }

    /// Also writes the message's number as delivery-id and delivery-tag.
    pub(crate) fn with_delivery_numbers(self, at: DeliveryNumbers) -> MessageTemplate {
        MessageTemplate { delivery_at: Some(at), ..self }
    }

    /// Makes the publisher wait for the peer's credit.
    pub(crate) fn set_credit(&mut self, credit: Arc<Credit>) {
        self.credit = Some(credit);
    }

    /// Bytes of the body, or of the whole message if the protocol's credit counts that.
    pub(crate) fn body_bytes(&self) -> usize {
        self.body_bytes
    }

    /// Number of messages that the peer accepts now.
    pub(crate) fn room(&self) -> u64 {
        self.credit.as_ref().map_or(u64::MAX, |credit| credit.room())
    }

    /// Cycles messages through priorities; the digit follows `words` in the head.
    pub(crate) fn with_priorities(self, words: &str, priorities: u8) -> MessageTemplate {
        let priority = self.behind(words).map(|at| (at, b'0', priorities));
        MessageTemplate { priority, ..self }
    }

    /// Cycles messages through priorities; the priority is the octet of the head at this offset.
    pub(crate) fn with_priorities_at(self, at: usize, priorities: u8) -> MessageTemplate {
        MessageTemplate { priority: Some((at, 0, priorities)), ..self }
    }

    /// Writes each message's expiry time, which follows `words` in the head.
    pub(crate) fn with_deadline(self, words: &str, lives: Duration) -> MessageTemplate {
        let deadline = self.behind(words).map(|at| (at, lives));
        MessageTemplate { deadline, ..self }
    }

    /// Offset of the value of the header that starts with `words`.
    fn behind(&self, words: &str) -> Option<usize> {
        let line = format!("\n{words}");
        let head = self.bytes.get(..self.body_at).unwrap_or_default();
        let at = head.windows(line.len()).position(|window| window == line.as_bytes())?;
        Some(at + line.len())
    }

    /// Creates a message whose head ends with eight hexadecimal digits for its number.
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

/// Reads the decimal number at the start of a text.
pub(crate) fn read_decimal(text: &[u8]) -> Option<u64> {
    let mut value = None;
    for digit in text.iter().map_while(|byte| byte.is_ascii_digit().then(|| u64::from(byte - b'0'))) {
        value = Some(value.unwrap_or(0u64).checked_mul(10)?.checked_add(digit)?);
    }
    value
}

/// Appends a number in decimal.
pub(crate) fn push_decimal(out: &mut Vec<u8>, value: u64) {
    let mut digits = [0; 20];
    let length = put_decimal(&mut digits, value);
    out.extend_from_slice(digits.get(..length).unwrap_or_default());
}

/// Writes a decimal number over the start of a longer text; returns the number of digits.
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

/// Writes a call's number in hexadecimal.
pub fn put_hex(place: Option<&mut [u8; NUMBER_BYTES]>, mut value: u32) {
    for byte in place.into_iter().flatten().rev() {
        let digit = (value & 15) as u8;
        *byte = if digit < 10 { b'0' + digit } else { b'a' - 10 + digit };
        value >>= 4;
    }
}

/// The message number that a receipt names; `None` if the receipt is for something else.
pub(crate) fn read_number(text: &[u8]) -> Option<u32> {
    hex(text.first_chunk::<NUMBER_BYTES>().filter(|chunk| chunk.len() == text.len())?)
}

/// Reads at most eight hexadecimal digits, so that the value fits.
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
    use std::sync::Mutex;

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

    #[derive(Debug, Default)]
    struct Echo(Mutex<Vec<u8>>);

    impl Caller for Echo {
        fn room(&self) -> u64 {
            3
        }

        fn call(&self, number: u32, message: Vec<u8>) {
            let mut calls = self.0.lock().unwrap();
            calls.extend_from_slice(format!("{number}:").as_bytes());
            calls.extend_from_slice(&message);
        }

        fn write(&self, out: &mut Vec<u8>) {
            out.append(&mut self.0.lock().unwrap());
        }
    }

    #[test]
    fn a_caller_encodes_the_requests_of_its_template() {
        let mut template = RequestTemplate::new(b"", b"body ", 2, b"");
        template.set_caller(Box::new(Echo::default()));
        let mut out = b"before ".to_vec();
        for number in [8, 9] {
            template.append(&mut out, number, 7);
        }
        assert_eq!((out.as_slice(), template.room()), (&b"before "[..], 3));
        template.finish(&mut out);
        assert_eq!(out, b"before 8:body 7 9:body 7 ");
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
