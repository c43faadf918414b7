//! Acknowledgements: the subject that a delivery has for them, and their payload. Answers to flow control.

use imori_streams::duration::Nanos;
use imori_streams::json::{UnknownNames, decode};
use serde::Deserialize;

use crate::codec::number::{parse_u64, push_u64};

/// The prefix of every subject of an acknowledgement.
pub const ACK_PREFIX: &[u8] = b"$JS.ACK.";

/// The subject of an acknowledgement, which tells the client what it was delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AckSubject<'a> {
    /// The stream.
    pub stream: &'a [u8],
    /// The consumer.
    pub consumer: &'a [u8],
    /// Deliveries of the message so far, with this one.
    pub deliveries: u64,
    /// The sequence of the message in the stream.
    pub stream_sequence: u64,
    /// The sequence of the delivery.
    pub consumer_sequence: u64,
    /// Time at which the message was stored, in nanoseconds since 1970.
    pub timestamp: u64,
    /// Messages that are to be delivered after this one.
    pub pending: u64,
}

impl<'a> AckSubject<'a> {
    /// Appends the subject, in the form without domain and account.
    pub fn push(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(ACK_PREFIX);
        out.extend_from_slice(self.stream);
        out.push(b'.');
        out.extend_from_slice(self.consumer);
        for number in
            [self.deliveries, self.stream_sequence, self.consumer_sequence, self.timestamp, self.pending]
        {
            out.push(b'.');
            push_u64(out, number);
        }
    }

    /// Reads a subject, in the form without domain and account or in the one with both and
    /// perhaps a token at the end. `None` for any other subject.
    pub fn parse(subject: &'a [u8]) -> Option<Self> {
        let mut tokens = subject.strip_prefix(ACK_PREFIX)?.split(|byte| *byte == b'.');
        let count = subject.iter().filter(|byte| **byte == b'.').count() + 1;
        match count {
            9 => {}
            // Domain and account come first.
            11.. => drop(tokens.nth(1)?),
            _ => return None,
        }
        let (stream, consumer) = (tokens.next()?, tokens.next()?);
        let mut number = || parse_u64(tokens.next()?);
        Some(Self {
            stream,
            consumer,
            deliveries: number()?,
            stream_sequence: number()?,
            consumer_sequence: number()?,
            timestamp: number()?,
            pending: number()?,
        })
    }
}

/// The prefix of the answers to requests of flow control.
pub const FLOW_PREFIX: &[u8] = b"$JS.FC.";

/// The reply subject of a request of flow control.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowSubject<'a> {
    /// The stream.
    pub stream: &'a [u8],
    /// The consumer.
    pub consumer: &'a [u8],
    /// The number of the request.
    pub number: u64,
}

impl<'a> FlowSubject<'a> {
    /// Returns the subject.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = [FLOW_PREFIX, self.stream, b".", self.consumer, b"."].concat();
        push_u64(&mut out, self.number);
        out
    }

    /// Reads a subject; `None` for any other one.
    pub fn parse(subject: &'a [u8]) -> Option<Self> {
        let mut tokens = subject.strip_prefix(FLOW_PREFIX)?.split(|byte| *byte == b'.');
        let (stream, consumer) = (tokens.next()?, tokens.next()?);
        let number = parse_u64(tokens.next()?)?;
        tokens.next().is_none().then_some(Self { stream, consumer, number })
    }
}

/// A client's answer to a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ack<'a> {
    /// The message is done (`+ACK`).
    Accept,
    /// The message is to be delivered again, after a delay if one is given (`-NAK`).
    Release(Option<Nanos>),
    /// The client needs more time (`+WPI`).
    InProgress,
    /// The message is done, and the rest of the payload is a pull request (`+NXT`).
    AcceptAndPull(&'a [u8]),
    /// The message must not be delivered again, for a reason that may be empty (`+TERM`).
    Reject(&'a [u8]),
}

/// The JSON of a delay.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Delay {
    delay: Nanos,
}

impl<'a> Ack<'a> {
    /// Reads the payload of an acknowledgement. `None` for any other payload: nats-server changes
    /// nothing then, but answers if the client waits for it.
    ///
    /// A delay is JSON with nanoseconds, or a text such as `1.5s`; nats-server ignores any other,
    /// also a number alone.
    pub fn parse(payload: &'a [u8]) -> Option<Self> {
        match payload {
            b"" | b"+ACK" | b"+OK" => return Some(Self::Accept),
            b"+WPI" => return Some(Self::InProgress),
            _ => {}
        }
        let (word, rest) = payload.split_at_checked(4)?;
        match word {
            b"-NAK" => Some(Self::Release(delay(rest.trim_ascii()))),
            b"+NXT" => Some(Self::AcceptAndPull(rest)),
            b"+TER" => Some(Self::Reject(rest.strip_prefix(b"M")?.trim_ascii())),
            _ => None,
        }
    }
}

