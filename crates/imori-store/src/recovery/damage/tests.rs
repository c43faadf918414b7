//! Truncated and missing files.

use bytes::Bytes;

use crate::disk::Disk as _;
use crate::disk::sim_disk::{SimDisk, SimFile, State};
use crate::journal::crash::settings;
use crate::journal::{self, Admitted, NewRecord, Opened};
use crate::limits::BLOCK_BYTES;
use crate::lsn::Lsn;
use crate::planted::Fault;
use crate::records::RecordType;
use crate::recovery::recover::{self, Recovered};
use crate::recovery::window::Window;
use crate::settings::{OnDamage, Settings};

/// Records of one block each, three per file: seven files, the last of which is not full.
const RECORDS: u64 = 20;

fn append(opened: &mut Opened<SimFile>, disk: &SimDisk, record: NewRecord) {
    let file_bytes = settings(None).file_bytes;
    opened.intake.append(Admitted::each([record], file_bytes).expect("it fits")).expect("it is taken");
    opened.journal.stage(&mut opened.intake);
    while opened.journal.needs_file() && !opened.journal.roll(&mut opened.pool) {
        let job = opened.pool.next_job().expect("a file is missing");
        opened.pool.done(job.run(disk, &|| true).expect("the disk is well"));
    }
    let batch = opened.journal.take_batch().expect("something is staged");
    batch.write().and_then(|()| batch.sync()).expect("the disk is well");
    opened.journal.batch_written();
    let released = opened.journal.batch_synced().expect("it is written");
    released.freed.into_iter().for_each(|file| opened.pool.free(file));
    opened.journal.recycle(batch);
}

fn message(number: u64) -> NewRecord {
    NewRecord { kind: RecordType::Message, payload: Bytes::from(vec![number as u8; 1500]) }
}

/// A journal, with the numbers in each file.
fn journal() -> (State, Vec<(String, Vec<u64>)>) {
    let disk = SimDisk::default();
    let mut opened = journal::open(&disk, &settings(None)).expect("the disk is well");
    (1..=RECORDS).for_each(|number| append(&mut opened, &disk, message(number)));
    while let Some(job) = opened.pool.next_job() {
        opened.pool.done(job.run(&disk, &|| true).expect("the disk is well"));
    }
    let state = disk.state();
    let mut files = Vec::new();
    for name in state.names() {
        let file = disk.open(&name).expect("it is there");
        let mut window = Window::new(&file, usize::MAX).expect("it is there");
        let scan = crate::recovery::scan::scan(&mut window, settings(None).seal).expect("the disk is well");
        let numbers: Vec<u64> = scan.records.iter().map(|record| record.lsn.0).collect();
        files.push((name, numbers));
    }
    files.retain(|(_, numbers)| !numbers.is_empty());
    assert_eq!(files.len(), 7);
    (state, files)
}

fn without(state: &State, name: &str) -> State {
    let disk = SimDisk::new(state.clone());
    disk.remove(name).and_then(|()| disk.sync_folder()).expect("the disk is well");
    disk.state()
}

fn numbers(recovered: &Recovered) -> Vec<u64> {
    recovered.records.iter().map(|record| record.lsn.0).collect()
}

/// Opens what is left; an error if a loss is not reported or a lost number is reused.
fn check(state: State, settings: &Settings, whose: &str) -> Result<String, String> {
    let hurt = SimDisk::new(state);
    let recovered = recover::recover(&hurt, settings).map_err(|error| error.to_string())?;
    let (report, there) = (&recovered.report, numbers(&recovered));
    if there.len() as u64 != RECORDS && !(report.is_damaged() && report.to_string().contains(whose)) {
        return Err(format!("{} records are lost in silence: {report}", RECORDS - there.len() as u64));
    }
    if !report.torn.is_empty() {
        return Err(format!("what was confirmed is told as a torn end: {report}"));
    }
    let refusing = Settings { on_damage: OnDamage::Refuse, ..*settings };
    if recover::recover(&hurt, &refusing).is_err() != report.is_damaged() {
        return Err("it is not refused".to_string());
    }
    let mut opened = journal::open(&hurt, settings).map_err(|error| error.to_string())?;
    if opened.recovered.next <= Lsn(RECORDS) {
        return Err(format!("number {} is given again", opened.recovered.next));
    }
    let next = opened.recovered.next.0;
    append(&mut opened, &hurt, message(7));
    drop(opened);
    let again = recover::recover(&hurt, settings).map_err(|error| error.to_string())?;
    if again.report.is_damaged() || numbers(&again) != [there, vec![next]].concat() {
        return Err(format!("afterwards: {}", again.report));
    }
    Ok(report.to_string())
}

