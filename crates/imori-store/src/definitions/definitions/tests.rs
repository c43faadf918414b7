//! Random lives of definitions on the simulated disk, with a crash after every call that changes it.
//!
//! The ledger knows the content as of each journal number. After any crash, even while opening, the
//! definitions must be as of a number that was applied, and not before the last one promised.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::*;
use crate::disk::sim_disk::{Call, DiskFault, EIO, ENOSPC, Random, SimDisk, State};

const STORE: StoreId = StoreId([5; 16]);
const APPLIES: usize = 36;
const LIVES: usize = 3;
/// The number of random crashes tried for each state.
const CRASHES: usize = 3;

type Rows = BTreeMap<(Table, Vec<u8>), Vec<u8>>;

#[derive(Default)]
struct Ledger {
    by_number: BTreeMap<u64, Rows>,
    now: Rows,
    number: u64,
}

impl Ledger {
    fn new() -> Ledger {
        Ledger { by_number: BTreeMap::from([(0, Rows::new())]), ..Ledger::default() }
    }

    /// Makes random changes, and notes their expected effect.
    fn changes(&mut self, random: &mut Random) -> (Lsn, Vec<Change>) {
        let changes: Vec<Change> = (0..random.below(5)).map(|_| self.change(random)).collect();
        for Change { table, key, value } in &changes {
            let place = (*table, key.to_vec());
            match value {
                Some(value) => drop(self.now.insert(place, value.to_vec())),
                None => drop(self.now.remove(&place)),
            }
        }
        self.number += 1 + random.below(9) as u64;
        self.by_number.insert(self.number, self.now.clone());
        (Lsn(self.number), changes)
    }

    fn change(&self, random: &mut Random) -> Change {
        let table = Table::ALL[random.below(Table::ALL.len())];
        let key = format!("name-{}", random.below(30)).into_bytes();
        let len = [0, 40, 700, 9_000][random.below(4)];
        let value = (random.below(4) > 0).then(|| vec![random.next() as u8; len].into());
        Change { table, key: key.into(), value }
    }

    fn check(&self, applied: Lsn, found: &Rows, promised: u64) -> Result<(), String> {
        let Some(expected) = self.by_number.get(&applied.0) else {
            return Err(format!("phantom: {applied} was never applied"));
        };
        if applied.0 < promised {
            return Err(format!("lost: it is as of {applied}, and {promised} was promised"));
        }
        match found == expected {
            true => Ok(()),
            false => Err(format!("altered: the rows are not those of {applied}")),
        }
    }
}

fn rows(definitions: &Definitions) -> Rows {
    let of = |table: Table| {
        let mut rows = definitions.all(table).expect("they verify");
        rows.retain(|(key, _)| key != ROWS_LOST && key != OBJECTS_LOST);
        rows.into_iter().map(move |(key, value)| ((table, key), value))
    };
    Table::ALL.into_iter().flat_map(of).collect()
}

fn open(disk: &SimDisk) -> Result<Definitions, DefinitionsError> {
    Definitions::open(disk, STORE, PriorContent::Nothing, OnDamage::Quarantine)
}

struct Run {
    random: Random,
    ledger: Ledger,
    points: usize,
}

impl Run {
    fn new(seed: u64) -> Run {
        Run { random: Random(seed), ledger: Ledger::new(), points: 0 }
    }

    /// Runs consecutive lives, each ended by a crash; the error describes an illegal outcome.
    fn run(mut self, has_lies: bool) -> Result<usize, String> {
        let mut state = State::default();
        for _ in 0..LIVES {
            let disk = SimDisk::new(state);
            disk.watch();
            let mut definitions = open(&disk).map_err(|error| error.to_string())?;
            self.crash_everywhere(&disk)?;
            if has_lies {
                disk.drop_syncs();
            }
            for _ in 0..APPLIES / LIVES {
                let (number, changes) = self.ledger.changes(&mut self.random);
                definitions.apply(number, &changes).map_err(|error| error.to_string())?;
                disk.promise(|promised| promised.disk = number.0);
                self.crash_everywhere(&disk)?;
            }
            // Either way: a clean close, or the end of the process.
            match self.random.below(2) {
                0 => drop(definitions),
                _ => std::mem::forget(definitions),
            }
            self.crash_everywhere(&disk)?;
            state = disk.state().crash(&mut self.random);
        }
        Ok(self.points)
    }

