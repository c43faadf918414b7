//! Interrupted recoveries and recoveries of damage: fixed scenarios instead of random ones.

use super::*;

impl Life {
    pub(super) fn new(disk: SimDisk, settings: Settings) -> Life {
        let Opened { intake, journal, pool, .. } = open::open(&disk, &settings).expect("the disk is well");
        Life { disk, settings, intake, journal, pool, job: None }
    }

    pub(super) fn append(&mut self, record: NewRecord) {
        let admitted = Admitted::each([record], self.settings.file_bytes).expect("it fits");
        self.intake.append(admitted).expect("the disk is well");
        self.journal.stage(&mut self.intake);
    }

    pub(super) fn commit_all(&mut self) {
        while self.journal.has_staged() {
            self.commit().expect("the disk is well");
        }
    }

    /// Writes the staged records without syncing them.
    fn write(&mut self) {
        while self.journal.needs_file() && !self.journal.roll(&mut self.pool) {
            self.work().expect("the disk is well");
        }
        self.journal.take_batch().expect("a record waits").write().expect("the disk is well");
    }
}

pub(super) fn message(byte: u8, len: usize) -> NewRecord {
    NewRecord { kind: RecordType::Message, payload: Bytes::from(vec![byte; len]) }
}

/// After a kill, the next process sees unsynced writes. A power cut may interrupt that process
/// while it rewrites them, and then both copies are torn.
#[test]
fn a_power_cut_in_a_recovery_after_a_kill_looks_like_no_damage() {
    let settings = settings(None);
    let disk = SimDisk::default();
    let mut life = Life::new(disk, settings);
    for number in 0..4u8 {
        life.append(message(number, 900));
        if number < 3 {
            life.commit_all();
        }
    }
    life.write();

    let killed = SimDisk::new(life.disk.state());
    killed.watch();
    open::open(&killed, &settings).expect("the disk is well");
    let mut random = Random(3);
    for state in killed.take_snapshots() {
        for _ in 0..100 {
            let left = SimDisk::new(state.crash(&mut random));
            let recovered = recovery::recover(&left, &settings).expect("it can be read");
            assert!(recovered.report.damaged.is_empty(), "{}", recovered.report);
            assert!(recovered.records.len() >= 3, "{}", recovered.report);
        }
    }
}

#[test]
fn damage_is_told_and_the_rest_is_served() {
    let settings = settings(None);
    let disk = SimDisk::default();
    let mut life = Life::new(disk, settings);
    let mut run = Run { random: Random(5), ledger: Ledger::default(), points: 0, left: None };
    for number in 0..60u8 {
        life.append(message(number, 1500));
        life.commit_all();
    }
    let names = life.disk.state().names();
    for _ in 0..2000 {
        let mut state = life.disk.state();
        let name = &names[run.random.below(names.len() - 3)];
        let (at, bit) = (run.random.below(settings.file_bytes), run.random.below(8));
        state.damage(name, |bytes| bytes[at] ^= 1 << bit);
        let hurt = SimDisk::new(state);
        let recovered = recovery::recover(&hurt, &settings).expect("it can be read");
        for record in &recovered.records {
            assert!(record.payload.iter().all(|byte| u64::from(*byte) + 1 == record.lsn.0), "{}", record.lsn);
        }
        let missing = 60 - recovered.records.len();
        assert!(missing <= 1, "one bit hurts one record");
        assert!(missing == 0 || recovered.report.to_string().contains(name.as_str()), "{}", recovered.report);
        let refusing = Settings { on_damage: OnDamage::Refuse, ..settings };
        let is_refused = recovery::recover(&hurt, &refusing).is_err();
        assert_eq!(is_refused, !recovered.report.damaged.is_empty(), "{}", recovered.report);
        let opened = open::open(&hurt, &settings).expect("it is set aside");
        assert_eq!(opened.recovered.records, recovered.records);
        let again = recovery::recover(&hurt, &settings).expect("it can be read");
        assert!(again.records == recovered.records && again.report.damaged.is_empty(), "{}", again.report);
    }
}

