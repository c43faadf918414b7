//! Limits wrong logins by source and user. A client cannot try passwords without end, and a stranger's guesses do not
//! lock a user out (SECURITY AUTH-09).
//!
//! Three limits apply before every comparison: one for each pair of source and user, and far higher ones for each
//! source and for each user. The higher ones exempt sources that have logged in as the user.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, Hash, RandomState};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::limits::{
    LOGIN_ATTEMPT_EVERY, LOGIN_ATTEMPTS_BURST, LOGIN_ATTEMPTS_KNOWN_MAX, LOGIN_OWNER_MAX,
    LOGIN_TOTAL_ATTEMPT_EVERY, LOGIN_TOTAL_ATTEMPTS_BURST,
};
use crate::slots::unpoisoned;

/// A user name, hashed under a key of this process because strangers choose names, which may be long.
type UserHash = u64;

/// A source and the user that it claims to be.
type Pair = (IpAddr, UserHash);

/// Recent failures of sources and users, and the sources from which users have logged in.
#[derive(Debug)]
pub(super) struct Attempts {
    of_pairs: Mutex<Failures<Pair>>,
    of_sources: Mutex<Failures<IpAddr>>,
    of_users: Mutex<Failures<UserHash>>,
    user_hashes: RandomState,
    owners: Mutex<HashMap<Pair, Instant>>,
}

/// For each key, the time until which its failures count. Each failure adds `every`.
#[derive(Debug)]
struct Failures<K> {
    until: HashMap<K, Instant>,
    every: Duration,
    burst: u32,
}

impl<K: Hash + Eq + Copy> Failures<K> {
    fn new(every: Duration, burst: u32) -> Failures<K> {
        Failures { until: HashMap::new(), every, burst }
    }

    fn is_over(&self, key: &K, now: Instant) -> bool {
        let debt = self.until.get(key).map(|until| until.saturating_duration_since(now));
        debt.is_some_and(|debt| debt >= self.every * self.burst)
    }

    fn note(&mut self, key: K, now: Instant) {
        make_room(&mut self.until, &key, |until| *until <= now);
        let until = self.until.entry(key).or_insert(now);
        *until = (*until).max(now) + self.every;
    }
}

/// Makes room for a key in a full table: removes expired entries, or if none are, the one that expires first and so has
/// failed the least.
fn make_room<K: Hash + Eq + Copy>(
    table: &mut HashMap<K, Instant>,
    key: &K,
    is_over: impl Fn(&Instant) -> bool,
) {
    if table.len() < LOGIN_ATTEMPTS_KNOWN_MAX || table.contains_key(key) {
        return;
    }
    table.retain(|_, at| !is_over(at));
    if table.len() >= LOGIN_ATTEMPTS_KNOWN_MAX
        && let Some(first) = table.iter().min_by_key(|(_, at)| **at).map(|(key, _)| *key)
    {
        table.remove(&first);
    }
}

