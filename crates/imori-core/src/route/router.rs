//! What each cell looks routes up with: the table, and the routes it found lately.
//!
//! A remembered route holds for one version of the table. There are two places for an address;
//! a new one takes that which was used less lately. An address is remembered when it is asked for
//! the second time: that of a reply is used once, and would only drive others out.

use std::hash::{BuildHasher, Hasher};
use std::mem;
use std::sync::Arc;

use foldhash::fast::FixedState;

use super::header::Headers;
use super::table::{RouteError, Table};
use super::target::Route;
use crate::id::VhostId;
use crate::limits::{ROUTE_CACHE_ENTRIES_MAX, ROUTE_CACHE_TARGETS_MAX};
use crate::message::Address;
use crate::name::Name;

/// The golden ratio's part of all that a word can count.
const GOLDEN_STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Sets of two places that a router begins with.
const SETS_MIN: usize = 16;
const SETS_MAX: usize = ROUTE_CACHE_ENTRIES_MAX / 2;

/// Addresses whose first asking is noted. So many more than are remembered, that two that are asked for in turn
/// seldom share a place.
const ASKED_MAX: usize = ROUTE_CACHE_ENTRIES_MAX * 4;

/// The routes that one cell remembers.
#[derive(Debug, Default)]
pub struct Router {
    /// Empty until the first route; its length is a power of two.
    sets: Vec<Set>,
    /// Of addresses that were asked for and not remembered, a part of the hash at the place that another part
    /// chooses. Empty until the first.
    asked: Vec<u16>,
    /// Targets in all remembered routes.
    targets: usize,
    /// Where `turn` is on its way round, as a fraction of all that a word can count.
    turn: u64,
    /// The last route that was not remembered.
    passing: Option<Arc<Route>>,
}

/// Two places, one of which an address can take.
#[derive(Debug, Default)]
struct Set {
    places: [Option<Entry>; 2],
    /// The place that was used last.
    recent: usize,
}

#[derive(Debug)]
struct Entry {
    hash: u64,
    version: u64,
    vhost: VhostId,
    // Those of the route's address, here to be compared without going there.
    exchange: Name,
    subject: Name,
    route: Arc<Route>,
}

impl Router {
    /// A router that remembers nothing yet.
    pub fn new() -> Router {
        Router::default()
    }

    /// Where a message to `exchange` with `subject` goes, from memory if the table is the same.
    ///
    /// It lends the route, because counting one owner up and down takes longer than the look-up.
    pub fn route(
        &mut self,
        table: &Table,
        vhost: VhostId,
        exchange: &[u8],
        subject: &[u8],
        headers: &dyn Headers,
    ) -> Result<&Arc<Route>, RouteError> {
        let hash = address_hash(vhost, exchange, subject);
        let index = self.index(hash);
        let place = self.sets.get(index).and_then(|set| set.find(hash, vhost, exchange, subject));
        if let Some(place) = place
            && self.is_current(index, place, table.version())
        {
            let set = &mut self.sets[index];
            set.recent = place;
            return Ok(&set.places[place].as_ref().expect("it was found there").route);
        }
        let old = place.and_then(|place| self.forget(index, place));
        let address = old.map(|entry| entry.route.address.clone());
        let is_known = address.is_some() || self.is_asked_again(hash);
        let route = Arc::new(table.route_known(vhost, exchange, subject, headers, address)?);
        if !is_known || !route.is_cacheable || route.target_count() > ROUTE_CACHE_TARGETS_MAX {
            return Ok(self.passing.insert(route));
        }
        let Address { exchange, subject } = Address::clone(&route.address);
        Ok(self.remember(Entry { hash, version: table.version(), vhost, exchange, subject, route }))
    }

    /// Who of a group of `len` is first to be asked: an index below `len`, or zero.
    ///
    /// All groups share one count, so it must not beat with their messages: of two groups of two,
    /// served alternately, a plain count would ask but one member each. Steps of the golden ratio
    /// visit all members evenly whichever of the steps a group sees.
    pub fn turn(&mut self, len: usize) -> usize {
        self.turn = self.turn.wrapping_add(GOLDEN_STEP);
        let index = (u128::from(self.turn) * len as u128) >> u64::BITS;
        usize::try_from(index).unwrap_or(0)
    }

    /// Forgets everything, as after a burst of subjects that do not come again.
    pub fn clear(&mut self) {
        *self = Router::default();
    }