    fn crash_everywhere(&mut self, disk: &SimDisk) -> Result<(), String> {
        for state in disk.take_snapshots() {
            for _ in 0..CRASHES {
                self.points += 1;
                let left = SimDisk::new(state.crash(&mut self.random));
                left.watch();
                self.check(&left, state.promised.disk)?;
                // A crash while opening the result of a crash.
                let states = left.take_snapshots();
                if let Some(again) = states.get(self.random.below(states.len() * 4)) {
                    let again = SimDisk::new(again.crash(&mut self.random));
                    self.check(&again, state.promised.disk)?;
                }
            }
        }
        Ok(())
    }

    fn check(&self, left: &SimDisk, promised: u64) -> Result<(), String> {
        let definitions = open(left).map_err(|error| error.to_string())?;
        if !definitions.damage().is_none() {
            return Err(definitions.damage().to_string());
        }
        self.ledger.check(definitions.applied(), &rows(&definitions), promised)
    }
}

#[test]
fn no_crash_loses_what_was_applied() {
    for seed in 0..2 {
        match Run::new(seed).run(false) {
            Ok(points) => assert!(points > 500, "{points} crashes"),
            Err(what) => panic!("seed {seed}: {what}"),
        }
    }
}

#[test]
fn a_sync_that_does_nothing_is_caught() {
    for seed in 0..3 {
        assert!(Run::new(seed).run(true).is_err(), "seed {seed}");
    }
}

#[test]
fn after_an_error_nothing_reaches_the_disk() {
    for (call, fault) in [
        (Call::Write, DiskFault::Error(EIO)),
        (Call::Write, DiskFault::Error(ENOSPC)),
        (Call::Sync, DiskFault::Error(EIO)),
    ] {
        for nth in 0..12 {
            let mut run = Run::new(nth);
            let disk = SimDisk::default();
            let mut definitions = open(&disk).expect("the disk is well");
            let (number, changes) = run.ledger.changes(&mut run.random);
            definitions.apply(number, &changes).expect("the disk is well");
            disk.promise(|promised| promised.disk = number.0);
            disk.inject(call, nth as usize, fault);
            let mut failed = false;
            for _ in 0..12 {
                let (number, changes) = run.ledger.changes(&mut run.random);
                let calls = disk.trace().len();
                match definitions.apply(number, &changes) {
                    Ok(()) => {
                        assert!(!failed, "an apply after the failed one succeeds");
                        disk.promise(|promised| promised.disk = number.0);
                    }
                    Err(DefinitionsError::Disk(_)) => {
                        assert!(!failed || disk.trace().len() == calls, "{call:?} {nth}: it writes again");
                        failed = true;
                    }
                    Err(other) => unreachable!("{other}"),
                }
            }
            assert!(failed, "{call:?} {nth}");
            assert_eq!(definitions.applied().0, disk.state().promised.disk, "{call:?} {nth}: it says more");
            let calls = disk.trace().len();
            drop(definitions);
            assert_eq!(disk.trace().len(), calls, "{call:?} {nth}: it writes when it is closed");
            // As the next process finds it, in this boot and in the next.
            run.check(&SimDisk::new(disk.state()), disk.state().promised.disk)
                .expect("nothing that was promised is lost");
            for _ in 0..20 {
                let left = SimDisk::new(disk.state().crash(&mut run.random));
                run.check(&left, disk.state().promised.disk).expect("nothing that was promised is lost");
            }
        }
    }
}

/// Definitions with enough rows for several levels of pages, closed.
fn sample(is_closed: bool) -> (SimDisk, Rows) {
    let disk = SimDisk::default();
    let mut definitions = open(&disk).expect("the disk is well");
    let row = |number: u32| {
        let table = Table::ALL[number as usize % 4];
        let key = Bytes::from(format!("queue-{number:05}"));
        Change { table, key, value: Some(Bytes::from(number.to_le_bytes().repeat(20))) }
    };
    for step in 0..4 {
        let changes: Vec<Change> = (step * 150..(step + 1) * 150).map(row).collect();
        definitions.apply(Lsn(u64::from(step) * 10 + 10), &changes).expect("the disk is well");
    }
    let rows = rows(&definitions);
    match is_closed {
        true => drop(definitions),
        false => std::mem::forget(definitions),
    }
    (SimDisk::new(disk.state().crash(&mut Random(1))), rows)
}

