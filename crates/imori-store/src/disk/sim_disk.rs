//! A disk in memory, for tests and the simulator: unsynced content may be lost, in part, in any
//! order.
//!
//! Each sector of 512 bytes keeps every version since the last sync; a crash picks one at random. A
//! crash also keeps changes of names up to a random one since the last `sync_folder`. A fault hits
//! the n-th call of a kind. A failed sync drops the dirty sectors, as Linux may do.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;

use super::disk::{Disk, DiskFile};
use super::whole_file::ReadFrom;

const SECTOR: usize = 512;

/// A random number generator, SplitMix64.
#[derive(Debug, Clone)]
pub struct Random(
    /// The state; initially the seed.
    pub u64,
);

impl Random {
    /// The next number.
    #[allow(clippy::should_implement_trait, reason = "it has no end")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`; 0 if `end` is 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() >> 11) as usize % end.max(1)
    }
}

/// A kind of disk call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// A write of bytes.
    Write,
    /// A sync of a file.
    Sync,
    /// A sync of the folder.
    SyncFolder,
}

/// The fault of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskFault {
    /// The call fails with this error number.
    Error(i32),
    /// The call writes about half of the bytes and returns their number.
    Short,
}

/// The device does not respond.
pub const EIO: i32 = 5;
/// The disk is full.
pub const ENOSPC: i32 = 28;

type Sector = [u8; SECTOR];

#[derive(Debug, Clone, Default)]
struct Inode {
    now: Arc<Vec<u8>>,
    durable: Arc<Vec<u8>>,
    dirty: Arc<BTreeMap<usize, Vec<Sector>>>,
    /// Lengths set since the last sync; a crash keeps them up to a random one.
    lens: Arc<Vec<usize>>,
    /// Whether a sync has failed, so that `now` shows content that will never be durable.
    has_lost: bool,
}

/// The highest numbers that were promised to survive.
#[derive(Debug, Clone, Copy, Default)]
pub struct Promised {
    /// Promised to survive the end of the process.
    pub os: u64,
    /// Promised to survive a power cut.
    pub disk: u64,
}

#[derive(Debug, Clone)]
enum NameChange {
    Set(String, usize),
    Unset(String),
}

/// The complete state of a disk, to which a crash can be applied.
#[derive(Debug, Clone, Default)]
pub struct State {
    inodes: BTreeMap<usize, Inode>,
    names: BTreeMap<String, usize>,
    durable_names: BTreeMap<String, usize>,
    changes: Vec<Vec<NameChange>>,
    next_inode: usize,
    /// The result of `free_bytes`.
    pub(crate) free_bytes: u64,
    /// The promises made so far by the owner of the disk.
    pub promised: Promised,
}

#[derive(Debug, Default)]
struct Shared {
    state: State,
    snapshots: Option<Vec<State>>,
    fault: Option<(Call, usize, DiskFault)>,
    /// Whether syncs succeed without doing anything.
    lies: bool,
    calls: usize,
    trace: Vec<(Call, usize, u64, usize)>,
}

/// A simulated disk.
#[derive(Debug, Clone, Default)]
pub struct SimDisk(Arc<Mutex<Shared>>);

/// An open file of a simulated disk.
#[derive(Debug, Clone)]
pub struct SimFile {
    disk: SimDisk,
    inode: usize,
    from: ReadFrom,
}

impl State {
    /// The state after a power cut with an outcome chosen by `random`.
    #[must_use]
    pub fn crash(&self, random: &mut Random) -> State {
        let next_inode = self.next_inode;
        let promised = Promised { os: self.promised.disk, ..self.promised };
        let mut state = State { next_inode, promised, ..State::default() };
        state.names = self.durable_names.clone();
        for changes in self.changes.iter().take(random.below(self.changes.len() + 1)) {
            apply(&mut state.names, changes);
        }
        state.durable_names = state.names.clone();
        for inode in state.names.values() {
            let old = self.inodes.get(inode).cloned().unwrap_or_default();
            let is_synced = old.dirty.is_empty() && old.lens.is_empty();
            let bytes = if is_synced { old.durable } else { Arc::new(torn(&old, random)) };
            state.inodes.insert(*inode, Inode { now: bytes.clone(), durable: bytes, ..Inode::default() });
        }
        state
    }

    /// Whether a sync has failed, so that the cache shows content that will never be durable.
    #[must_use]
    pub fn has_lost(&self) -> bool {
        self.inodes.values().any(|inode| inode.has_lost)
    }

    /// Corrupts a file as the medium might.
    pub fn damage(&mut self, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let inode = self.inodes.get_mut(&self.names[name]).expect("the file is there");
        change(Arc::make_mut(&mut inode.now));
        inode.durable = inode.now.clone();
    }

