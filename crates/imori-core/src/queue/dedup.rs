//! De-duplication: the ids of recent messages, which a queue does not take twice.
//!
//! An id counts from the time when its message was accepted, whatever happened to the message since. Each id
//! has the number of the record that restores it after a crash: first its message's record, later a record of
//! ids alone.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::mem::size_of;
use std::sync::Arc;
use std::time::Duration;

use crate::confirm::Lsn;
use crate::delivery::DedupEntry;
use crate::memory::Gauge;
use crate::time::Time;

/// Bytes that an id costs beside its text: entries in two trees with nodes two thirds full, and in a queue,
/// plus two reference counts and the allocator's rounding.
const ID_CHARGE: usize =
    (size_of::<(Id, Time, Lsn, u64)>() + size_of::<(Lsn, Id)>()) * 3 / 2 + size_of::<Id>() + 32;

type Id = Arc<[u8]>;

/// The ids of one window of time.
#[derive(Debug)]
pub struct Dedup {
    window: Duration,
    /// Limit of the bytes charged for the ids.
    bytes_max: usize,
    /// When each id's message was accepted, the record that restores the id, and the message's sequence number.
    ids: BTreeMap<Id, (Time, Lsn, u64)>,
    /// In the order of arrival.
    by_age: VecDeque<Id>,
    /// The ids that have a record, by record.
    by_record: BTreeSet<(Lsn, Id)>,
    charged: usize,
    gauge: Gauge,
}

impl Dedup {
    /// Creates an empty window of this length.
    pub(crate) fn new(window: Duration, bytes_max: usize, gauge: Gauge) -> Dedup {
        let (ids, by_age, by_record) = (BTreeMap::new(), VecDeque::new(), BTreeSet::new());
        Dedup { window, bytes_max, ids, by_age, by_record, charged: 0, gauge }
    }

    /// The record that restores this id, if a message with it was accepted within the window; [`Lsn::NONE`]
    /// if the id is kept in memory only.
    pub fn find(&mut self, id: &[u8], now: Time) -> Option<Lsn> {
        self.forget_old(now);
        self.ids.get(id).map(|(_, lsn, _)| *lsn)
    }

    /// The sequence number of the message with this id; 0 if it is not known.
    pub(crate) fn sequence_of(&self, id: &[u8]) -> u64 {
        self.ids.get(id).map_or(0, |(_, _, sequence)| *sequence)
    }

    /// Notes that a message was accepted. For a known id the first time and the last record count. Beyond the
    /// limit the oldest ids are forgotten.
    pub fn note(&mut self, id: &[u8], time: Time, lsn: Lsn) {
        self.note_at(id, time, lsn, 0);
    }

    /// Notes an accepted message as [`Dedup::note`] does, with its sequence number.
    pub(crate) fn note_at(&mut self, id: &[u8], time: Time, lsn: Lsn, sequence: u64) {
        if let Some(known) = self.ids.get(id).map(|(_, known, _)| *known) {
            if lsn > known {
                self.set_record(id, lsn);
            }
            return;
        }
        let id = Id::from(id);
        self.charged += charge(&id);
        self.gauge.add(charge(&id));
        self.ids.insert(Arc::clone(&id), (time, lsn, sequence));
        if lsn != Lsn::NONE {
            self.by_record.insert((lsn, Arc::clone(&id)));
        }
        self.by_age.push_back(id);
        while self.charged > self.bytes_max && self.by_age.len() > 1 {
            self.forget_oldest();
        }
    }

    /// The lowest record that the ids need; the journal may drop the records below.
    pub fn floor(&mut self, now: Time) -> Option<Lsn> {
        self.forget_old(now);
        self.by_record.first().map(|(lsn, _)| *lsn)
    }

    /// Ids with a record below `floor`, up to about `bytes_max` bytes. Recording them anew lets the journal
    /// be freed up to there.
    pub fn below(&mut self, floor: Lsn, bytes_max: usize, now: Time) -> Vec<DedupEntry> {
        self.forget_old(now);
        let mut bytes = 0;
        let below = self.by_record.iter().take_while(|(lsn, id)| {
            let has_room = bytes < bytes_max;
            bytes += id.len();
            has_room && *lsn < floor
        });
        below.filter_map(|(_, id)| self.ids.get_key_value(id)).map(entry).collect()
    }

    /// Notes that this record restores these ids from now on.
    pub fn renew(&mut self, seen: &[DedupEntry], lsn: Lsn) {
        seen.iter().for_each(|seen| self.set_record(&seen.id, lsn));
    }

    /// The ids of the window that have a record, sorted.
    pub(crate) fn recorded(&self, now: Time) -> Vec<DedupEntry> {
        let counts = |(time, lsn): (Time, Lsn)| lsn != Lsn::NONE && time.after(self.window) > now;
        self.ids.iter().filter(|(_, (time, lsn, _))| counts((*time, *lsn))).map(entry).collect()
    }

    /// When the last id is forgotten.
    pub(crate) fn end(&self) -> Option<Time> {
        let (time, ..) = self.ids.get(self.by_age.back()?)?;
        Some(time.after(self.window)).filter(|end| *end < Time::NEVER)
    }

