//! `experiment`: the two experiments of RPCBench, by which NewtMQ was compared in 2016, each as one command.
//!
//! There, some drivers sent all requests and then read all replies, while others had one request in
//! flight; both were drawn into one chart. Here these are two series, with a table each.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};

use crate::amount::count;
use crate::peers::ourselves::Ourselves;
use crate::peers::peer::{Choice, Own, Peer};
use crate::versus::arguments::TurnOptions;
use crate::versus::chart::{chart, file_name};
use crate::versus::compare::{RequestedGroup, begin, make, now, packed};
use crate::versus::comparison::{Comparison, Job};
use crate::versus::figures::{FIGURES, Figure};
use crate::versus::table::{facts, spread_of};
use crate::versus::text::{head, line, row, shown};
use crate::versus::turns::{self, say};

/// Which experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Which {
    /// 32 k to 512 k requests of one requester.
    Requests,
    /// 10 k requests of 4 to 64 requesters that do not know of each other.
    Concurrency,
}

/// Repeats an experiment of RPCBench for Imori, other brokers, ZeroMQ, gRPC and a plain relay.
#[derive(Debug, Clone, Args)]
pub struct ExperimentArgs {
    /// Which one.
    #[arg(value_enum)]
    pub(crate) which: Which,
    /// Peers instead of all; as for `versus`, with their protocols.
    pub(crate) peers: Vec<String>,
    /// Leave out points with more requests, or requesters, than this.
    #[arg(long, value_parser = count, value_name = "COUNT")]
    pub(crate) largest: Option<u64>,
    #[command(flatten)]
    pub(crate) turns: TurnOptions,
}

/// A table of the experiment: points that may be compared with each other.
struct Series {
    name: &'static str,
    title: &'static str,
    peers: &'static [&'static str],
    /// The quantity in which the points differ.
    across: &'static str,
    points: &'static [(u64, &'static str, &'static str)],
    /// The titles of the figures that mean something in it.
    figures: &'static [&'static str],
}

const LOCK_STEP: Series = Series {
    name: "lock-step",
    title: "One requester, one request in flight (lock-step)",
    peers: &[
        "imori:stomp",
        "imori:nats",
        "rabbitmq",
        "nats-server",
        "zeromq:rep",
        "grpc",
        "relay:stomp",
        "relay:nats",
    ],
    across: "requests",
    points: &[
        (32_000, "32 k", "rpc --depth 1 --requests 32k"),
        (64_000, "64 k", "rpc --depth 1 --requests 64k"),
        (128_000, "128 k", "rpc --depth 1 --requests 128k"),
        (256_000, "256 k", "rpc --depth 1 --requests 256k"),
        (512_000, "512 k", "rpc --depth 1 --requests 512k"),
    ],
    figures: &["operations a second", "p50, us", "p99, us", "broker CPU-s per million deliveries"],
};

/// gRPC takes no part: each of its calls is a stream of its own, of which a server allows some at a time.
const ALL_SENT: Series = Series {
    name: "all-sent",
    title: "One requester, all requests sent before the first reply is read",
    peers: &[
        "imori:stomp",
        "imori:nats",
        "rabbitmq",
        "nats-server",
        "zeromq:router",
        "relay:stomp",
        "relay:nats",
    ],
    across: "requests",
    points: &[
        (32_000, "32 k", "rpc --depth all --requests 32k"),
        (64_000, "64 k", "rpc --depth all --requests 64k"),
        (128_000, "128 k", "rpc --depth all --requests 128k"),
        (256_000, "256 k", "rpc --depth all --requests 256k"),
        (512_000, "512 k", "rpc --depth all --requests 512k"),
    ],
    figures: &["operations a second", "broker CPU-s per million deliveries", "peak RSS, MiB"],
};

const CONCURRENCY: Series = Series {
    name: "concurrency",
    title: "10 k requests of requesters that do not know of each other, each with one in flight",
    peers: LOCK_STEP.peers,
    across: "requesters",
    points: &[
        (4, "4", "rpc --depth 1 --requests 10k --independent --requesters 4"),
        (8, "8", "rpc --depth 1 --requests 10k --independent --requesters 8"),
        (16, "16", "rpc --depth 1 --requests 10k --independent --requesters 16"),
        (32, "32", "rpc --depth 1 --requests 10k --independent --requesters 32"),
        (64, "64", "rpc --depth 1 --requests 10k --independent --requesters 64"),
    ],
    figures: LOCK_STEP.figures,
};

impl Which {
    fn series(self) -> &'static [Series] {
        match self {
            Which::Requests => &[LOCK_STEP, ALL_SENT],
            Which::Concurrency => &[CONCURRENCY],
        }
    }

    fn name(self) -> &'static str {
        match self {
            Which::Requests => "requests",
            Which::Concurrency => "concurrency",
        }
    }
}

