//! `syncs`: counts how often each broker flushes to disk under the same durable load.
//!
//! A confirm does not show how it came about; flushes can be observed from outside.

use std::fs;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use imori_bench::amount::{duration, size};
use imori_bench::interrupt;
use imori_bench::options::Level;
use imori_bench::probe::process::tree;
use imori_bench::record::levels::Levels;
use imori_bench::record::report::Report;
use imori_bench::report::fit;
use serde::Serialize;

use crate::peers::found::find;
use crate::peers::ourselves::Ourselves;
use crate::peers::peer::{Choice, Own, Peer};
use crate::peers::running::Running;
use crate::versus::arguments::TurnOptions;
use crate::versus::comparison::Job;
use crate::versus::counting::{Counted, Counter, FLUSHES, synchronous_files};
use crate::versus::text::{head, number, row};
use crate::versus::turns::{Side, measure, say};

/// Time from the start of the load to the start of counting, so that connections are open and programs warm.
const LEAD: Duration = Duration::from_secs(4);

/// The part of `LEAD` that the load uses as its own warm-up.
const WARMUP: Duration = Duration::from_secs(2);

/// Time by which the load outlasts the counting.
const TAIL: Duration = Duration::from_secs(5);

/// Counts how often brokers wait for their disk under durable load.
#[derive(Debug, Clone, Args)]
pub struct SyncsArgs {
    /// Peers as for `versus`, which this command starts.
    #[arg(required = true)]
    pub(crate) peers: Vec<String>,
    /// The safety level of the messages.
    #[arg(long, value_enum, default_value_t = Level::Disk)]
    pub(crate) level: Level,
    /// Messages that each publisher may have unconfirmed.
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) confirm: u32,
    /// Connections that publish; as many others consume.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) publishers: u32,
    /// Bytes of each body: `1024`, `1KiB` or `1KB`, which is 1000.
    #[arg(long, value_parser = size, default_value = "1024")]
    pub(crate) size: usize,
    /// Time to count.
    #[arg(long, value_parser = duration, default_value = "5s")]
    pub(crate) time: Duration,
    /// The program that counts; `perf` if permitted, otherwise `strace`.
    #[arg(long, value_enum)]
    pub(crate) by: Option<Counter>,
    /// File for the result as JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) turns: TurnOptions,
}

/// The counts of one broker in one turn.
#[derive(Debug, Clone, Serialize)]
struct SyncCounts {
    peer: String,
    turn: u32,
    version: String,
    seconds: f64,
    confirms_per_second: f64,
    flushes_per_second: f64,
    /// Absent if there was no flush.
    confirms_per_flush: Option<f64>,
    /// Calls per second, by name.
    calls_per_second: Vec<(String, f64)>,
    /// Number of files with synchronous writes.
    synchronous_files: u64,
    levels: Option<Levels>,
}

/// Runs all peers in turns and returns the exit code: 0 done, 1 a turn is missing.
pub(crate) fn run(args: &SyncsArgs) -> Result<u8> {
    let counter = args.by.map_or_else(Counter::found, Ok)?;
    let ours = Ourselves::found(&["syncs"])?;
    let peers = Peer::named(&args.peers, &Own::default(), &[], Choice::Common)?;
    let mut all = Vec::new();
    let mut code = 0;
    for turn in 1..=args.turns.rounds.unwrap_or(1) {
        for peer in &peers {
            if interrupt::is_asked_for() {
                bail!("stopped by hand");
            }
            say(&format!("turn {turn}: {}", peer.name));
            match one(peer, turn, args, counter, &ours) {
                Ok(seen) => all.push(seen),
                Err(error) => {
                    say(&format!("{}: {error:#}", peer.name));
                    code = 1;
                }
            }
        }
    }
    if let Some(file) = &args.json {
        let json = serde_json::to_vec_pretty(&all)?;
        fs::write(file, json).with_context(|| {
            format!("`{}` cannot be written; name another file with `--json`", file.display())
        })?;
    }
    fit::print(&markdown(args, counter, &all))?;
    Ok(code)
}