    /// Tells whether the address was asked for before, and notes that it was.
    fn is_asked_again(&mut self, hash: u64) -> bool {
        if self.asked.is_empty() {
            self.asked.resize(ASKED_MAX, 0);
        }
        let (place, rest) = (hash as usize % ASKED_MAX, (hash >> 48) as u16);
        mem::replace(&mut self.asked[place], rest) == rest
    }

    fn index(&self, hash: u64) -> usize {
        // The mask keeps the index below the length, so cutting the hash loses nothing.
        hash as usize & self.sets.len().wrapping_sub(1)
    }

    fn is_current(&self, index: usize, place: usize, version: u64) -> bool {
        self.sets[index].places[place].as_ref().is_some_and(|entry| entry.version == version)
    }

    fn forget(&mut self, index: usize, place: usize) -> Option<Entry> {
        let entry = self.sets[index].places[place].take()?;
        self.targets -= entry.route.target_count();
        Some(entry)
    }

    fn remember(&mut self, entry: Entry) -> &Arc<Route> {
        if self.targets + entry.route.target_count() > ROUTE_CACHE_TARGETS_MAX {
            self.clear();
        }
        if self.sets.is_empty() {
            self.sets.resize_with(SETS_MIN, Set::default);
        }
        let index = self.index(entry.hash);
        // Places that hold routes of an older table are as good as free.
        if self.sets.len() < SETS_MAX && (0..2).all(|place| self.is_current(index, place, entry.version)) {
            self.grow();
        }
        self.put(entry)
    }

    /// Doubles the sets: the addresses in use do not fit beside each other.
    fn grow(&mut self) {
        let len = self.sets.len() * 2;
        let old = mem::take(&mut self.sets);
        self.sets.resize_with(len, Set::default);
        self.targets = 0;
        for mut set in old {
            // The one used last comes last, and so is again the one used last.
            set.places.rotate_left((set.recent + 1) % 2);
            for entry in set.places.into_iter().flatten() {
                self.put(entry);
            }
        }
    }

    /// Puts an entry into a free place of its set, or else into that used less lately.
    fn put(&mut self, entry: Entry) -> &Arc<Route> {
        let index = self.index(entry.hash);
        self.targets += entry.route.target_count();
        let set = &self.sets[index];
        let place = set.places.iter().position(Option::is_none).unwrap_or(1 - set.recent);
        self.forget(index, place);
        let set = &mut self.sets[index];
        set.recent = place;
        &set.places[place].insert(entry).route
    }
}

impl Set {
    fn find(&self, hash: u64, vhost: VhostId, exchange: &[u8], subject: &[u8]) -> Option<usize> {
        self.places.iter().position(|place| {
            place.as_ref().is_some_and(|entry| {
                entry.hash == hash
                    && entry.vhost == vhost
                    && is_equal(&entry.subject, subject)
                    && is_equal(&entry.exchange, exchange)
            })
        })
    }
}

/// Comparing no bytes takes 20 ns where an empty slice points nowhere and the C library reads it
/// with a mask, and the default exchange's name is empty.
fn is_equal(name: &Name, bytes: &[u8]) -> bool {
    let name = name.as_bytes();
    name.len() == bytes.len() && (name.is_empty() || name == bytes)
}

fn address_hash(vhost: VhostId, exchange: &[u8], subject: &[u8]) -> u64 {
    // Names that collide cost a miss and nothing more, so this hash needs no secret.
    let mut hasher = FixedState::default().build_hasher();
    hasher.write_u32(vhost.0);
    hasher.write(exchange);
    hasher.write(subject);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{ConnectionId, QueueId, Reader, ReaderId};
    use crate::route::TableLimits;
    use crate::route::binding::{Arguments, BindingKey};
    use crate::route::hamt::Seed;
    use crate::route::header::NoHeaders;
    use crate::route::pattern::Syntax;
    use crate::route::target::Target;

    const VHOST: VhostId = VhostId(0);

    fn table() -> Table {
        let mut table = Table::new(Seed(3), TableLimits::default());
        table.add_vhost(VHOST);
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
        assert_eq!(router.sets.iter().flat_map(|set| &set.places).flatten().count(), 1);
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

    #[test]
    fn addresses_with_the_same_letters_are_told_apart() {
        let mut table = table();
        let mut router = Router::new();
        table.add_vhost(VhostId(1));
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
        let entries = router.sets.iter().flat_map(|set| &set.places).flatten().count();
        assert!((2000..=ROUTE_CACHE_ENTRIES_MAX).contains(&entries), "{entries}");
        assert_eq!(router.targets, entries);
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
            assert!(router.targets <= ROUTE_CACHE_TARGETS_MAX);
        }
    }
}
