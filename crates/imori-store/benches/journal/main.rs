//! Measures commits on a real disk, in comparison with bare writes to the same disk.
//!
//! `cargo bench -p imori-store --bench journal -- [FOLDER] [--seconds S] [--rounds N] [--direct] [--recovery]`.
//!
//! The journal and a bare write with `fdatasync` take turns, so that other load on the machine
//! affects both. `--direct` makes the bare write bypass the page cache. FOLDER chooses the disk;
//! all files created there are removed.

#![allow(clippy::print_stdout, reason = "a benchmark prints its results")]

use std::env;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

mod figures;
mod load;
mod probe;
mod recovery;

/// The numbers of records in flight.
const IN_FLIGHT: [usize; 4] = [1, 16, 128, 1024];

struct Choice {
    folder: PathBuf,
    seconds: f64,
    rounds: usize,
    is_direct: bool,
    is_recovery: bool,
}

fn main() -> Result<(), Box<dyn Error>> {
    let choice = choice()?;
    fs::create_dir_all(&choice.folder)?;
    match choice.is_recovery {
        true => recovery::measure(&choice.folder, choice.rounds),
        false => commits(&choice),
    }
}

fn choice() -> Result<Choice, Box<dyn Error>> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("journal-bench");
    let mut choice = Choice { folder, seconds: 1.5, rounds: 3, is_direct: false, is_recovery: false };
    let mut arguments = env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--bench" => {}
            "--direct" => choice.is_direct = true,
            "--recovery" => choice.is_recovery = true,
            "--seconds" => choice.seconds = arguments.next().ok_or("--seconds needs a number")?.parse()?,
            "--rounds" => choice.rounds = arguments.next().ok_or("--rounds needs a number")?.parse()?,
            folder => choice.folder = PathBuf::from(folder),
        }
    }
    Ok(choice)
}

/// Runs the journal and the probe in turns, and prints medians of the rounds.
fn commits(choice: &Choice) -> Result<(), Box<dyn Error>> {
    let seconds = Duration::from_secs_f64(choice.seconds);
    println!(
        "{:>9} {:>9} {:>6} {:>6} {:>6} {:>7} {:>8} | {:>6} {:>6} {:>6} | {:>8} {:>8} {:>7}",
        "in flight",
        "records/s",
        "p50",
        "p99",
        "max",
        "batch",
        "cpu s/M",
        "p50",
        "p99",
        "max",
        "p50 net",
        "p99 net",
        "share"
    );
    for in_flight in IN_FLIGHT {
        let mut rounds = Vec::new();
        for _ in 0..choice.rounds {
            let load = load::run(&choice.folder, in_flight, seconds)?;
            let device = probe::run(&choice.folder, load.batch_bytes(), seconds / 3, choice.is_direct)?;
            rounds.push((load, device));
        }
        rounds.sort_by(|(one, _), (other, _)| one.per_second().total_cmp(&other.per_second()));
        let (load, device) = &rounds[rounds.len() / 2];
        let (ours, bare) = (&load.latency, &device.latency);
        println!(
            "{in_flight:>9} {:>9.0} {:>6} {:>6} {:>6} {:>7.1} {:>8.2} | {:>6} {:>6} {:>6} | {:>8} {:>8} {:>6.0}%",
            load.per_second(),
            ours.at(0.5),
            ours.at(0.99),
            ours.at(1.0),
            load.batch_records(),
            load.cpu_per_million(),
            bare.at(0.5),
            bare.at(0.99),
            bare.at(1.0),
            ours.at(0.5) - bare.at(0.5),
            ours.at(0.99) - bare.at(0.99),
            // The share of what the device alone would achieve with such batches in sequence.
            100.0 * load.per_second() * bare.mean_seconds() / load.batch_records(),
        );
    }
    println!(
        "times in microseconds; behind the bars a bare write and fdatasync of the mean batch; share: of"
    );
    println!("the records that the disk would take in such batches without a pause; median of the rounds");
    Ok(())
}
