//! The `heart-beat` header and its negotiation.

use std::fmt;
use std::time::Duration;

use crate::codec::error::Excerpt;
use crate::codec::number::parse_u64;
use crate::limits::HEART_BEAT_MIN;

/// The offer of one end: the two numbers of the header. Zero means never.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HeartBeat {
    /// The shortest interval at which this end can send heart-beats.
    pub sends: Duration,
    /// The interval at which this end would like to receive heart-beats.
    pub wants: Duration,
}

impl HeartBeat {
    /// Parses a `heart-beat` header: two numbers of milliseconds. An absent header means `0,0`.
    pub fn parse(value: Option<&[u8]>) -> Result<Self, InvalidHeartBeat> {
        let Some(value) = value else { return Ok(Self::default()) };
        let error = || InvalidHeartBeat { value: Excerpt::new(value) };
        let comma = value.iter().position(|byte| *byte == b',').ok_or_else(error)?;
        let (sends, wants) = value.split_at(comma);
        let sends = milliseconds(sends).ok_or_else(error)?;
        let wants = wants.get(1..).and_then(milliseconds).ok_or_else(error)?;
        Ok(Self { sends, wants })
    }

    /// Computes this end's heart-beats when the other end offers `peer`.
    ///
    /// STOMP 1.2, Heart-beating: none in a direction if either end says zero, else the longer of
    /// what one end can send and the other wants. Never shorter than [`HEART_BEAT_MIN`].
    pub fn agree(self, peer: Self) -> Agreed {
        Agreed { send_every: longer(self.sends, peer.wants), receive_every: longer(peer.sends, self.wants) }
    }
}

/// The agreed heart-beat intervals, seen from one end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Agreed {
    /// The longest this end may stay silent.
    pub send_every: Option<Duration>,
    /// The longest the peer may stay silent, without the reader's tolerance.
    pub receive_every: Option<Duration>,
}

impl Agreed {
    /// Returns the `heart-beat` of CONNECTED, from which the peer computes the same agreement.
    pub fn answer(self) -> HeartBeat {
        HeartBeat {
            sends: self.send_every.unwrap_or_default(),
            wants: self.receive_every.unwrap_or_default(),
        }
    }
}

impl fmt::Display for HeartBeat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", self.sends.as_millis(), self.wants.as_millis())
    }
}

/// A `heart-beat` header that is not two numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidHeartBeat {
    /// The value.
    pub value: Excerpt,
}

impl fmt::Display for InvalidHeartBeat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = &self.value;
        write!(f, "heart-beat `{value}` is not two numbers of milliseconds; write it as `10000,10000`")
    }
}

impl std::error::Error for InvalidHeartBeat {}

/// Parses a time. Rejects more than 49 days (`u32::MAX` ms), which can only be a mistake.
fn milliseconds(text: &[u8]) -> Option<Duration> {
    // Some clients write a space after the comma.
    let number = parse_u64(text.trim_ascii())?;
    u32::try_from(number).ok().map(|number| Duration::from_millis(u64::from(number)))
}

fn longer(sends: Duration, wants: Duration) -> Option<Duration> {
    if sends.is_zero() || wants.is_zero() {
        return None;
    }
    Some(sends.max(wants).max(HEART_BEAT_MIN))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SECURITY LIM-08, LIM-16: no sign, no overflow.
    #[test]
    fn heart_beat_is_two_numbers() {
        for (value, expected) in [
            (None, Some((0, 0))),
            (Some("0,0"), Some((0_u32, 0_u32))),
            (Some("1000,2000"), Some((1000, 2000))),
            (Some("1000, 2000"), Some((1000, 2000))),
            (Some("4294967295,0"), Some((u32::MAX, 0))),
            (Some("4294967296,0"), None),
            (Some("18446744073709551616,0"), None),
            (Some("-1,0"), None),
            (Some("+1,0"), None),
            (Some("1"), None),
            (Some("1,"), None),
            (Some(",1"), None),
            (Some("1,2,3"), None),
            (Some("a,b"), None),
            (Some(""), None),
        ] {
            let expected = expected.map(|(sends, wants)| HeartBeat {
                sends: Duration::from_millis(u64::from(sends)),
                wants: Duration::from_millis(u64::from(wants)),
            });
            assert_eq!(HeartBeat::parse(value.map(str::as_bytes)).ok(), expected, "{value:?}");
        }
    }

    #[test]
    fn agreement_is_the_longer_of_both() {
        // Ours, theirs, and the answer.
        for (own, peer, expected) in [
            ("0,0", "1000,1000", "0,0"),
            ("1000,1000", "0,0", "0,0"),
            ("1000,1000", "10000,20000", "20000,10000"),
            ("60000,60000", "10000,0", "0,60000"),
            ("60000,60000", "0,10000", "60000,0"),
            ("1,1", "5,7", "1000,1000"),
        ] {
            let own = HeartBeat::parse(Some(own.as_bytes())).unwrap();
            let peer = HeartBeat::parse(Some(peer.as_bytes())).unwrap();
            let agreed = own.agree(peer);
            assert_eq!(agreed.answer().to_string(), expected);
            // The peer comes to the same result from the answer.
            let seen = peer.agree(agreed.answer());
            assert_eq!((seen.send_every, seen.receive_every), (agreed.receive_every, agreed.send_every));
        }
    }
}