/// The address that counts as one source: of an IPv6 address its /64, because one client has all of that.
fn network(source: IpAddr) -> IpAddr {
    match source.to_canonical() {
        IpAddr::V6(address) => IpAddr::from(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        address => address,
    }
}

impl Attempts {
    pub(super) fn new() -> Attempts {
        let total = (LOGIN_TOTAL_ATTEMPT_EVERY, LOGIN_TOTAL_ATTEMPTS_BURST);
        Attempts {
            of_pairs: Mutex::new(Failures::new(LOGIN_ATTEMPT_EVERY, LOGIN_ATTEMPTS_BURST)),
            of_sources: Mutex::new(Failures::new(total.0, total.1)),
            of_users: Mutex::new(Failures::new(total.0, total.1)),
            user_hashes: RandomState::new(),
            owners: Mutex::default(),
        }
    }

    fn pair(&self, source: Option<IpAddr>, user: &str) -> Pair {
        let source = source.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), network);
        (source, self.user_hashes.hash_one(user))
    }

    /// Tells whether logins as this user from this source are refused unchecked for now.
    pub(super) fn is_over(&self, source: Option<IpAddr>, user: &str, now: Instant) -> bool {
        let pair = self.pair(source, user);
        if unpoisoned(self.of_pairs.lock()).is_over(&pair, now) {
            return true;
        }
        let is_total_over =
            self.is_source_over(source, now) || unpoisoned(self.of_users.lock()).is_over(&pair.1, now);
        is_total_over && !self.is_owner(&pair, now)
    }

    /// Tells whether the source has failed so often, with any user, that logins of strangers are refused unchecked for
    /// now.
    pub(super) fn is_source_over(&self, source: Option<IpAddr>, now: Instant) -> bool {
        // A proxy on this machine gives all its clients a loopback address.
        let source = source.map(network).filter(|source| !source.is_loopback());
        source.is_some_and(|source| unpoisoned(self.of_sources.lock()).is_over(&source, now))
    }

    /// Tells whether this source has recently logged in as the user.
    fn is_owner(&self, pair: &Pair, now: Instant) -> bool {
        let owners = unpoisoned(self.owners.lock());
        owners.get(pair).is_some_and(|at| now.saturating_duration_since(*at) < LOGIN_OWNER_MAX)
    }

    /// Notes a wrong login.
    pub(super) fn note(&self, source: Option<IpAddr>, user: &str, now: Instant) {
        let pair = self.pair(source, user);
        unpoisoned(self.of_users.lock()).note(pair.1, now);
        self.note_source(source, now);
        unpoisoned(self.of_pairs.lock()).note(pair, now);
    }

    /// Notes a wrong login that names no user.
    pub(super) fn note_source(&self, source: Option<IpAddr>, now: Instant) {
        source.into_iter().for_each(|source| unpoisoned(self.of_sources.lock()).note(network(source), now));
    }

    /// Notes a correct login.
    pub(super) fn note_owner(&self, source: Option<IpAddr>, user: &str, now: Instant) {
        let (pair, mut owners) = (self.pair(source, user), unpoisoned(self.owners.lock()));
        make_room(&mut owners, &pair, |at| now.saturating_duration_since(*at) >= LOGIN_OWNER_MAX);
        owners.insert(pair, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(last: u8) -> Option<IpAddr> {
        Some(IpAddr::from([192, 0, 2, last]))
    }

    /// SECURITY AUTH-09.
    #[test]
    fn a_burst_of_wrong_passwords_is_the_last_for_a_while() {
        let (attempts, start) = (Attempts::new(), Instant::now());
        for _ in 0..LOGIN_ATTEMPTS_BURST {
            assert!(!attempts.is_over(at(1), "eve", start));
            attempts.note(at(1), "eve", start);
        }
        assert!(attempts.is_over(at(1), "eve", start));
        assert!(!attempts.is_over(at(1), "adam", start), "another user of the same source");
        assert!(!attempts.is_over(at(2), "eve", start), "the same user from elsewhere");
        assert!(!attempts.is_over(at(1), "eve", start + LOGIN_ATTEMPT_EVERY), "one more after a pause");
    }

    /// SECURITY AUTH-09: a guesser may use many names or many addresses, and an owner is known by its address.
    #[test]
    fn all_guesses_of_a_source_and_at_a_user_shut_out_strangers_alone() {
        let (attempts, start) = (Attempts::new(), Instant::now());
        attempts.note_owner(at(1), "owner", start);
        for number in 0..LOGIN_TOTAL_ATTEMPTS_BURST {
            attempts.note(at(1), &format!("guess-{number}"), start);
            let elsewhere = IpAddr::from(Ipv4Addr::from_bits(0x0a00_0000 + number));
            attempts.note(Some(elsewhere), "owner", start);
        }
        assert!(attempts.is_over(at(1), "stranger", start), "the source");
        assert!(attempts.is_over(at(2), "owner", start), "the user from where it never was");
        assert!(!attempts.is_over(at(1), "owner", start), "the user from where it was");
        assert!(!attempts.is_over(at(3), "other", start));
        let later = start + LOGIN_OWNER_MAX;
        attempts.note_owner(at(1), "other", later);
        assert!(
            !attempts.is_owner(&attempts.pair(at(1), "owner"), later),
            "after an hour it is a stranger again"
        );
    }

    #[test]
    fn a_network_of_ipv6_is_one_source() {
        let (attempts, start) = (Attempts::new(), Instant::now());
        let host = |text: &str| Some(text.parse().unwrap());
        for number in 0..LOGIN_ATTEMPTS_BURST {
            attempts.note(host(&format!("2001:db8::{number}")), "eve", start);
        }
        assert!(attempts.is_over(host("2001:db8::ffff"), "eve", start));
        assert!(!attempts.is_over(host("2001:db8:0:1::1"), "eve", start));
        assert!(!attempts.is_over(host("::ffff:192.0.2.1"), "eve", start));
    }

    #[test]
    fn a_full_table_forgets_who_failed_the_least() {
        let (attempts, start) = (Attempts::new(), Instant::now());
        for _ in 0..LOGIN_ATTEMPTS_BURST {
            attempts.note(at(1), "eve", start);
        }
        for number in 0..2 * LOGIN_ATTEMPTS_KNOWN_MAX {
            attempts.note(at(2), &number.to_string(), start);
            attempts.note_owner(at(3), &number.to_string(), start);
        }
        assert!(attempts.is_over(at(1), "eve", start));
        assert_eq!(unpoisoned(attempts.of_pairs.lock()).until.len(), LOGIN_ATTEMPTS_KNOWN_MAX);
        assert_eq!(unpoisoned(attempts.owners.lock()).len(), LOGIN_ATTEMPTS_KNOWN_MAX);
        attempts.note(None, "later", start + LOGIN_ATTEMPT_EVERY * (LOGIN_ATTEMPTS_BURST + 1));
        assert_eq!(
            unpoisoned(attempts.of_pairs.lock()).until.len(),
            1,
            "those whose time is over are forgotten"
        );
    }
}
