//! A cell's view of the routing table: the table, and a cache of recent routes.
//!
//! An address is cached when it is looked up for the second time: a reply address is used once, and
//! would only evict others. If the last token of a subject does not affect its route, as with a
//! pattern `_INBOX.x.*`, the route is cached under the stem, without that token, and serves all
//! subjects of this stem.

use std::hash::{BuildHasher, Hasher};
use std::mem;
use std::sync::Arc;

use foldhash::fast::FixedState;

use super::header::Headers;
use super::memory::{CachePosition, Entry, Key, Memory};
use super::pattern;
use super::table::{RouteError, Table};
use super::target::Route;
use crate::id::VhostId;
use crate::limits::{ROUTE_CACHE_ENTRIES_MAX, ROUTE_CACHE_TARGETS_MAX};
use crate::name::Name;

/// 2⁶⁴ divided by the golden ratio.
const GOLDEN_STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Places that note a first look-up; enough that two alternating addresses seldom share one.
const ASKED_MAX: usize = ROUTE_CACHE_ENTRIES_MAX * 4;

/// The cached routes of one cell.
#[derive(Debug, Default)]
pub struct Router {
    /// Routes by address.
    addresses: Memory,
    /// Routes by stem, each valid for all subjects that add one token to it.
    stems: Memory,
    /// Bits of the hashes of addresses that were looked up once and are not cached, indexed by
    /// other bits of the hash. Empty until the first look-up.
    asked: Vec<u16>,
    /// Position of [`Router::turn`] on its way around, as a fraction of 2⁶⁴.
    turn: u64,
    /// The last route that was not cached.
    passing: Option<Arc<Route>>,
}

/// The result of [`Router::way`].
#[derive(Debug, Clone, Copy)]
pub struct Way<'r> {
    /// The receivers, shared with the memory of routes.
    pub route: &'r Arc<Route>,
    /// Whether [`Route::address`] is the requested address. Otherwise it may differ in the last
    /// token of the subject.
    pub is_own: bool,
}

impl Router {
    /// A router with an empty cache.
    pub fn new() -> Router {
        Router::default()
    }

    /// Returns the route of a message to `exchange` with `subject`, cached if the table has not
    /// changed.
    ///
    /// The route is borrowed, because counting an `Arc` up and down takes longer than the look-up.
    #[inline]
    pub fn route(
        &mut self,
        table: &Table,
        vhost: VhostId,
        exchange: &[u8],
        subject: &[u8],
        headers: &dyn Headers,
    ) -> Result<&Arc<Route>, RouteError> {
        let key = key(vhost, exchange, subject);
        let place = self.addresses.find(&key);
        match place {
            Some(place) if self.addresses.is_current(place, table.version()) => {
                Ok(self.addresses.route(place))
            }
            _ => {
                let is_known = place.is_some() || self.is_asked_again(key.hash);
                self.look_up(table, &key, place, is_known, headers)
            }
        }
    }

