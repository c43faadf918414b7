//! Measures reading a journal of 256 MiB and one of 1 GiB, with all records needed.

use std::error::Error;
use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use imori_store::disk::{ReadFrom, RealDisk};
use imori_store::recovery;

use crate::figures::Figures;
use crate::load;
use crate::probe;

/// The number of 1 KB records in a quarter of a gigabyte.
const QUARTER: u64 = 250_000;

/// Alternates direct reads and reads through the page cache, and compares them with plain reads.
pub(crate) fn measure(folder: &Path, rounds: usize) -> Result<(), Box<dyn Error>> {
    println!(
        "{:>7} {:>9} {:>10} {:>10} {:>10} {:>12}",
        "MiB", "records", "device ms", "cache ms", "cache cpu", "reads alone"
    );
    for records in [QUARTER, 4 * QUARTER] {
        let folder = folder.join("recovery");
        load::fill(&folder, records)?;
        let disk = RealDisk::new(folder.clone());
        let [mut device, mut cache, mut cpu, mut bare] = [const { Vec::new() }; 4];
        for _ in 0..rounds {
            bare.push(probe::read(&folder)?);
            device.push(recover(&disk, ReadFrom::Device, records)?);
            // Direct reads do not fill the page cache, so read once more to fill it.
            recover(&disk, ReadFrom::Cache, records)?;
            let before = load::cpu_seconds();
            cache.push(recover(&disk, ReadFrom::Cache, records)?);
            cpu.push(Duration::from_secs_f64(load::cpu_seconds() - before));
        }
        let mib = (records * (load::RECORD_BYTES as u64 + 24)) >> 20;
        let [device, cache, cpu, bare] =
            [device, cache, cpu, bare].map(|times| Figures::new(&times).at(0.5) / 1000);
        println!("{mib:>7} {records:>9} {device:>10} {cache:>10} {cpu:>10} {bare:>12}");
        fs::remove_dir_all(&folder)?;
    }
    println!(
        "medians of the rounds; cpu: of all threads, the memory given back included; alone: direct reads of the same files"
    );
    Ok(())
}

fn recover(disk: &RealDisk, from: ReadFrom, records: u64) -> Result<Duration, Box<dyn Error>> {
    let begin = Instant::now();
    let (_, messages) = recovery::recover_apart(disk, &load::settings()?.reading_from(from))?;
    let mut taken = 0;
    messages.each(|_| {
        taken += 1;
        Ok::<(), io::Error>(())
    })?;
    assert_eq!(taken, records, "all of it is needed");
    Ok(begin.elapsed())
}