/// Starts a peer, puts it under load, counts, and stops it.
fn one(peer: &Peer, turn: u32, args: &SyncsArgs, counter: Counter, ours: &Ourselves) -> Result<SyncCounts> {
    if let Some(why) = peer.cannot("queue") {
        bail!("{why}");
    }
    let side = Side { peer: peer.clone(), found: find(peer, &args.turns.places())? };
    let running = Running::start(&side.peer, side.found.as_ref(), ours, args.turns.cpus_broker.as_deref())?;
    let pids = tree(&running.pids)?;
    let job = job(args);
    let cpus = args.turns.cpus_client.as_deref();
    let (counted, files, report) = std::thread::scope(|scope| {
        let load = scope.spawn(|| measure(&side, &running, &job, ours, cpus, || {}));
        sleep(LEAD);
        let counted = match load.is_finished() {
            true => Err(anyhow!("the load ended before it was counted")),
            false => counter.count(&pids, args.time),
        };
        let files = synchronous_files(&pids);
        let report = load.join().unwrap_or_else(|_| Err(anyhow!("the load panicked")));
        report.and_then(|(report, _)| Ok((counted?, files, report)))
    })?;
    let version = side.found.map(|found| found.version).unwrap_or_default();
    seen((peer, turn, version), &counted, files, &report)
        .context("no whole second of the load was counted; count for longer with `--time`")
}

/// The load: publishers with confirms, consumers that acknowledge.
fn job(args: &SyncsArgs) -> Job {
    let time = (args.time + LEAD.saturating_sub(WARMUP) + TAIL).as_millis();
    let words = format!(
        "queue --closed --level {} --confirm {} --publishers {count} --consumers {count} --size {} \
         --ack client-individual --warmup {}ms --time {time}ms",
        args.level.name(),
        args.confirm,
        args.size,
        WARMUP.as_millis(),
        count = args.publishers,
    );
    Job { name: "queue".to_owned(), arguments: words.split_whitespace().map(str::to_owned).collect() }
}

/// Combines the counts with the seconds of the load that lie within the counting.
fn seen(
    (peer, turn, version): (&Peer, u32, String),
    counted: &Counted,
    synchronous_files: u64,
    report: &Report,
) -> Option<SyncCounts> {
    let until = counted.began + counted.seconds;
    let is_within = |t: u32| {
        let start = report.started_at + f64::from(t);
        start >= counted.began && start + 1.0 <= until
    };
    let confirmed: Vec<u64> =
        report.rows.iter().filter(|row| is_within(row.t)).map(|row| row.confirmed).collect();
    if confirmed.is_empty() {
        return None;
    }
    let confirms_per_second = confirmed.iter().sum::<u64>() as f64 / confirmed.len() as f64;
    let flushes_per_second = counted.flushes() as f64 / counted.seconds;
    Some(SyncCounts {
        peer: peer.name.clone(),
        turn,
        version,
        seconds: counted.seconds,
        confirms_per_second,
        flushes_per_second,
        confirms_per_flush: (flushes_per_second > 0.0).then(|| confirms_per_second / flushes_per_second),
        calls_per_second: counted
            .calls
            .iter()
            .map(|(name, calls)| (name.clone(), *calls as f64 / counted.seconds))
            .collect(),
        synchronous_files,
        levels: report.levels.clone(),
    })
}