    pub(crate) fn forget_old(&mut self, now: Time) {
        while let Some((time, ..)) = self.by_age.front().and_then(|id| self.ids.get(id))
            && time.after(self.window) <= now
        {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        let Some(id) = self.by_age.pop_front() else { return };
        if let Some((_, lsn, _)) = self.ids.remove(&id) {
            self.by_record.remove(&(lsn, Arc::clone(&id)));
        }
        self.charged -= charge(&id);
        self.gauge.sub(charge(&id));
    }

    fn set_record(&mut self, id: &[u8], lsn: Lsn) {
        let Some((id, (time, known, sequence))) = self.ids.get_key_value(id) else { return };
        let (id, time, known, sequence) = (Arc::clone(id), *time, *known, *sequence);
        self.by_record.remove(&(known, Arc::clone(&id)));
        self.by_record.insert((lsn, Arc::clone(&id)));
        self.ids.insert(id, (time, lsn, sequence));
    }
}

impl Drop for Dedup {
    fn drop(&mut self) {
        self.gauge.sub(self.charged);
    }
}

fn entry((id, (time, _, sequence)): (&Id, &(Time, Lsn, u64))) -> DedupEntry {
    DedupEntry { id: Arc::clone(id), time: *time, sequence: *sequence }
}

fn charge(id: &Id) -> usize {
    ID_CHARGE + id.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Duration = Duration::from_micros(10);

    fn window(ids_max: usize, gauge: &Gauge) -> Dedup {
        Dedup::new(WINDOW, ids_max * (ID_CHARGE + 1), gauge.clone())
    }

    #[test]
    fn an_id_is_known_for_the_window_and_not_longer() {
        let gauge = Gauge::default();
        let mut dedup = window(9, &gauge);
        dedup.note(b"a", Time(100), Lsn(5));
        dedup.note(b"b", Time(105), Lsn::NONE);
        for (now, id, expected) in [
            (100, "a", Some(Lsn(5))),
            (109, "a", Some(Lsn(5))),
            (109, "c", None),
            (110, "a", None),
            (114, "b", Some(Lsn::NONE)),
            (115, "b", None),
        ] {
            assert_eq!(dedup.find(id.as_bytes(), Time(now)), expected, "{id} at {now}");
        }
        assert_eq!((dedup.end(), gauge.bytes()), (None, 0));
    }

    #[test]
    fn the_first_acceptance_counts() {
        let mut dedup = window(9, &Gauge::default());
        dedup.note(b"a", Time(100), Lsn(5));
        dedup.note(b"a", Time(105), Lsn(3));
        assert_eq!((dedup.find(b"a", Time(109)), dedup.end()), (Some(Lsn(5)), Some(Time(110))));
        dedup.note(b"a", Time(100), Lsn(8));
        assert_eq!((dedup.find(b"a", Time(109)), dedup.find(b"a", Time(110))), (Some(Lsn(8)), None));
        assert!(dedup.by_record.is_empty());
    }

    #[test]
    fn the_oldest_goes_where_there_are_too_many() {
        let gauge = Gauge::default();
        let mut dedup = window(3, &gauge);
        for (time, id) in (0..).zip(["a", "b", "c", "d"]) {
            dedup.note(id.as_bytes(), Time(time), Lsn(7 + time));
        }
        let known = ["a", "b", "c", "d"].map(|id| dedup.find(id.as_bytes(), Time(5)).is_some());
        assert_eq!(known, [false, true, true, true]);
        assert_eq!(gauge.bytes(), 3 * (ID_CHARGE + 1));
        drop(dedup);
        assert_eq!(gauge.bytes(), 0);
    }

    #[test]
    fn a_window_that_never_ends_asks_for_no_wake_up() {
        for (window, time, expected) in [
            (Duration::from_micros(10), Time(100), Some(Time(110))),
            (Duration::MAX, Time(100), None),
            (Duration::from_micros(10), Time(Time::NEVER.0 - 11), Some(Time(Time::NEVER.0 - 1))),
            (Duration::from_micros(10), Time(Time::NEVER.0 - 10), None),
        ] {
            let mut dedup = Dedup::new(window, usize::MAX, Gauge::default());
            dedup.note(b"a", time, Lsn(7));
            assert_eq!(dedup.end(), expected, "{window:?} from {time:?}");
        }
    }

    #[test]
    fn the_newest_is_known_however_little_room_there_is() {
        let mut dedup = window(0, &Gauge::default());
        for id in ["a", "b"] {
            dedup.note(id.as_bytes(), Time(1), Lsn(7));
            assert_eq!(dedup.find(id.as_bytes(), Time(2)), Some(Lsn(7)));
        }
        assert_eq!(dedup.find(b"a", Time(2)), None);
    }

    #[test]
    fn records_that_are_renewed_need_not_stay() {
        let mut dedup = window(9, &Gauge::default());
        for (time, id) in (0..).zip(["a", "b", "c", "d"]) {
            let lsn = if id == "b" { Lsn::NONE } else { Lsn(20 + time) };
            dedup.note(id.as_bytes(), Time(time), lsn);
        }
        assert_eq!(dedup.floor(Time(5)), Some(Lsn(20)));
        assert_eq!(dedup.below(Lsn(20), 9, Time(5)), []);
        let ids = |seen: &[DedupEntry]| seen.iter().flat_map(|seen| seen.id.to_vec()).collect::<Vec<u8>>();
        for (floor, bytes_max, expected) in [(22, 9, "a"), (23, 9, "ac"), (99, 2, "ac"), (99, 9, "acd")] {
            let below = dedup.below(Lsn(floor), bytes_max, Time(5));
            assert_eq!(ids(&below), expected.as_bytes(), "below {floor}, {bytes_max} bytes");
        }
        let below = dedup.below(Lsn(23), 9, Time(5));
        dedup.renew(&below, Lsn(30));
        assert_eq!((dedup.floor(Time(5)), dedup.find(b"a", Time(5))), (Some(Lsn(23)), Some(Lsn(30))));
        // Renewing it did not make it younger.
        assert_eq!((dedup.find(b"a", Time(10)), dedup.floor(Time(12))), (None, Some(Lsn(23))));
        assert_eq!(dedup.floor(Time(13)), None);
    }
}