/// Checks that a damaged file never yields a wrong byte, and reports everything that is missing.
fn check_damaged(state: &State, expected: &Rows, what: &str) -> &'static str {
    let disk = SimDisk::new(state.clone());
    let looked = inspect(&disk, STORE);
    let is_refused = Definitions::open(&disk, STORE, PriorContent::Nothing, OnDamage::Refuse).is_err();
    let before = state.bytes(NAME).to_vec();
    match open(&disk) {
        Err(DefinitionsError::Foreign | DefinitionsError::Version(_)) => {
            assert!(looked.is_err() && is_refused, "{what}");
            "unreadable"
        }
        Err(other) => unreachable!("{what}: {other}"),
        Ok(definitions) if definitions.damage().all.is_some() => {
            assert!(looked.is_err() && is_refused, "{what}");
            assert!(rows(&definitions).is_empty() && definitions.applied() == Lsn(0), "{what}");
            assert!(definitions.lacks_rows().expect("it is whole"), "{what}");
            assert!(
                disk.state().bytes("definitions.redb.damaged") == before,
                "{what}: it is set aside unchanged"
            );
            "unreadable"
        }
        Ok(definitions) => {
            let found = rows(&definitions);
            assert!(found.iter().all(|(place, value)| expected.get(place) == Some(value)), "{what}: altered");
            assert_eq!(definitions.applied(), Lsn(40), "{what}");
            let lost = expected.len() - found.len();
            let damage = definitions.damage();
            assert_eq!(looked.expect("it opens").expect("it is there").damage, *damage, "{what}");
            assert_eq!(is_refused, !damage.is_none(), "{what}");
            assert_eq!(damage.has_lost_rows(), lost > 0, "{what}: {lost} lost, {damage}");
            let told = damage.rows.len() as u64 + damage.missing.iter().map(|(_, count)| count).sum::<u64>();
            assert!(told >= lost as u64, "{what}: {lost} lost, {damage}");
            assert_eq!(definitions.lacks_rows().expect("it is whole"), damage.has_lost_rows(), "{what}");
            if !damage.is_none() {
                let names = disk.state().names();
                let aside = "definitions.redb.damaged";
                assert_eq!(names, [NAME, aside], "{what}");
                assert!(disk.state().bytes(aside) == before, "{what}: it is set aside unchanged");
                let damage_is_of_rows = damage.has_lost_rows();
                drop(definitions);
                let again = open(&disk).expect("it is mended");
                assert!(again.damage().is_none() && rows(&again) == found, "{what}");
                assert_eq!(
                    again.lacks_rows().expect("it is whole"),
                    damage_is_of_rows,
                    "{what}: it is not mended"
                );
            }
            if damage_is_none(&disk) { "sound" } else { "salvaged" }
        }
    }
}

fn damage_is_none(disk: &SimDisk) -> bool {
    disk.state().names().len() == 1
}

#[test]
fn no_damage_is_served() {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for is_closed in [true, false] {
        let (disk, expected) = sample(is_closed);
        let state = disk.state();
        let size = state.bytes(NAME).len();
        let used: Vec<usize> = (0..size / 512)
            .filter(|sector| {
                state.bytes(NAME)[sector * 512..(sector + 1) * 512].iter().any(|byte| *byte != 0)
            })
            .collect();
        let mut random = Random(7);
        for number in 0..250 {
            let sector = used[random.below(used.len())];
            let (at, bit) = (sector * 512 + random.below(512), random.below(8));
            let mut hurt = state.clone();
            let what = match number % 5 {
                0 => {
                    hurt.damage(NAME, |bytes| bytes[sector * 512..(sector + 1) * 512].fill(0));
                    format!("sector {sector} zeroed")
                }
                1 => {
                    let from = used[random.below(used.len())];
                    hurt.damage(NAME, |bytes| bytes.copy_within(from * 512..(from + 1) * 512, sector * 512));
                    format!("sector {from} misplaced to {sector}")
                }
                _ => {
                    hurt.damage(NAME, |bytes| bytes[at] ^= 1 << bit);
                    format!("bit {bit} of byte {at}")
                }
            };
            *seen.entry(check_damaged(&hurt, &expected, &what)).or_default() += 1;
        }
        for len in [0, 100, 512, 4096, size / 2, size - 4096] {
            let mut hurt = state.clone();
            hurt.damage(NAME, |bytes| bytes.truncate(len));
            *seen.entry(check_damaged(&hurt, &expected, &format!("cut off at {len}"))).or_default() += 1;
        }
    }
    assert!(seen.len() == 3, "{seen:?}");
    io::Write::write_fmt(&mut io::stderr(), format_args!("{seen:?}\n")).expect("standard error takes it");
}