    /// Finds the route of a message to `exchange` with `subject`, as [`Router::route`] does.
    ///
    /// The returned route may belong to another address that leads to the same targets: building a
    /// route that is used once is not worth its cost.
    #[inline]
    pub fn way(
        &mut self,
        table: &Table,
        vhost: VhostId,
        exchange: &[u8],
        subject: &[u8],
        headers: &dyn Headers,
    ) -> Result<Way<'_>, RouteError> {
        let key = key(vhost, exchange, subject);
        let place = self.addresses.find(&key);
        if let Some(place) = place
            && self.addresses.is_current(place, table.version())
        {
            return Ok(Way { route: self.addresses.route(place), is_own: true });
        }
        let is_known = place.is_some() || self.is_asked_again(key.hash);
        if !is_known && let Some(place) = self.find_stem(&key, table.version()) {
            return Ok(Way { route: self.stems.route(place), is_own: false });
        }
        let route = self.look_up(table, &key, place, is_known, headers)?;
        Ok(Way { route, is_own: true })
    }

    /// The index of the group member to try first, below `len`; zero if `len` is.
    ///
    /// All groups share one counter, so it must not correlate with their messages: with two groups
    /// of two, served alternately, a plain count would pick only one member of each. Steps of the
    /// golden ratio visit all members evenly, whichever of the steps a group sees.
    pub fn turn(&mut self, len: usize) -> usize {
        self.turn = self.turn.wrapping_add(GOLDEN_STEP);
        let index = (u128::from(self.turn) * len as u128) >> u64::BITS;
        usize::try_from(index).unwrap_or(0)
    }

    /// Drops the cache, as after a burst of subjects that do not recur.
    pub fn clear(&mut self) {
        *self = Router::default();
    }

    /// Finds the current route of the key's stem, if there is one.
    #[inline(never)]
    fn find_stem(&self, key: &Key<'_>, version: u64) -> Option<CachePosition> {
        pattern::check_bytes(key.subject).ok()?;
        self.stems.find(&stem_of(key)).filter(|place| self.stems.is_current(*place, version))
    }

    /// Looks up the table, and caches the result if the address was asked for before. `old` is the
    /// entry of an older version.
    #[cold]
    fn look_up(
        &mut self,
        table: &Table,
        key: &Key<'_>,
        old: Option<CachePosition>,
        is_known: bool,
        headers: &dyn Headers,
    ) -> Result<&Arc<Route>, RouteError> {
        let old = old.and_then(|place| self.addresses.forget(place));
        let address = old.map(|entry| entry.route.address.clone());
        let route = Arc::new(table.route_known(key.vhost, key.exchange, key.subject, headers, address)?);
        if !route.is_cacheable || route.target_count() > ROUTE_CACHE_TARGETS_MAX {
            return Ok(self.passing.insert(route));
        }
        let (version, vhost, exchange) = (table.version(), key.vhost, route.address.exchange.clone());
        if is_known {
            let subject = route.address.subject.clone();
            return Ok(self.addresses.remember(Entry {
                hash: key.hash,
                version,
                vhost,
                exchange,
                subject,
                route,
            }));
        }
        if !route.asks_last {
            let stem = stem_of(key);
            let old = self.stems.find(&stem).and_then(|place| self.stems.forget(place));
            if old.is_some() || self.is_asked_again(stem.hash) {
                let subject = old.map_or_else(|| Name::new(stem.subject), |entry| entry.subject);
                let route = Arc::clone(&route);
                self.stems.remember(Entry { hash: stem.hash, version, vhost, exchange, subject, route });
            }
        }
        Ok(self.passing.insert(route))
    }

    /// Whether the address was looked up before; notes this look-up.
    fn is_asked_again(&mut self, hash: u64) -> bool {
        if self.asked.is_empty() {
            self.asked.resize(ASKED_MAX, 0);
        }
        let (place, rest) = (hash as usize % ASKED_MAX, (hash >> 48) as u16);
        mem::replace(&mut self.asked[place], rest) == rest
    }
}

#[inline(always)]
fn key<'a>(vhost: VhostId, exchange: &'a [u8], subject: &'a [u8]) -> Key<'a> {
    // A collision costs only a cache miss, so this hash needs no secret.
    let mut hasher = FixedState::default().build_hasher();
    hasher.write_u32(vhost.0);
    if !exchange.is_empty() {
        hasher.write(exchange);
    }
    hasher.write(subject);
    Key { hash: hasher.finish(), vhost, exchange, subject }
}