    /// The names of all files, sorted.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.names.keys().cloned().collect()
    }

    /// The content of an existing file, as seen through the cache.
    #[must_use]
    pub fn bytes(&self, name: &str) -> &[u8] {
        &self.inodes[&self.names[name]].now
    }
}

/// The content after a power cut: for each dirty sector an independently chosen version, possibly
/// the durable one.
fn torn(inode: &Inode, random: &mut Random) -> Vec<u8> {
    let mut bytes = inode.durable.to_vec();
    if !inode.lens.is_empty() {
        let kept = random.below(inode.lens.len() + 1);
        inode.lens.iter().take(kept).for_each(|len| bytes.resize(*len, 0));
    }
    for (sector, versions) in inode.dirty.iter() {
        let Some(version) = random.below(versions.len() + 1).checked_sub(1) else { continue };
        let at = sector * SECTOR;
        bytes.resize(bytes.len().max(at + SECTOR), 0);
        bytes[at..at + SECTOR].copy_from_slice(&versions[version]);
    }
    bytes
}

fn shown(inode: &Inode, from: ReadFrom) -> Cow<'_, [u8]> {
    match from {
        ReadFrom::Device if inode.has_lost => Cow::Owned(written_back(inode)),
        _ => Cow::Borrowed(&inode.now),
    }
}

/// The content on the device after the last version of each dirty sector is written back.
fn written_back(inode: &Inode) -> Vec<u8> {
    let mut bytes = inode.durable.to_vec();
    inode.lens.iter().for_each(|len| bytes.resize(*len, 0));
    for (sector, versions) in inode.dirty.iter() {
        let (at, version) = (sector * SECTOR, versions.last().expect("a dirty sector has one"));
        bytes.resize(bytes.len().max(at + SECTOR), 0);
        bytes[at..at + SECTOR].copy_from_slice(version);
    }
    bytes
}

fn apply(names: &mut BTreeMap<String, usize>, changes: &[NameChange]) {
    for change in changes {
        match change {
            NameChange::Set(name, inode) => drop(names.insert(name.clone(), *inode)),
            NameChange::Unset(name) => drop(names.remove(name)),
        }
    }
}

impl SimDisk {
    /// A disk in this state.
    #[must_use]
    pub fn new(state: State) -> SimDisk {
        SimDisk(Arc::new(Mutex::new(Shared { state, ..Shared::default() })))
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.0.lock().expect("no test panics under the lock")
    }

    /// The current state.
    #[must_use]
    pub fn state(&self) -> State {
        self.lock().state.clone()
    }

    /// Starts recording the state after each call that changes something.
    pub fn watch(&self) {
        self.lock().snapshots = Some(Vec::new());
    }

    /// Takes the recorded states.
    #[must_use]
    pub fn take_snapshots(&self) -> Vec<State> {
        self.lock().snapshots.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Updates the promises.
    pub fn promise(&self, promise: impl FnOnce(&mut Promised)) {
        let mut shared = self.lock();
        promise(&mut shared.state.promised);
        shared.snapshot();
    }

    /// Sets the result of `free_bytes`; writes do not reduce it.
    #[cfg(test)]
    pub(crate) fn set_free_bytes(&self, bytes: u64) {
        self.lock().state.free_bytes = bytes;
    }

    /// Makes the `nth` next call of this kind fail, counted from 0.
    pub fn inject(&self, call: Call, nth: usize, fault: DiskFault) {
        self.lock().fault = Some((call, nth, fault));
    }

    /// Makes later syncs of files succeed without effect, as on faulty devices.
    pub fn drop_syncs(&self) {
        self.lock().lies = true;
    }

    /// Removes the fault planned by `inject`.
    pub fn clear_faults(&self) {
        self.lock().fault = None;
    }

    /// Every call so far: kind, file number, offset and length.
    #[must_use]
    pub fn trace(&self) -> Vec<(Call, usize, u64, usize)> {
        self.lock().trace.clone()
    }

    /// Takes the calls recorded since the last `take_trace`.
    #[must_use]
    pub fn take_trace(&self) -> Vec<(Call, usize, u64, usize)> {
        std::mem::take(&mut self.lock().trace)
    }

    fn change_names(&self, change: impl FnOnce(&mut State) -> io::Result<Vec<NameChange>>) -> io::Result<()> {
        let mut shared = self.lock();
        let changes = change(&mut shared.state)?;
        apply(&mut shared.state.names, &changes);
        shared.state.changes.push(changes);
        shared.snapshot();
        Ok(())
    }
}

impl Shared {
    fn snapshot(&mut self) {
        if let Some(snapshots) = &mut self.snapshots {
            snapshots.push(self.state.clone());
        }
    }

