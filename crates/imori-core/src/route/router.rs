//! The view of the routing table that a cell has: the table, and the routes found lately.
//!
//! An address is remembered when it is asked for the second time: the address of a reply is used once, and would only
//! drive others out. Where the last token of a subject has no part in its route, as behind `_INBOX.x.*`, the route is
//! remembered without that token. It then serves all subjects that differ in nothing else.

use std::hash::{BuildHasher, Hasher};
use std::mem;
use std::sync::Arc;

use foldhash::fast::FixedState;

use super::header::Headers;
use super::memory::{Entry, Key, Memory, Place};
use super::pattern;
use super::table::{RouteError, Table};
use super::target::Route;
use crate::id::VhostId;
use crate::limits::{ROUTE_CACHE_ENTRIES_MAX, ROUTE_CACHE_TARGETS_MAX};
use crate::name::Name;

/// The golden ratio's part of all that a word can count.
const GOLDEN_STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Places that note the first request for an address. There are so many that two addresses in turn seldom share one.
const ASKED_MAX: usize = ROUTE_CACHE_ENTRIES_MAX * 4;

/// The routes that one cell remembers.
#[derive(Debug, Default)]
pub struct Router {
    /// Routes of single addresses.
    addresses: Memory,
    /// Routes of all addresses that have the same beginning, up to the last dot, and one token more.
    stems: Memory,
    /// Parts of the hashes of addresses that were asked for once and are not remembered. Another part of the hash is
    /// the index. Empty until the first.
    asked: Vec<u16>,
    /// Where `turn` is on its way round, as a fraction of all that a word can count.
    turn: u64,
    /// The last route that was not remembered.
    passing: Option<Arc<Route>>,
}

/// A route that was found for an address.
#[derive(Debug, Clone, Copy)]
pub struct Way<'r> {
    /// The route.
    pub route: &'r Arc<Route>,
    /// Whether the address that stands in it is the one asked for. If not, it is one that differs in the
    /// last token of the subject.
    pub is_own: bool,
}

impl Router {
    /// A router that remembers nothing yet.
    pub fn new() -> Router {
        Router::default()
    }

    /// The route of a message to `exchange` with `subject`, from memory if the table is the same.
    ///
    /// It lends the route, because counting one owner up and down takes longer than the look-up.
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
    /// The returned route may belong to another address that leads to the same targets: a route that is asked for
    /// once is not worth making.
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

    /// The member of a group of `len` to ask first: an index below `len`, or zero.
    ///
    /// All groups share one count, so it must not beat with their messages: of two groups of two, served alternately,
    /// a plain count would ask but one member each. Steps of the golden ratio visit all members evenly whichever of
    /// the steps a group sees.
    pub fn turn(&mut self, len: usize) -> usize {
        self.turn = self.turn.wrapping_add(GOLDEN_STEP);
        let index = (u128::from(self.turn) * len as u128) >> u64::BITS;
        usize::try_from(index).unwrap_or(0)
    }

    /// Forgets everything, as after a burst of subjects that do not come again.
    pub fn clear(&mut self) {
        *self = Router::default();
    }

    /// Where the route is of all addresses with this beginning, if they have one.
    #[inline(never)]
    fn find_stem(&self, key: &Key<'_>, version: u64) -> Option<Place> {
        pattern::check_bytes(key.subject).ok()?;
        self.stems.find(&stem_of(key)).filter(|place| self.stems.is_current(*place, version))
    }

    /// Asks the table, and remembers its answer for an address that is known. `old` is the index of the answer of an
    /// older version.
    #[cold]
    fn look_up(
        &mut self,
        table: &Table,
        key: &Key<'_>,
        old: Option<Place>,
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

    /// Tells whether the address was asked for before, and notes that it was.
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
    // Names that collide cost a miss and nothing more, so this hash needs no secret.
    let mut hasher = FixedState::default().build_hasher();
    hasher.write_u32(vhost.0);
    if !exchange.is_empty() {
        hasher.write(exchange);
    }
    hasher.write(subject);
    Key { hash: hasher.finish(), vhost, exchange, subject }
}

/// The key of all addresses that differ from this one in the last token at most.
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

    /// The targets of an address, and whether the route that was found is its own.
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
            // Asked for a second time, the beginning is remembered.
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
        // One subject is enough for the last token to be asked for.
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