/// A table with one column per turn of each peer.
fn markdown(args: &SyncsArgs, counter: Counter, all: &[SyncCounts]) -> String {
    let by = if counter == Counter::Perf { "perf" } else { "strace, which slows down what it counts" };
    let mut text = format!(
        "# Flushes under durable load\n\n- level {}, {} publishers with {} unconfirmed each, {} B, consumers \
         acknowledge each message; counted for {:.1} s by {by}\n- a flush is a call of {}\n",
        args.level.name(),
        args.publishers,
        args.confirm,
        args.size,
        args.time.as_secs_f64(),
        FLUSHES.join(", ")
    );
    let names: Vec<&str> = all.iter().map(|seen| seen.peer.as_str()).collect();
    head(&mut text, "a second", &names);
    let mut add = |title: &str, of: &dyn Fn(&SyncCounts) -> String| {
        let cells: Vec<String> = all.iter().map(of).collect();
        row(&mut text, title, &cells);
    };
    add("version", &|seen| seen.version.clone());
    add("confirms", &|seen| number(seen.confirms_per_second));
    add("flushes", &|seen| number(seen.flushes_per_second));
    add("confirms for each flush", &|seen| seen.confirms_per_flush.map_or("no flush".to_owned(), number));
    let mut calls: Vec<&String> =
        all.iter().flat_map(|seen| seen.calls_per_second.iter().map(|(name, _)| name)).collect();
    calls.sort();
    calls.dedup();
    for call in calls {
        add(&format!("calls of {call}"), &|seen| {
            let made = seen.calls_per_second.iter().find(|(name, _)| name == call);
            made.map_or("0".to_owned(), |(_, made)| number(*made))
        });
    }
    add("files of which each write waits", &|seen| seen.synchronous_files.to_string());
    add("level of the confirms", &|seen| seen.levels.as_ref().map_or("not said".to_owned(), Levels::said));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::versus::arguments::check;
    use crate::versus::sample::comparison;
    use imori_bench::Second;

    fn args(words: &str) -> SyncsArgs {
        #[derive(clap::Parser)]
        #[command(no_binary_name = true)]
        struct Line {
            #[command(flatten)]
            args: SyncsArgs,
        }
        <Line as clap::Parser>::parse_from(words.split_whitespace()).args
    }

    fn counted(began: f64, seconds: f64, calls: &[(&str, u64)]) -> Counted {
        let calls = calls.iter().map(|(name, calls)| ((*name).to_owned(), *calls)).collect();
        Counted { began, seconds, calls }
    }

    #[test]
    fn the_load_is_one_that_its_scenario_takes() {
        for words in ["imori", "rabbitmq artemis --level os --confirm 1 --size 16 --time 2s"] {
            let job = job(&args(words));
            let (scenario, arguments) = job.arguments.split_first().unwrap();
            check(scenario, arguments).unwrap();
        }
    }

    #[test]
    fn whole_seconds_within_what_was_counted_give_the_confirms() {
        let mut report = comparison(&[("rabbitmq", &[1.0])]).runs.remove(0).report;
        report.started_at = 100.0;
        let confirmed = |t| if (10..15).contains(&t) { 1_000 } else { 7 };
        report.rows = (0..60).map(|t| Second { t, confirmed: confirmed(t), ..Second::default() }).collect();
        let peer = &Peer::named(&["rabbitmq".to_owned()], &Own::default(), &[], Choice::Common).unwrap()[0];
        let of = |counted: &Counted| seen((peer, 1, String::new()), counted, 0, &report);
        let flushed =
            of(&counted(109.5, 6.0, &[("fdatasync", 240), ("fsync", 60), ("pwrite64", 9)])).unwrap();
        assert_eq!((flushed.confirms_per_second, flushed.flushes_per_second), (1_000.0, 50.0));
        assert_eq!(flushed.confirms_per_flush, Some(20.0));
        assert_eq!(of(&counted(109.5, 6.0, &[("pwrite64", 9)])).unwrap().confirms_per_flush, None);
        assert!(of(&counted(110.5, 1.0, &[])).is_none(), "no second lies wholly within it");
        let text = markdown(&args("rabbitmq"), Counter::Perf, &[flushed]);
        for part in
            ["| confirms | 1 000 |", "| confirms for each flush | 20.0 |", "| calls of pwrite64 | 1.50 |"]
        {
            assert!(text.contains(part), "`{part}` is not in\n{text}");
        }
    }
}