#[test]
fn setting_a_damaged_file_aside_can_be_cut_off_anywhere() {
    let (disk, expected) = sample(true);
    let mut hurt = disk.state();
    // Damage in the keys themselves: rows are lost, but the pages around them verify.
    hurt.damage(NAME, |bytes| {
        for at in 0..bytes.len() {
            if bytes[at..].starts_with(b"queue-00123") {
                bytes[at] = b'x';
            }
        }
    });
    let disk = SimDisk::new(hurt);
    disk.watch();
    let found = rows(&open(&disk).expect("it is set aside"));
    assert!(found.len() < expected.len() && found.len() > expected.len() / 2, "{}", found.len());
    let (mut random, mut points) = (Random(4), 0);
    for state in disk.take_snapshots().iter().flat_map(|state| [state; CRASHES]) {
        points += 1;
        let left = SimDisk::new(state.crash(&mut random));
        let again = open(&left).expect("it opens after any crash");
        assert!(rows(&again) == found && again.applied() == Lsn(40), "after {points} crashes");
        assert!(left.state().names().iter().any(|name| name.starts_with("definitions.redb.damaged")));
    }
    assert!(points > 20, "{points} crashes");
}

/// Runs an apply in which the nth write or sync finds no space, then applies again.
fn applied_in_the_end(call: Call, nth: usize) -> Result<bool, DefinitionsError> {
    let (disk, mut expected) = sample(true);
    let mut definitions = open(&disk)?;
    let key = b"one more".to_vec();
    let change = Change { table: Table::Queues, key: key.clone().into(), value: Some(vec![1; 9_000].into()) };
    expected.insert((Table::Queues, key), vec![1; 9_000]);
    let through = Lsn(definitions.applied().0 + 1);
    disk.inject(call, nth, DiskFault::Error(ENOSPC));
    let was_full = match definitions.apply(through, std::slice::from_ref(&change)) {
        Ok(()) => false,
        Err(error) if error.is_out_of_space() => {
            definitions = definitions.reopened()?;
            definitions.apply(through, &[change])?;
            true
        }
        Err(error) => return Err(error),
    };
    assert_eq!((definitions.applied(), rows(&definitions)), (through, expected), "{call:?} {nth}");
    Ok(was_full)
}

#[test]
fn what_a_full_disk_does_not_take_is_applied_once_there_is_space() {
    let full = (0..64).filter(|nth| applied_in_the_end(Call::Write, *nth).expect("there is space again"));
    assert!(full.count() > 3, "there are several writes");
    // After a failed sync the content may be gone, so it never counts as a mere lack of space.
    assert!(!applied_in_the_end(Call::Sync, 0).expect_err("it is no lack of space").is_out_of_space());
}

#[test]
fn a_start_on_a_full_disk_has_all_definitions() {
    let mut were_seen = 0;
    for nth in 0..16 {
        let (disk, expected) = sample(false);
        disk.inject(Call::Write, nth, DiskFault::Error(ENOSPC));
        let Ok(definitions) = open(&disk) else { panic!("it opens, write {nth}") };
        were_seen += usize::from(matches!(definitions.database, OpenState::Seen(_)));
        assert_eq!(rows(&definitions), expected, "write {nth}");
        let was_seen = matches!(definitions.database, OpenState::Seen(_));
        disk.inject(Call::Write, nth, DiskFault::Error(ENOSPC));
        let definitions = definitions.reopened().expect("it stays as it is");
        if was_seen {
            assert!(matches!(definitions.database, OpenState::Seen(_)), "write {nth}, again");
            assert_eq!(rows(&definitions), expected, "write {nth}, again");
        }
        disk.clear_faults();
        let mut definitions = definitions.reopened().expect("there is space");
        let through = Lsn(definitions.applied().0 + 1);
        definitions.apply(through, &[]).expect("there is space");
        assert_eq!((definitions.applied(), rows(&definitions)), (through, expected), "write {nth}");
    }
    assert!(were_seen > 0, "redb writes when it opens a file that was not closed");
}