    fn meet(&mut self, call: Call, inode: usize, at: u64, len: usize) -> io::Result<usize> {
        self.calls += 1;
        self.trace.push((call, inode, at, len));
        match &mut self.fault {
            Some((kind, 0, fault)) if *kind == call => {
                let fault = *fault;
                self.fault = None;
                match fault {
                    DiskFault::Error(code) => Err(io::Error::from_raw_os_error(code)),
                    DiskFault::Short => Ok(len / 2 / SECTOR * SECTOR),
                }
            }
            Some((kind, left, _)) if *kind == call => {
                *left -= 1;
                Ok(len)
            }
            _ => Ok(len),
        }
    }
}

impl Disk for SimDisk {
    type File = SimFile;

    fn create(&self, name: &str) -> io::Result<SimFile> {
        let mut made = 0;
        self.change_names(|state| {
            made = state.next_inode;
            state.next_inode += 1;
            state.inodes.insert(made, Inode::default());
            Ok(vec![NameChange::Set(name.to_string(), made)])
        })?;
        Ok(SimFile { disk: self.clone(), inode: made, from: ReadFrom::Cache })
    }

    fn open(&self, name: &str) -> io::Result<SimFile> {
        let inode = *self.lock().state.names.get(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(SimFile { disk: self.clone(), inode, from: ReadFrom::Cache })
    }

    fn open_to_read(&self, name: &str, from: ReadFrom) -> io::Result<SimFile> {
        Ok(SimFile { from, ..self.open(name)? })
    }

    /// Reads from the cache, or from the device after the cache has been written back.
    fn read(&self, name: &str, from: ReadFrom, bytes_max: usize) -> io::Result<Bytes> {
        let shared = self.lock();
        let inode = shared.state.names.get(name).and_then(|inode| shared.state.inodes.get(inode));
        let inode = inode.ok_or(io::ErrorKind::NotFound)?;
        let mut bytes = shown(inode, from).to_vec();
        bytes.truncate(bytes_max);
        Ok(Bytes::from(bytes))
    }

    fn free_bytes(&self) -> io::Result<u64> {
        Ok(self.lock().state.free_bytes)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.change_names(|state| {
            let inode = *state.names.get(from).ok_or(io::ErrorKind::NotFound)?;
            Ok(vec![NameChange::Unset(from.to_string()), NameChange::Set(to.to_string(), inode)])
        })
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.change_names(|_| Ok(vec![NameChange::Unset(name.to_string())]))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.lock().state.names())
    }

    fn sync_folder(&self) -> io::Result<()> {
        let mut shared = self.lock();
        shared.meet(Call::SyncFolder, 0, 0, 0)?;
        shared.state.changes.clear();
        shared.state.durable_names = shared.state.names.clone();
        shared.snapshot();
        Ok(())
    }
}

impl DiskFile for SimFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let shared = self.disk.lock();
        let Some(inode) = shared.state.inodes.get(&self.inode) else { return Ok(0) };
        let shown = shown(inode, self.from);
        let there = shown.get(offset as usize..).unwrap_or_default();
        let len = there.len().min(bytes.len());
        bytes[..len].copy_from_slice(&there[..len]);
        Ok(len)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let (at, mut shared) = (offset as usize, self.disk.lock());
        assert!(at.is_multiple_of(SECTOR) && bytes.len().is_multiple_of(SECTOR), "the store writes sectors");
        let len = shared.meet(Call::Write, self.inode, offset, bytes.len())?;
        let inode = shared.state.inodes.get_mut(&self.inode).expect("a file that is open is there");
        let now = Arc::make_mut(&mut inode.now);
        now.resize(now.len().max(at + len), 0);
        now[at..at + len].copy_from_slice(&bytes[..len]);
        let dirty = Arc::make_mut(&mut inode.dirty);
        for (number, sector) in bytes[..len].as_chunks::<SECTOR>().0.iter().enumerate() {
            dirty.entry(at / SECTOR + number).or_default().push(*sector);
        }
        shared.snapshot();
        Ok(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut shared = self.disk.lock();
        let met = shared.meet(Call::Sync, self.inode, 0, 0);
        if shared.lies {
            return met.map(drop);
        }
        let inode = shared.state.inodes.get_mut(&self.inode).expect("a file that is open is there");
        match (&met, inode.has_lost) {
            (Err(_), _) => inode.has_lost = true,
            (Ok(_), false) => inode.durable = inode.now.clone(),
            (Ok(_), true) => inode.durable = Arc::new(written_back(inode)),
        }
        (inode.dirty, inode.lens) = Default::default();
        shared.snapshot();
        met.map(drop)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut shared = self.disk.lock();
        let len = len as usize;
        assert!(len.is_multiple_of(SECTOR), "the store has files of whole sectors");
        shared.meet(Call::Write, self.inode, len as u64, 0)?;
        let inode = shared.state.inodes.get_mut(&self.inode).expect("a file that is open is there");
        Arc::make_mut(&mut inode.now).resize(len, 0);
        Arc::make_mut(&mut inode.lens).push(len);
        Arc::make_mut(&mut inode.dirty).retain(|sector, _| sector * SECTOR < len);
        shared.snapshot();
        Ok(())
    }