/// Reads a delay; `None` for none, and for one that is not positive.
fn delay(text: &[u8]) -> Option<Nanos> {
    let delay = match text.first()? {
        b'{' => decode::<Delay>(text, UnknownNames::Ignored).ok()?.delay,
        _ => Nanos::parse(str::from_utf8(text).ok()?)?,
    };
    (delay > Nanos::ZERO).then_some(delay)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SUBJECT: AckSubject<'_> = AckSubject {
        stream: b"ORDERS",
        consumer: b"C",
        deliveries: 1,
        stream_sequence: 22,
        consumer_sequence: 3,
        timestamp: 1_767_323_045_123_456_789,
        pending: 4,
    };

    #[test]
    fn a_subject_is_read_in_both_forms() {
        for (subject, expected) in [
            ("$JS.ACK.ORDERS.C.1.22.3.1767323045123456789.4", Some(SUBJECT)),
            ("$JS.ACK._.HASH.ORDERS.C.1.22.3.1767323045123456789.4", Some(SUBJECT)),
            ("$JS.ACK.hub.HASH.ORDERS.C.1.22.3.1767323045123456789.4.token", Some(SUBJECT)),
            ("$JS.ACK.x.ORDERS.C.1.22.3.1767323045123456789.4", None),
            ("$JS.ACK.ORDERS.C.1.22.3.1767323045123456789", None),
            ("$JS.ACK.ORDERS.C.1.22.3.-1.4", None),
            ("$JS.ACK.ORDERS.C.1.22.x.1767323045123456789.4", None),
            ("$JS.ACK.ORDERS.C.1.22..1767323045123456789.4", None),
            ("$JS.ACK.ORDERS.C.1.22.3.99999999999999999999.4", None),
            ("$JS.ACK.", None),
            ("$JS.API.ORDERS.C.1.22.3.1767323045123456789.4", None),
            ("", None),
        ] {
            assert_eq!(AckSubject::parse(subject.as_bytes()), expected, "{subject}");
        }
        let mut out = b"before ".to_vec();
        SUBJECT.push(&mut out);
        assert_eq!(out, b"before $JS.ACK.ORDERS.C.1.22.3.1767323045123456789.4");
    }

    #[test]
    fn payloads_are_read_as_nats_server_reads_them() {
        let second = Some(Nanos::from_secs(1));
        for (payload, expected) in [
            ("", Some(Ack::Accept)),
            ("+ACK", Some(Ack::Accept)),
            ("+OK", Some(Ack::Accept)),
            ("+WPI", Some(Ack::InProgress)),
            ("-NAK", Some(Ack::Release(None))),
            ("-NAK {\"delay\": 1000000000}", Some(Ack::Release(second))),
            ("-NAK{\"Delay\":1000000000,\"x\":1}", Some(Ack::Release(second))),
            ("-NAK 1s", Some(Ack::Release(second))),
            ("-NAK 1000ms ", Some(Ack::Release(second))),
            ("-NAK 1000000000", Some(Ack::Release(None))),
            ("-NAK {\"delay\":", Some(Ack::Release(None))),
            ("-NAK {\"delay\":-1}", Some(Ack::Release(None))),
            ("-NAK soon", Some(Ack::Release(None))),
            ("+NXT", Some(Ack::AcceptAndPull(b""))),
            ("+NXT 5", Some(Ack::AcceptAndPull(b" 5"))),
            ("+NXT {\"batch\":5}", Some(Ack::AcceptAndPull(b" {\"batch\":5}"))),
            ("+TERM", Some(Ack::Reject(b""))),
            ("+TERM no such order ", Some(Ack::Reject(b"no such order"))),
            ("+TER", None),
            ("+TERX", None),
            ("+ACK ", None),
            ("+WPI ", None),
            ("ack", None),
            ("?", None),
        ] {
            assert_eq!(Ack::parse(payload.as_bytes()), expected, "{payload}");
        }
    }

    proptest! {
        #[test]
        fn every_subject_is_read_as_it_was_written(
            stream in "[a-zA-Z0-9_-]{1,20}",
            consumer in "[a-zA-Z0-9_-]{1,20}",
            numbers in any::<[u64; 5]>(),
        ) {
            let [deliveries, stream_sequence, consumer_sequence, timestamp, pending] = numbers;
            let subject = AckSubject {
                stream: stream.as_bytes(),
                consumer: consumer.as_bytes(),
                deliveries,
                stream_sequence,
                consumer_sequence,
                timestamp,
                pending,
            };
            let mut out = Vec::new();
            subject.push(&mut out);
            prop_assert_eq!(AckSubject::parse(&out), Some(subject));
        }
    }

    #[test]
    fn an_answer_to_flow_control_is_read_as_it_was_asked_for() {
        let subject = FlowSubject { stream: b"S", consumer: b"c", number: 17 };
        assert_eq!(subject.encode(), b"$JS.FC.S.c.17");
        for (text, expected) in [
            ("$JS.FC.S.c.17", Some(subject)),
            ("$JS.FC.S.c", None),
            ("$JS.FC.S.c.x", None),
            ("$JS.FC.S.c.17.1", None),
            ("$JS.ACK.S.c.17", None),
        ] {
            assert_eq!(FlowSubject::parse(text.as_bytes()), expected, "{text}");
        }
    }
}
