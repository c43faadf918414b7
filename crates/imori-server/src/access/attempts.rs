//! Wrong logins by source and by user, so that nobody can try passwords without end (SECURITY AUTH-09).

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::Mutex;
use std::time::Instant;

use crate::limits::{LOGIN_ATTEMPT_EVERY, LOGIN_ATTEMPTS_BURST, LOGIN_ATTEMPTS_KNOWN_MAX};
use crate::slots::unpoisoned;

/// Sources and users that failed lately.
#[derive(Debug, Default)]
pub(super) struct Attempts {
    of_sources: Mutex<Failures<IpAddr>>,
    of_users: Mutex<Failures<String>>,
}

/// For each key, until when its failures count.
#[derive(Debug)]
struct Failures<K>(HashMap<K, Instant>);

impl<K> Default for Failures<K> {
    fn default() -> Failures<K> {
        Failures(HashMap::new())
    }
}

impl<K: Hash + Eq> Failures<K> {
    fn is_over(&self, key: &K, now: Instant) -> bool {
        let debt = self.0.get(key).map(|until| until.saturating_duration_since(now));
        debt.is_some_and(|debt| debt >= LOGIN_ATTEMPT_EVERY * LOGIN_ATTEMPTS_BURST)
    }

    fn note(&mut self, key: K, now: Instant) {
        if self.0.len() >= LOGIN_ATTEMPTS_KNOWN_MAX {
            self.0.retain(|_, until| *until > now);
        }
        // With more names than that the slow hash and its few threads are the limit.
        if self.0.len() < LOGIN_ATTEMPTS_KNOWN_MAX || self.0.contains_key(&key) {
            let until = self.0.entry(key).or_insert(now);
            *until = (*until).max(now) + LOGIN_ATTEMPT_EVERY;
        }
    }
}

impl Attempts {
    /// Says that the source, or the user, has failed so often that no further password is checked for a while.
    pub(super) fn is_over(&self, source: Option<IpAddr>, user: &str, now: Instant) -> bool {
        self.is_source_over(source, now) || unpoisoned(self.of_users.lock()).is_over(&user.to_owned(), now)
    }

    /// Says that the source has failed so often that nothing more of it is checked for a while.
    pub(super) fn is_source_over(&self, source: Option<IpAddr>, now: Instant) -> bool {
        source.is_some_and(|source| unpoisoned(self.of_sources.lock()).is_over(&source, now))
    }

    /// Notes a wrong login that names no user.
    pub(super) fn note_source(&self, source: Option<IpAddr>, now: Instant) {
        source.into_iter().for_each(|source| unpoisoned(self.of_sources.lock()).note(source, now));
    }

    /// Notes a wrong login.
    pub(super) fn note(&self, source: Option<IpAddr>, user: &str, now: Instant) {
        self.note_source(source, now);
        unpoisoned(self.of_users.lock()).note(user.to_owned(), now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SECURITY AUTH-09.
    #[test]
    fn a_burst_of_wrong_passwords_is_the_last_for_a_while() {
        let (attempts, start) = (Attempts::default(), Instant::now());
        let source = Some(IpAddr::from([192, 0, 2, 1]));
        for _ in 0..LOGIN_ATTEMPTS_BURST {
            assert!(!attempts.is_over(source, "eve", start));
            attempts.note(source, "eve", start);
        }
        assert!(attempts.is_over(source, "eve", start));
        assert!(attempts.is_over(source, "adam", start), "of the same source");
        assert!(attempts.is_over(None, "eve", start), "the same user from elsewhere");
        assert!(!attempts.is_over(Some(IpAddr::from([192, 0, 2, 2])), "adam", start));
        assert!(!attempts.is_over(source, "eve", start + LOGIN_ATTEMPT_EVERY), "one more after a pause");
    }

    #[test]
    fn names_are_not_remembered_without_end() {
        let (attempts, start) = (Attempts::default(), Instant::now());
        for number in 0..2 * LOGIN_ATTEMPTS_KNOWN_MAX {
            attempts.note(None, &number.to_string(), start);
        }
        assert_eq!(unpoisoned(attempts.of_users.lock()).0.len(), LOGIN_ATTEMPTS_KNOWN_MAX);
        attempts.note(None, "later", start + LOGIN_ATTEMPT_EVERY);
        assert_eq!(unpoisoned(attempts.of_users.lock()).0.len(), 1, "those whose time is over are forgotten");
    }
}