#[test]
fn a_file_that_is_missing_is_made_for_a_new_store_alone() {
    for (was, on_damage, is_made) in [
        (PriorContent::Nothing, OnDamage::Refuse, true),
        (PriorContent::Nothing, OnDamage::Quarantine, true),
        (PriorContent::Definitions, OnDamage::Refuse, false),
        (PriorContent::Definitions, OnDamage::Quarantine, true),
    ] {
        let disk = SimDisk::default();
        let opened = Definitions::open(&disk, STORE, was, on_damage);
        assert_eq!(
            (opened.is_ok(), !disk.state().names().is_empty()),
            (is_made, is_made),
            "{was:?} {on_damage:?}"
        );
        if let Ok(definitions) = opened {
            let is_missed = was == PriorContent::Definitions;
            assert_eq!(definitions.damage().has_lost_rows(), is_missed, "{}", definitions.damage());
            assert_eq!(definitions.lacks_rows().expect("it is whole"), is_missed);
        }
    }
}

#[test]
fn that_rows_were_lost_is_known_until_something_is_made_in_their_place() {
    let disk = SimDisk::default();
    drop(
        Definitions::open(&disk, STORE, PriorContent::Definitions, OnDamage::Quarantine).expect("it is made"),
    );
    let row = |value| Change { table: Table::Queues, key: Bytes::from_static(b"q"), value };
    disk.watch();
    let mut definitions = open(&disk).expect("it is there");
    definitions.repair(vec![row(Some(Bytes::from_static(b"made anew")))]).expect("the disk is well");
    drop(definitions);
    let (mut random, mut seen) = (Random(9), [0, 0]);
    for state in disk.take_snapshots().iter().flat_map(|state| [state; CRASHES]) {
        let left = open(&SimDisk::new(state.crash(&mut random))).expect("it opens after any crash");
        let lacks = left.lacks_rows().expect("it is whole");
        assert_eq!(rows(&left).is_empty(), lacks, "both or none");
        seen[usize::from(lacks)] += 1;
    }
    assert!(seen[0] > 0 && seen[1] > 0, "{seen:?}");
    assert!(!open(&disk).expect("it is there").lacks_rows().expect("it is whole"));
}

#[test]
fn that_objects_were_lost_is_known_until_an_operator_recovers_them() {
    let lose_all = |disk: &SimDisk| {
        let mut hurt = disk.state();
        hurt.damage(NAME, |bytes| bytes.truncate(100));
        SimDisk::new(hurt)
    };
    let (disk, _) = sample(true);
    assert!(!open(&disk).expect("it is well").lacks_objects().expect("it is whole"));
    let disk = lose_all(&disk);
    for start in 0..3 {
        let mut definitions = open(&disk).expect("it is set aside");
        assert_eq!(definitions.damage().has_lost_objects(), start == 0);
        assert!(definitions.lacks_objects().expect("it is whole"), "start {start}");
        definitions.repair(Vec::new()).expect("the disk is well");
    }
    // A copy without the file lacks them too, and so does a store that loses the file again.
    let disk = lose_all(&disk);
    let mut definitions = open(&disk).expect("it is set aside");
    assert!(definitions.lacks_objects().expect("it is whole"));
    definitions.apply(definitions.applied(), &[Change::objects_recovered()]).expect("the disk is well");
    assert!(!definitions.lacks_objects().expect("it is whole"));
    drop(definitions);
    assert!(!open(&disk).expect("it is there").lacks_objects().expect("it is whole"));
}

#[test]
fn objects_are_lost_with_rows_of_theirs_and_not_with_those_of_queues() {
    for (table, is_lost) in [
        (Table::Vhosts, true),
        (Table::Exchanges, false),
        (Table::Queues, false),
        (Table::Bindings, false),
        (Table::Meta, true),
        (Table::Objects, true),
    ] {
        let damage = DefinitionsDamage { rows: vec![(table, vec![1])], ..DefinitionsDamage::default() };
        assert_eq!(damage.has_lost_objects(), is_lost, "{table:?}");
        let damage = DefinitionsDamage { missing: vec![(table, 1)], ..DefinitionsDamage::default() };
        assert_eq!(damage.has_lost_objects(), is_lost, "{table:?}");
    }
}

