//! A closed loop: one thread keeps a fixed number of 1 KB records in flight, and frees files as a
//! checkpointer does.

use std::collections::VecDeque;
use std::error::Error;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, mpsc::RecvError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use imori_store::disk::RealDisk;
use imori_store::journal;
use imori_store::journal::{Commit, Committer, Listener, NewRecord};
use imori_store::limits::FILE_BYTES_DEFAULT;
use imori_store::lsn::Lsn;
use imori_store::records::RecordType;
use imori_store::seal::StoreId;
use imori_store::settings::{OnDamage, Settings};
use rustix::time::{ClockId, clock_gettime};

use crate::figures::Figures;

/// The size of a record's payload in bytes.
pub(crate) const RECORD_BYTES: usize = 1024;
const BLOCK_BYTES: usize = 4096;

/// The number of live files above which a checkpoint is written.
const LIVE_FILES: usize = 4;

/// The maximum number of bytes queued while a journal is filled.
const QUEUED_BYTES: usize = 8 << 20;

type Started = (Committer<RealDisk>, Receiver<Lsn>, Arc<AtomicU64>);

/// The results of a run.
pub(crate) struct Load {
    pub(crate) latency: Figures,
    records: f64,
    seconds: f64,
    cpu_seconds: f64,
    batches: f64,
}

impl Load {
    pub(crate) fn per_second(&self) -> f64 {
        self.records / self.seconds
    }

    pub(crate) fn batch_records(&self) -> f64 {
        self.records / self.batches
    }

    /// The bytes written for a batch of mean size.
    pub(crate) fn batch_bytes(&self) -> usize {
        let bytes = self.batch_records() * (RECORD_BYTES + 24) as f64;
        (bytes as usize).next_multiple_of(BLOCK_BYTES)
    }

    /// The processor time per million records, of the whole process including the appending thread.
    pub(crate) fn cpu_per_million(&self) -> f64 {
        self.cpu_seconds / self.records * 1e6
    }
}

struct Teller {
    released: Sender<Lsn>,
    batches: Arc<AtomicU64>,
}

impl Listener for Teller {
    fn written(&self, _through: Lsn) {}

    fn released(&self, through: Lsn) {
        let _ = self.released.send(through);
    }

    fn committed(&self, _commit: &Commit) {
        self.batches.fetch_add(1, Ordering::Relaxed);
    }

    fn poisoned(&self, cause: &io::Error) {
        println!("the disk failed: {cause}");
    }
}

/// The settings of the journals measured here.
pub(crate) fn settings() -> Result<Settings, Box<dyn Error>> {
    Ok(Settings::new(StoreId(*b"of this bench..!"), 0, FILE_BYTES_DEFAULT, OnDamage::Quarantine)?)
}

/// A record of 1 KB.
pub(crate) fn record(number: u64) -> NewRecord {
    let mut payload = [0x5a; RECORD_BYTES];
    payload[..8].copy_from_slice(&number.to_le_bytes());
    NewRecord { kind: RecordType::Message, payload: Bytes::copy_from_slice(&payload) }
}

/// Creates a journal with this many 1 KB records.
pub(crate) fn fill(folder: &Path, records: u64) -> Result<(), Box<dyn Error>> {
    let (committer, told, _) = start(folder)?;
    for number in 0..records {
        committer.append([record(number)])?;
        while committer.queued_bytes() > QUEUED_BYTES {
            told.recv()?;
        }
    }
    Ok(())
}

/// Creates an empty journal.
fn start(folder: &Path) -> Result<Started, Box<dyn Error>> {
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder)?;
    let disk = RealDisk::new(folder.to_owned());
    let opened = journal::open(&disk, &settings()?)?;
    let (released, told) = channel();
    let batches = Arc::new(AtomicU64::new(0));
    let teller = Teller { released, batches: batches.clone() };
    Ok((Committer::start(disk, opened, Box::new(teller))?, told, batches))
}

/// Keeps `in_flight` records in flight for `time`, after a warm-up that does not count.
pub(crate) fn run(folder: &Path, in_flight: usize, time: Duration) -> Result<Load, Box<dyn Error>> {
    let folder = folder.join("journal");
    let (committer, told, batches) = start(&folder)?;
    let mut client = Client { committer, told, under_way: VecDeque::new(), times: Vec::new() };
    for _ in 0..in_flight {
        client.append()?;
    }
    // Warm up until the first files are filled with zeros and freed files have been reused.
    client.go_on(time.max(Duration::from_secs(1)))?;
    client.times.clear();
    let (begin, cpu, before) = (Instant::now(), cpu_seconds(), batches.load(Ordering::Relaxed));
    client.go_on(time)?;
    let (seconds, cpu_seconds) = (begin.elapsed().as_secs_f64(), cpu_seconds() - cpu);
    let batches = (batches.load(Ordering::Relaxed) - before) as f64;
    let (latency, records) = (Figures::new(&client.times), client.times.len() as f64);
    drop(client);
    fs::remove_dir_all(&folder)?;
    Ok(Load { latency, records, seconds, cpu_seconds, batches })
}

struct Client {
    committer: Committer<RealDisk>,
    told: Receiver<Lsn>,
    under_way: VecDeque<(Lsn, Instant)>,
    times: Vec<Duration>,
}

impl Client {
    fn append(&mut self) -> Result<(), Box<dyn Error>> {
        let begin = Instant::now();
        let range = self.committer.append([record(self.times.len() as u64)])?;
        self.under_way.push_back((range.last, begin));
        Ok(())
    }

    fn go_on(&mut self, time: Duration) -> Result<(), Box<dyn Error>> {
        let begin = Instant::now();
        while begin.elapsed() < time {
            let through = self.next_released()?;
            let now = Instant::now();
            let mut count = 0;
            while self.under_way.front().is_some_and(|(lsn, _)| *lsn <= through) {
                let (_, since) = self.under_way.pop_front().expect("there is one");
                self.times.push(now - since);
                count += 1;
            }
            for _ in 0..count {
                self.append()?;
            }
            if self.committer.live_files() > LIVE_FILES {
                self.committer.append_checkpoint(through, &[])?;
            }
        }
        Ok(())
    }

    fn next_released(&self) -> Result<Lsn, RecvError> {
        let through = self.told.recv()?;
        Ok(self.told.try_iter().last().unwrap_or(through))
    }
}

/// The processor time used by this process so far.
pub(crate) fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