/// The key of the stem, which all addresses share that differ only in the last token.
#[inline]
fn stem_of<'a>(address: &Key<'a>) -> Key<'a> {
    key(address.vhost, address.exchange, pattern::stem(address.subject))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{ConnectionId, QueueId, Reader, ReaderId};
    use crate::limits::SUBJECT_BYTES_MAX;
    use crate::route::TableLimits;
    use crate::route::arguments::Arguments;
    use crate::route::binding::BindingKey;
    use crate::route::hamt::Seed;
    use crate::route::header::NoHeaders;
    use crate::route::pattern::{PatternError, Syntax};
    use crate::route::target::Target;

    const VHOST: VhostId = VhostId(0);

    fn table() -> Table {
        let mut table = Table::new(Seed(3), TableLimits::default());
        table.add_vhost(VHOST, Name::from("/"));
        table
    }

    fn queue(slot: u32) -> QueueId {
        QueueId { slot, generation: 0 }
    }

    fn route(router: &mut Router, table: &Table, exchange: &str, subject: &str) -> Arc<Route> {
        router.route(table, VHOST, exchange.as_bytes(), subject.as_bytes(), &NoHeaders).unwrap().clone()
    }

    #[test]
    fn an_address_is_remembered_when_it_is_asked_for_again() {
        let (table, mut router) = (table(), Router::new());
        let first = route(&mut router, &table, "amq.topic", "a");
        route(&mut router, &table, "amq.topic", "b");
        let again = route(&mut router, &table, "amq.topic", "a");
        assert!(!Arc::ptr_eq(&first, &again));
        assert!(Arc::ptr_eq(&again, &route(&mut router, &table, "amq.topic", "a")));
        assert_eq!(router.addresses.size().0, 1);
    }

    #[test]
    fn a_route_is_remembered_until_the_table_changes() {
        let mut table = table();
        let mut router = Router::new();
        table.add_queue(VHOST, b"a", queue(1)).unwrap();
        route(&mut router, &table, "", "a");
        let first = route(&mut router, &table, "", "a");
        assert_eq!(first.queues, [queue(1)]);
        assert!(Arc::ptr_eq(&first, &route(&mut router, &table, "", "a")));
        let key = BindingKey::new(Syntax::Amqp, b"a");
        table.bind(VHOST, b"amq.direct", &key, &Arguments::default(), &Target::Queue(queue(1))).unwrap();
        let second = route(&mut router, &table, "", "a");
        assert!(!Arc::ptr_eq(&first, &second));
        assert!(Arc::ptr_eq(&first.address, &second.address));
        assert!(Arc::ptr_eq(&second, &route(&mut router, &table, "", "a")));
    }

    /// The number of targets of an address, and whether the returned route is its own.
    fn way(router: &mut Router, table: &Table, subject: &str) -> (usize, bool) {
        let way = router.way(table, VHOST, b"amq.topic", subject.as_bytes(), &NoHeaders).unwrap();
        (way.route.target_count(), way.is_own)
    }

    fn bind(table: &mut Table, text: &str, slot: u32) {
        let key = BindingKey::new(Syntax::Nats, text.as_bytes());
        table.bind(VHOST, b"amq.topic", &key, &Arguments::default(), &Target::Queue(queue(slot))).unwrap();
    }

    #[test]
    fn addresses_that_come_once_go_the_way_of_those_before() {
        let (mut table, mut router) = (table(), Router::new());
        bind(&mut table, "in.x.*", 1);
        bind(&mut table, "service.x.y", 2);
        for (subject, expected) in [
            ("in.x.1", (1, true)),
            // The second look-up caches the stem.
            ("in.x.2", (1, true)),
            ("in.x.3", (1, false)),
            ("in.x.3", (1, true)),
            ("in.x.3", (1, true)),
            ("in.x.4.5", (0, true)),
            ("in.y.1", (0, true)),
            ("service.x.1", (0, true)),
            ("service.x.2", (0, true)),
            ("service.x.y", (1, true)),
            ("service.x.3", (0, true)),
        ] {
            assert_eq!(way(&mut router, &table, subject), expected, "{subject}");
        }
    }

    #[test]
    fn a_change_of_the_table_is_seen_by_addresses_that_come_once() {
        let (mut table, mut router) = (table(), Router::new());
        bind(&mut table, "in.x.*", 1);
        for number in 0..3 {
            way(&mut router, &table, &format!("in.x.{number}"));
        }
        assert_eq!(way(&mut router, &table, "in.x.3"), (1, false));
        bind(&mut table, "in.*.*", 2);
        assert_eq!(way(&mut router, &table, "in.x.4"), (2, true));
        assert_eq!(way(&mut router, &table, "in.x.5"), (2, false));
        // One literal subject is enough to make the last token matter.
        bind(&mut table, "in.x.y", 3);
        for number in 6..10 {
            assert_eq!(way(&mut router, &table, &format!("in.x.{number}")), (2, true));
        }
        assert_eq!(way(&mut router, &table, "in.x.y"), (3, true));
    }

    #[test]
    fn a_subject_that_is_too_long_is_refused_whatever_is_remembered() {
        let (mut table, mut router) = (table(), Router::new());
        bind(&mut table, "in.*", 1);
        for number in 0..3 {
            way(&mut router, &table, &format!("in.{number}"));
        }
        let subject = format!("in.{}", "1".repeat(SUBJECT_BYTES_MAX - 3));
        assert_eq!(way(&mut router, &table, &subject), (1, false));
        let found = router.way(&table, VHOST, b"amq.topic", (subject + "1").as_bytes(), &NoHeaders);
        let bytes = SUBJECT_BYTES_MAX + 1;
        assert_eq!(found.unwrap_err(), RouteError::Pattern(PatternError::TooLong { bytes }));
    }

    #[test]
    fn addresses_with_the_same_letters_are_told_apart() {
        let mut table = table();
        let mut router = Router::new();
        table.add_vhost(VhostId(1), Name::from("other"));
        table.declare_exchange(VHOST, b"a", crate::route::ExchangeKind::Fanout, Default::default()).unwrap();
        table.declare_exchange(VHOST, b"ab", crate::route::ExchangeKind::Fanout, Default::default()).unwrap();
        for _ in 0..2 {
            assert_eq!(route(&mut router, &table, "a", "bc").address.exchange, Name::from("a"));
            assert_eq!(route(&mut router, &table, "ab", "c").address.exchange, Name::from("ab"));
            let other = router.route(&table, VhostId(1), b"a", b"bc", &NoHeaders);
            assert_eq!(other.unwrap_err(), RouteError::NoExchange(Name::from("a")));
        }
    }

    #[test]
    fn many_addresses_stay_right_and_bounded() {
        let mut table = table();
        let mut router = Router::new();
        for number in 0..3000 {
            table.add_queue(VHOST, format!("q{number}").as_bytes(), queue(number)).unwrap();
        }
        for _ in 0..4 {
            for number in 0..3000 {
                let found = route(&mut router, &table, "", &format!("q{number}"));
                assert_eq!(found.queues, [queue(number)]);
            }
        }
        let (entries, targets) = router.addresses.size();
        assert!((2000..=ROUTE_CACHE_ENTRIES_MAX).contains(&entries), "{entries}");
        assert_eq!(targets, entries);
    }

    #[test]
    fn an_address_in_use_outlives_those_that_come_once() {
        let mut table = table();
        let mut router = Router::new();
        table.add_queue(VHOST, b"kept", queue(1)).unwrap();
        route(&mut router, &table, "", "kept");
        let kept = route(&mut router, &table, "", "kept");
        for number in 0..5000 {
            route(&mut router, &table, "", &format!("once{number}"));
            assert!(Arc::ptr_eq(&kept, &route(&mut router, &table, "", "kept")));
        }
    }

    #[test]
    fn members_are_asked_evenly_whoever_else_is() {
        for (groups, members) in [(1, 1), (1, 2), (1, 5), (2, 2), (3, 3), (4, 2), (2, 7), (10, 10)] {
            let mut router = Router::new();
            let mut asked = vec![0; members];
            for message in 0..groups * members * 100 {
                let index = router.turn(members);
                if message % groups == 0 {
                    asked[index] += 1;
                }
            }
            let (least, most) = (asked.iter().min().unwrap(), asked.iter().max().unwrap());
            assert!(most - least <= 10, "one of {groups} groups of {members}: {asked:?}");
        }
        assert_eq!(Router::new().turn(0), 0);
    }

    #[test]
    fn a_few_wide_routes_do_not_fill_the_memory() {
        let mut table = table();
        let mut router = Router::new();
        let key = BindingKey::new(Syntax::Nats, b">");
        let connection = ConnectionId { cell: 0, slot: 0, generation: 0 };
        let readers: u32 = 20_000;
        for slot in 0..readers {
            let reader = Reader { connection, id: ReaderId { slot, generation: 0 } };
            let target = Target::Subscription(reader);
            table.bind(VHOST, b"amq.topic", &key, &Arguments::default(), &target).unwrap();
        }
        for number in 0..200 {
            let found = route(&mut router, &table, "amq.topic", &format!("s{number}"));
            assert_eq!(found.subscriptions.len(), readers as usize);
            assert!(router.addresses.size().1 <= ROUTE_CACHE_TARGETS_MAX);
        }
    }
}