#[test]
fn each_damaged_file_is_set_aside_under_a_name_of_its_own() {
    let (mut disk, _) = sample(true);
    for aside in ["definitions.redb.damaged", "definitions.redb.damaged-2", "definitions.redb.damaged-3"] {
        let mut hurt = disk.state();
        hurt.damage(NAME, |bytes| bytes.truncate(100));
        disk = SimDisk::new(hurt);
        assert!(open(&disk).expect("it is set aside").damage().all.is_some());
        let names = disk.state().names().iter().map(ToString::to_string).collect::<Vec<_>>();
        assert!(names.iter().any(|name| name == aside), "{aside} is not among {names:?}");
    }
}

#[test]
fn a_file_from_which_nothing_can_be_read_is_refused_as_it_is() {
    let mut hurt = sample(true).0.state();
    hurt.damage(NAME, |bytes| bytes.truncate(0));
    let disk = SimDisk::new(hurt);
    let refused = Definitions::open(&disk, STORE, PriorContent::Definitions, OnDamage::Refuse);
    assert!(matches!(refused, Err(DefinitionsError::Unreadable(_))), "{refused:?}");
    assert_eq!(disk.state().names(), [NAME]);
}

#[test]
fn a_look_shows_the_queues_and_counts_the_others() {
    let (disk, expected) = sample(true);
    let look = inspect(&disk, STORE).expect("it opens").expect("it is there");
    let queues: Rows = look.queues.into_iter().map(|(key, value)| ((Table::Queues, key), value)).collect();
    let of = |table: Table| expected.iter().filter(move |((of, _), _)| *of == table);
    assert!(queues.iter().eq(of(Table::Queues)), "{} queues", queues.len());
    let counted: Vec<(Table, usize)> =
        Table::ALL.into_iter().map(|table| (table, of(table).count())).collect();
    assert_eq!((look.applied, look.rows), (Lsn(40), counted));
}

#[test]
fn rows_that_a_file_counts_and_does_not_have_are_gone_without_a_trace() {
    let disk = SimDisk::default();
    let mut definitions = open(&disk).expect("the disk is well");
    let row = |number: u8| Change {
        table: Table::Queues,
        key: vec![number].into(),
        value: Some(vec![number; 9].into()),
    };
    definitions.apply(Lsn(7), &[row(1), row(2), row(3)]).expect("the disk is well");
    // Pretend that five more rows existed.
    definitions.head.rows = [0, 0, 7, 0, 0, 0];
    definitions.apply(Lsn(8), &[row(4)]).expect("the disk is well");
    drop(definitions);
    let look = inspect(&disk, STORE).expect("it opens").expect("it is there");
    assert_eq!((look.damage.missing, look.damage.rows), (vec![(Table::Queues, 4)], Vec::new()));
    // The loss is reported once: afterwards the row count is right again.
    let again = open(&disk).expect("it is mended");
    assert_eq!(again.damage().missing, [(Table::Queues, 4)]);
    assert_eq!(again.head.rows[2], 4);
    drop(again);
    assert!(open(&disk).expect("it is mended").damage().is_none());
}

#[test]
fn a_file_that_cannot_be_written_for_another_reason_is_not_opened() {
    let (disk, _) = sample(false);
    disk.inject(Call::Write, 0, DiskFault::Error(EIO));
    assert!(open(&disk).is_err(), "the disk is not well");
    let (disk, _) = sample(false);
    disk.inject(Call::Write, 0, DiskFault::Error(ENOSPC));
    let seen = open(&disk).expect("nothing has to be changed yet");
    disk.inject(Call::Write, 0, DiskFault::Error(EIO));
    assert!(seen.reopened().is_err(), "the disk is not well");
    // Without a file there is nothing to read instead.
    let disk = SimDisk::default();
    disk.inject(Call::Write, 0, DiskFault::Error(ENOSPC));
    assert!(Definitions::open(&disk, STORE, PriorContent::Nothing, OnDamage::Refuse).is_err());
}