#[test]
fn a_file_that_is_cut_off_anywhere_is_told() {
    let (state, files) = journal();
    for (fault, is_caught) in [(None, false), (Some(Fault::LengthNotCompared), true)] {
        let settings = settings(fault);
        let mut wrongs = Vec::new();
        for (name, numbers) in &files {
            let blocks = 0..settings.file_bytes / BLOCK_BYTES;
            for len in blocks.flat_map(|block| [0, 100, 2000].map(|more| block * BLOCK_BYTES + more)) {
                let mut state = state.clone();
                state.damage(name, |bytes| bytes.truncate(len));
                if let Err(what) = check(state, &settings, name) {
                    wrongs.push(format!("{name} with {numbers:?}, {len} bytes: {what}"));
                }
            }
        }
        assert_eq!(!wrongs.is_empty(), is_caught, "{fault:?}: {wrongs:#?}");
        assert!(!is_caught || wrongs.iter().any(|wrong| wrong.contains("lost in silence")), "{wrongs:#?}");
    }
}

#[test]
fn what_a_cut_costs_is_told_as_far_as_it_is_known() {
    for (file, len, expected) in [
        (6, 8192, "it is shortened by 8192 bytes, numbers from 20 on may be lost"),
        (6, 4096, "it is shortened by 12288 bytes, numbers from 19 on may be lost"),
        (6, 12288, "it is shortened by 4096 bytes, numbers from 21 on may be lost"),
        (
            6,
            0,
            "the file header does not verify, it is shortened by 16384 bytes, numbers from 19 on may be lost",
        ),
        (2, 8192, "it is shortened by 8192 bytes, numbers 8-9 are lost"),
        (0, 0, "the file header does not verify, it is shortened by 16384 bytes, numbers 1-3 are lost"),
    ] {
        let (mut state, files) = journal();
        state.damage(&files[file].0, |bytes| bytes.truncate(len));
        let told = check(state, &settings(None), &files[file].0).expect("it is told");
        assert!(told.contains(expected), "{expected}: {told}");
    }
}

#[test]
fn a_cut_in_which_nothing_stood_is_none() {
    let (mut state, files) = journal();
    let ready: Vec<String> =
        state.names().into_iter().filter(|name| files.iter().all(|(file, _)| file != name)).collect();
    assert!(!ready.is_empty(), "some files are ready");
    for name in ready {
        state.damage(&name, |bytes| bytes.truncate(BLOCK_BYTES));
    }
    let told = check(state, &settings(None), "").expect("nothing is lost");
    assert!(!told.contains("damage"), "{told}");
}

#[test]
fn files_that_are_gone_are_told() {
    for (gone, expected) in [
        (vec![0], "no file has numbers 1-3, which"),
        (vec![3], "no file has numbers 10-12, which"),
        (vec![0, 1, 4], "no file has numbers 1-6, 13-15, which"),
        (vec![2, 3], "no file has numbers 7-12, which"),
    ] {
        let (mut state, files) = journal();
        gone.iter().for_each(|index| state = without(&state, &files[*index].0));
        let told = check(state, &settings(None), "").expect("it is told");
        assert!(told.contains(expected) && !told.contains("damage in"), "{expected}: {told}");
    }
}

#[test]
fn below_a_checkpoint_nothing_is_missed() {
    for (floor, expected) in [(7u64, None), (4, Some("no file has numbers 4-6, which"))] {
        let disk = SimDisk::default();
        let mut opened = journal::open(&disk, &settings(None)).expect("the disk is well");
        (1..RECORDS).for_each(|number| append(&mut opened, &disk, message(number)));
        let payload = Bytes::copy_from_slice(&floor.to_le_bytes());
        append(&mut opened, &disk, NewRecord { kind: RecordType::Checkpoint, payload });
        drop(opened);
        let mut state = disk.state();
        ["journal-0000000001", "journal-0000000002"].iter().for_each(|name| state = without(&state, name));
        let recovered = recover::recover(&SimDisk::new(state), &settings(None)).expect("it can be read");
        let told = recovered.report.to_string();
        assert_eq!(recovered.report.is_damaged(), expected.is_some(), "{told}");
        assert!(expected.is_none_or(|expected| told.contains(expected)), "{told}");
    }
}

/// Each truncated block may have held as many records as fit into it.
#[test]
fn no_number_that_a_cut_took_is_given_again_however_small_the_records_were() {
    use crate::recovery::written::{Unit, message, written};

    for (len, records) in [(0, 470), (8, 360), (100, 90), (3000, 3)] {
        let units = (0..3).map(|_| Unit::Each((0..records / 3).map(|_| message(7, len)).collect()));
        let whole = written(units.collect());
        let settings = settings(None);
        let found = |state: State| recover::recover(&SimDisk::new(state), &settings).expect("it can be read");
        let last = found(whole.clone()).next.0 - 1;
        assert_eq!(last, records / 3 * 3, "{len} bytes each");
        for bytes in (BLOCK_BYTES..settings.file_bytes).step_by(BLOCK_BYTES) {
            let mut state = whole.clone();
            state.damage("journal-0000000001", |file| file.truncate(bytes));
            let left = found(state);
            assert!(left.report.is_damaged(), "{}", left.report);
            assert!(left.next.0 > last, "{} after {last}, {len} bytes each, cut to {bytes}", left.next);
        }
    }
}
