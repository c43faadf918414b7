//! Tracks the reply addresses to which a client may publish because it received a request.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use crate::limits::OPEN_ANSWERS_MAX;
use crate::time::Time;

/// The right of a user to answer messages that have a reply subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Responses {
    /// The number of answers allowed per message; 0 for any number.
    pub count: u32,
    /// The time within which answers must be sent; zero for no limit.
    pub expires: Duration,
}

/// The reply addresses to which one connection may publish.
#[derive(Debug)]
pub(crate) struct OpenAnswers {
    responses: Responses,
    open: BTreeMap<Box<[u8]>, Open>,
    /// Keys in the order of their requests; a key that was requested again occurs twice.
    noted: VecDeque<(u64, Box<[u8]>)>,
    serial: u64,
}

#[derive(Debug)]
struct Open {
    /// The number of the latest request.
    serial: u64,
    since: Time,
    answers: u32,
}

impl OpenAnswers {
    pub(crate) fn new(responses: Responses) -> OpenAnswers {
        OpenAnswers { responses, open: BTreeMap::new(), noted: VecDeque::new(), serial: 0 }
    }

    /// Changes the limits, for open requests too.
    pub(crate) fn set(&mut self, responses: Responses) {
        self.responses = responses;
    }

    /// Notes that a received message may be answered to this exchange and subject.
    pub(crate) fn note(&mut self, to: (&[u8], &[u8]), now: Time) {
        // SECURITY LIM-10.
        while self.noted.len() >= OPEN_ANSWERS_MAX
            && let Some((serial, key)) = self.noted.pop_front()
        {
            if self.open.get(&key).is_some_and(|open| open.serial == serial) {
                self.open.remove(&key);
            }
        }
        self.serial += 1;
        let key = key(to);
        self.noted.push_back((self.serial, key.clone()));
        self.open.insert(key, Open { serial: self.serial, since: now, answers: 0 });
    }

    /// Whether an answer to this address is still allowed.
    pub(crate) fn is_open(&self, to: (&[u8], &[u8]), now: Time) -> bool {
        let expires = self.responses.expires;
        let open = self.open.get(&key(to));
        open.is_some_and(|open| expires.is_zero() || now <= open.since.after(expires))
    }

    /// Uses up one answer; false if none is allowed, or it is too late.
    pub(crate) fn spend(&mut self, to: (&[u8], &[u8]), now: Time) -> bool {
        let Responses { count, expires } = self.responses;
        let key = key(to);
        let Some(open) = self.open.get_mut(&key) else { return false };
        let is_late = !expires.is_zero() && now > open.since.after(expires);
        open.answers = open.answers.saturating_add(1);
        if is_late || count > 0 && open.answers >= count {
            self.open.remove(&key);
        }
        !is_late
    }
}

/// Encodes exchange and subject as one key, unambiguously.
fn key((exchange, subject): (&[u8], &[u8])) -> Box<[u8]> {
    [&exchange.len().to_be_bytes(), exchange, subject].concat().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TO: (&[u8], &[u8]) = (b"amq.topic", b"_INBOX.1");

    fn answers(count: u32, seconds: u64) -> OpenAnswers {
        OpenAnswers::new(Responses { count, expires: Duration::from_secs(seconds) })
    }

    #[test]
    fn as_many_answers_are_allowed_as_the_right_says() {
        for (count, expected) in [(1, 1), (2, 2), (0, 5)] {
            let mut open = answers(count, 0);
            assert!(!open.spend(TO, Time(0)), "nothing was received");
            open.note(TO, Time(0));
            let given = (0..5).filter(|_| open.spend(TO, Time(u64::MAX / 2))).count();
            assert_eq!(given, expected);
            open.note(TO, Time(0));
            assert!(open.spend(TO, Time(0)), "each message is answered anew");
            assert!(!open.spend((b"amq.topi", b"c_INBOX.1"), Time(0)));
        }
    }

    #[test]
    fn an_answer_that_is_late_is_none() {
        let mut open = answers(0, 2);
        open.note(TO, Time(1_000_000));
        assert!(open.spend(TO, Time(3_000_000)));
        assert!(!open.spend(TO, Time(3_000_001)));
        assert!(!open.spend(TO, Time(1_000_000)), "it is forgotten");
    }

    // SECURITY LIM-10.
    #[test]
    fn the_oldest_of_too_many_can_no_longer_be_answered() {
        let mut open = answers(1, 0);
        let subject = |number: usize| number.to_string().into_bytes();
        for number in 0..=OPEN_ANSWERS_MAX {
            open.note((b"", &subject(number)), Time(0));
        }
        assert!(!open.spend((b"", &subject(0)), Time(0)));
        assert!(open.spend((b"", &subject(1)), Time(0)));
        assert_eq!(open.open.len(), OPEN_ANSWERS_MAX - 1);
        assert_eq!(open.noted.len(), OPEN_ANSWERS_MAX);
    }
}