    fn punch_holes(&self, part: Range<u64>) -> io::Result<bool> {
        // Linux does the same for an empty range.
        if part.is_empty() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let zeros = vec![0; usize::try_from(part.end - part.start).map_err(io::Error::other)?];
        self.write_at(&zeros, part.start).map(|_| true)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.disk.lock().state.inodes.get(&self.inode).map_or(0, |inode| inode.now.len() as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(sync_at: usize) -> SimDisk {
        let disk = SimDisk::default();
        let file = disk.create("a").expect("it takes a file");
        disk.sync_folder().expect("the disk is well");
        for step in 0..8u8 {
            let sectors = [step + 1; 4 * SECTOR];
            file.write_at(&sectors, u64::from(step) * SECTOR as u64).expect("the disk is well");
            if usize::from(step) == sync_at {
                file.sync_data().expect("the disk is well");
            }
        }
        disk
    }

    #[test]
    fn what_is_synced_is_kept_and_the_rest_is_torn() {
        let mut lengths = std::collections::BTreeSet::new();
        for seed in 0..200 {
            let state = written(3).state().crash(&mut Random(seed));
            let bytes = state.bytes("a");
            let first: Vec<u8> = bytes.chunks(SECTOR).map(|sector| sector[0]).collect();
            assert_eq!(first[..4], [1, 2, 3, 4], "it was synced and not written again");
            assert!(first[4..7].iter().all(|version| *version >= 4));
            lengths.insert(bytes.len() / SECTOR);
        }
        assert!(lengths.len() >= 4, "{lengths:?}");
    }

    #[test]
    fn the_same_seed_leaves_the_same() {
        for seed in 0..20 {
            let left = [0, 1].map(|_| written(2).state().crash(&mut Random(seed)).bytes("a").to_vec());
            assert!(left[0] == left[1] && written(2).trace() == written(2).trace(), "{seed}");
        }
    }

    #[test]
    fn a_name_needs_a_sync_of_its_folder() {
        let disk = SimDisk::default();
        disk.create("a").expect("it takes a file");
        let left =
            |disk: &SimDisk| (0..20).map(|seed| disk.state().crash(&mut Random(seed)).names().len()).min();
        assert_eq!(left(&disk), Some(0));
        disk.sync_folder().expect("the disk is well");
        assert_eq!(left(&disk), Some(1));
    }

    #[test]
    fn a_length_needs_a_sync() {
        for (len, expected) in [(16 * SECTOR, vec![8, 16]), (2 * SECTOR, vec![2, 8])] {
            let disk = SimDisk::default();
            let file = disk.create("a").expect("it takes a file");
            disk.sync_folder().expect("the disk is well");
            file.write_at(&[1; 8 * SECTOR], 0).expect("the disk is well");
            file.sync_data().expect("the disk is well");
            file.set_len(len as u64).expect("the disk is well");
            let left = |seed| disk.state().crash(&mut Random(seed)).bytes("a").len() / SECTOR;
            let lens: std::collections::BTreeSet<usize> = (0..20).map(left).collect();
            assert_eq!(lens.into_iter().collect::<Vec<_>>(), expected);
            file.sync_data().expect("the disk is well");
            assert_eq!(disk.state().crash(&mut Random(0)).bytes("a").len(), len);
        }
    }

    #[test]
    fn after_a_failed_sync_another_one_saves_nothing() {
        let disk = SimDisk::default();
        let file = disk.create("a").expect("it takes a file");
        disk.sync_folder().expect("the disk is well");
        file.write_at(&[1; SECTOR], 0).expect("the disk is well");
        disk.inject(Call::Sync, 0, DiskFault::Error(EIO));
        assert_eq!(file.sync_data().map_err(|error| error.raw_os_error()), Err(Some(EIO)));
        file.sync_data().expect("that is the trap");
        assert_eq!(disk.state().crash(&mut Random(0)).bytes("a").len(), 0);
    }
}