/// Runs the experiment, prints its tables, and gives the exit code: 0 done, 1 a run is missing, 3
/// something was lost or altered.
pub(crate) fn run(args: &ExperimentArgs) -> Result<u8> {
    let ours = Ourselves::found(&["experiment"])?;
    let folder = args.turns.out.clone();
    let folder =
        folder.unwrap_or_else(|| PathBuf::from(format!("imori-bench-{}-{}", args.which.name(), now())));
    make(&folder)?;
    let mut tables = String::new();
    let mut code = 0;
    for series in args.which.series() {
        let jobs = jobs(series, args.largest);
        let peers = peers(series, &args.peers)?;
        if jobs.is_empty() || peers.is_empty() {
            continue;
        }
        say(&format!("{}: {}", series.name, series.title));
        let title = series.title.to_owned();
        let wanted = vec![RequestedGroup { jobs, peers, protocol: None }];
        let (groups, mut comparison) = begin(title, wanted, &args.turns)?;
        let file = folder.join(format!("{}.json", series.name));
        turns::run(&groups, &ours, &mut comparison, |comparison| {
            comparison.save(&file)?;
            write(&folder, &(tables.clone() + &markdown(series, comparison)))
        })?;
        packed(&file);
        tables += &markdown(series, &comparison);
        draw(&folder, series, &comparison)?;
        code = code.max(comparison.exit_code());
    }
    std::io::stdout().write_all(tables.as_bytes()).context("standard output is closed")?;
    say(&format!("kept in `{}`", folder.display()));
    Ok(code)
}

/// A picture of each figure.
fn draw(folder: &Path, series: &Series, comparison: &Comparison) -> Result<()> {
    for figure in FIGURES.iter().filter(|figure| series.figures.contains(&figure.title)) {
        let file = folder.join(file_name(series.name, figure));
        fs::write(&file, chart(comparison, figure, series.title, series.across)).with_context(|| {
            format!("`{}` cannot be written; name another folder with `--out`", file.display())
        })?;
    }
    Ok(())
}

fn write(folder: &Path, text: &str) -> Result<()> {
    let file = folder.join("README.md");
    fs::write(&file, text).with_context(|| format!("`{}` cannot be written", file.display()))
}

fn jobs(series: &Series, largest: Option<u64>) -> Vec<Job> {
    let within = series.points.iter().filter(|(size, ..)| largest.is_none_or(|largest| *size <= largest));
    within
        .map(|(_, name, words)| Job {
            name: (*name).to_owned(),
            arguments: words.split_whitespace().map(str::to_owned).collect(),
        })
        .collect()
}

/// The peers of a series, or those of the chosen ones that belong to it.
fn peers(series: &Series, chosen: &[String]) -> Result<Vec<Peer>> {
    let all: Vec<String> = series.peers.iter().map(|&peer| peer.to_owned()).collect();
    let depth: Vec<String> = series
        .points
        .first()
        .map_or("", |(_, _, words)| words)
        .split_whitespace()
        .map(str::to_owned)
        .collect();
    let words = match chosen {
        [] => all,
        chosen => {
            chosen.iter().filter(|word| series.name != ALL_SENT.name || *word != "grpc").cloned().collect()
        }
    };
    Peer::named(&words, &Own::default(), &depth, Choice::Common)
}

/// A table for each figure, a row for each point.
fn markdown(series: &Series, comparison: &Comparison) -> String {
    let mut text = format!("# {}\n\n", series.title);
    facts(comparison, &mut text);
    let names: Vec<&str> = comparison.peers.iter().map(|peer| peer.name.as_str()).collect();
    for figure in FIGURES.iter().filter(|figure| series.figures.contains(&figure.title)) {
        line(&mut text, &format!("\n## {}", figure.title));
        let file = file_name(series.name, figure);
        line(&mut text, &format!("\n![{}, {}]({file})", series.title, figure.title));
        head(&mut text, series.across, &names);
        for job in &comparison.settings.jobs {
            row(&mut text, &job.name, &cells(comparison, &names, &job.name, figure));
        }
    }
    for failure in &comparison.failures {
        let job = failure.job.as_deref().unwrap_or("start");
        line(&mut text, &format!("\n- {}, {job}, turn {}: {}", failure.peer, failure.turn, failure.why));
    }
    for run in comparison.runs.iter().filter(|run| !run.counts()) {
        line(
            &mut text,
            &format!(
                "\n- {}, {}, turn {}: does not count, {:?}",
                run.peer, run.job, run.turn, run.report.outcome
            ),
        );
    }
    text.push('\n');
    text
}

fn cells(comparison: &Comparison, names: &[&str], job: &str, figure: &Figure) -> Vec<String> {
    names.iter().map(|name| shown(figure, spread_of(comparison, name, job, figure).as_ref())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::versus::arguments::check;

    #[test]
    fn every_point_is_a_run_that_its_scenario_takes() {
        for which in [Which::Requests, Which::Concurrency] {
            for series in which.series() {
                assert!(!peers(series, &[]).unwrap().is_empty());
                for job in jobs(series, None) {
                    let (scenario, arguments) = job.arguments.split_first().unwrap();
                    check(scenario, arguments).unwrap();
                }
                for title in series.figures {
                    assert!(FIGURES.iter().any(|figure| figure.title == *title), "{title}");
                }
            }
        }
    }

    #[test]
    fn points_above_the_largest_are_left_out() {
        for (largest, expected) in [(None, 5), (Some(128_000), 3), (Some(31_999), 0)] {
            assert_eq!(jobs(&LOCK_STEP, largest).len(), expected);
        }
    }

    #[test]
    fn a_series_never_mixes_depths() {
        for series in [LOCK_STEP, ALL_SENT, CONCURRENCY] {
            let depth = |words: &str| {
                words.split_whitespace().skip_while(|word| *word != "--depth").nth(1).map(str::to_owned)
            };
            let first = series.points.first().and_then(|(_, _, words)| depth(words));
            assert!(first.is_some() && series.points.iter().all(|(_, _, words)| depth(words) == first));
        }
    }
}