/// A file with a torn end is rewritten in several batches. If that is interrupted behind the
/// checkpoint, the new file holds only some of the needed records and begins at the floor.
#[test]
fn a_file_is_passed_over_only_where_the_next_begins_at_its_end() {
    for fault in [None, Some(Fault::NextNotCompared)] {
        // Two such files, read one after the other.
        let settings = Settings { file_bytes: 7 << 20, ..settings(fault) };
        let mut life = Life::new(SimDisk::default(), settings);
        for number in 1..=60u8 {
            let floor = Bytes::copy_from_slice(&10u64.to_le_bytes());
            let checkpoint = NewRecord { kind: RecordType::Checkpoint, payload: floor };
            life.append(if number == 20 { checkpoint } else { message(number, 100_000) });
            life.commit_all();
        }
        life.append(message(61, 100_000));
        life.write();
        let mut state = life.disk.state();
        let name = state.names().into_iter().find(|name| name.ends_with('1')).expect("it is the first");
        state.damage(&name, |bytes| {
            let at = bytes.windows(99).position(|bytes| bytes == [61; 99]).expect("it is written");
            bytes[at] = 0;
        });

        let killed = SimDisk::new(state);
        killed.watch();
        let after_a_kill = settings.reading_from(ReadFrom::Cache);
        open::open(&killed, &after_a_kill).expect("the disk is well");
        let is_whole = |state: State| {
            let found = recovery::recover(&SimDisk::new(state), &after_a_kill).expect("it can be read");
            (10..=60).all(|lsn| found.records.iter().any(|record| record.lsn.0 == lsn))
        };
        let all = killed.take_snapshots().into_iter().all(is_whole);
        assert_eq!(all, fault.is_none(), "{fault:?}");
    }
}

/// A page of a segment is written once its records are durable. If the journal has lost them, that
/// looks like its torn end. If their numbers were reused, new records would be taken for the old
/// ones.
#[test]
fn numbers_that_others_have_are_not_given_again() {
    let all = settings(None);
    let mut life = Life::new(SimDisk::default(), all);
    for number in 0..6u8 {
        life.append(message(number, 900));
        life.commit_all();
    }
    let mut state = life.disk.state();
    for name in state.names() {
        // Damages the last of six records.
        state.damage(&name, |bytes| {
            if let Some(at) = bytes.windows(900).position(|bytes| bytes == [5; 900]) {
                bytes[at] ^= 1;
            }
        });
    }
    for (known, next, is_damaged) in
        [(None, 6, false), (Some(5), 6, false), (Some(6), 7, true), (Some(9), 10, true)]
    {
        let hurt = SimDisk::new(state.clone());
        let settings = all.durable_through(known.map(Lsn));
        let opened = open::open(&hurt, &settings).expect("it is set aside");
        let report = &opened.recovered.report;
        assert_eq!(
            (opened.intake.next_lsn(), report.is_damaged()),
            (Lsn(next), is_damaged),
            "{known:?}: {report}"
        );
        assert_eq!(opened.recovered.records.len(), 5, "{known:?}");
        assert_eq!(!report.torn.is_empty(), !is_damaged, "{known:?}: {report}");
        let refusing = Settings { on_damage: OnDamage::Refuse, ..settings };
        let is_refused = recovery::recover(&SimDisk::new(state.clone()), &refusing).is_err();
        assert_eq!(is_refused, is_damaged, "{known:?}");
        // The second start is given the same floor, and finds no further damage.
        let again = open::open(&hurt, &settings).expect("the disk is well");
        assert_eq!(
            (again.intake.next_lsn(), again.recovered.report.is_damaged()),
            (Lsn(next), false),
            "{known:?}"
        );
    }
}
