//! `versus`: finds the peers, runs them in turns, prints the table and keeps everything in a folder.

use std::env;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use rustix::process::{Resource, getrlimit, setrlimit};

use crate::report::html::{Link, html_of_many};
use crate::report::runs::{Run, Runs};
use crate::versus::arguments::{TurnOptions, VersusArgs};
use crate::versus::comparison::{Comparison, FORMAT, Job, LeftOut, PeerFacts, Settings};
use crate::versus::found::{Found, Places, find};
use crate::versus::ourselves::Ourselves;
use crate::versus::peer::Peer;
use crate::versus::table::{is_inconclusive, markdown};
use crate::versus::turns::{self, Side, say};

/// The files in the folder of results.
const JSON: &str = "versus.json";
const TEXT: &str = "README.md";
const PAGE: &str = "report.html";

/// Exit code of a comparison whose difference may not be told.
const INCONCLUSIVE: u8 = 4;

/// Compares as asked, and gives the exit code: 0 done, 1 a turn is missing, 3 something was lost or
/// altered, 4 inconclusive.
pub(crate) fn run(args: &VersusArgs) -> Result<u8> {
    let asked = args.sorted()?;
    let peers = Peer::named(&asked.peers, &asked.own, &asked.arguments)?;
    let ours = Ourselves::found(&["versus"])?;
    let mut arguments = vec![asked.scenario.clone()];
    arguments.extend(asked.arguments);
    let names: Vec<&str> = peers.iter().map(|peer| peer.name.as_str()).collect();
    let title = format!("{}: {}", asked.scenario, names.join(" beside "));
    let jobs = vec![Job { name: asked.scenario.clone(), arguments }];
    let (sides, mut comparison) = begin(title, peers, jobs, &asked.turns)?;
    let folder = match asked.turns.out {
        Some(folder) => folder,
        None => PathBuf::from(format!("imori-bench-{}-{}", asked.scenario, comparison.started_at)),
    };
    make(&folder)?;
    turns::run(&sides, &ours, &mut comparison, |comparison| keep(comparison, &folder))?;
    page(&comparison, &folder)?;
    let text = markdown(&comparison);
    std::io::stdout().write_all(text.as_bytes()).context("standard output is closed")?;
    say(&format!("kept in `{}`", folder.display()));
    Ok(match comparison.exit_code() {
        0 if is_inconclusive(&comparison) => INCONCLUSIVE,
        code => code,
    })
}

/// Finds the programs, names who is missing, and opens the books.
pub(crate) fn begin(
    title: String,
    peers: Vec<Peer>,
    jobs: Vec<Job>,
    options: &TurnOptions,
) -> Result<(Vec<Side>, Comparison)> {
    raise_open_files();
    let scenario = jobs.first().and_then(|job| job.arguments.first()).cloned().unwrap_or_default();
    let (sides, left_out) = present(peers, &scenario, &options.places());
    for left in &left_out {
        say(&format!("{} is left out: {}", left.peer, left.why));
    }
    if sides.is_empty() {
        bail!("no peer is here; `imori bench peers` shows them all");
    }
    let comparison = Comparison {
        format: FORMAT,
        tool: env!("CARGO_PKG_VERSION").to_owned(),
        title,
        started_at: now(),
        settings: Settings {
            command: env::args().map(|word| without_password(&word)).collect(),
            rounds: options.rounds(),
            jobs,
            cpus_broker: options.cpus_broker.clone(),
            cpus_client: options.cpus_client.clone(),
            load_before: fs::read_to_string("/proc/loadavg").unwrap_or_default().trim().to_owned(),
        },
        peers: sides.iter().map(facts).collect(),
        left_out,
        runs: Vec::new(),
        failures: Vec::new(),
    };
    Ok((sides, comparison))
}

/// Who can take part, and who cannot.
fn present(peers: Vec<Peer>, scenario: &str, places: &Places) -> (Vec<Side>, Vec<LeftOut>) {
    let (mut sides, mut left_out) = (Vec::new(), Vec::new());
    for peer in peers {
        let found = match peer.cannot(scenario) {
            Some(why) => Err(why),
            None => find(&peer, places).map_err(|error| format!("{error:#}")),
        };
        match found {
            Ok(found) => sides.push(Side { peer, found }),
            Err(why) => left_out.push(LeftOut { peer: peer.name, why }),
        }
    }
    (sides, left_out)
}

fn facts(side: &Side) -> PeerFacts {
    let Found { version, sha256, .. } = side.found.clone().unwrap_or_default();
    PeerFacts {
        name: side.peer.name.clone(),
        protocol: side.peer.protocol.word().to_owned(),
        version: side.found.is_some().then_some(version),
        sha256,
        configuration: Vec::new(),
    }
}

/// Makes a folder for results.
pub(crate) fn make(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)
        .with_context(|| format!("`{}` cannot be made; name another folder with `--out`", folder.display()))
}

/// Writes all that is known by now.
fn keep(comparison: &Comparison, folder: &Path) -> Result<()> {
    comparison.save(&folder.join(JSON))?;
    let file = folder.join(TEXT);
    fs::write(&file, markdown(comparison)).with_context(|| format!("`{}` cannot be written", file.display()))
}

/// Writes the page to look at, if there is anything to see.
fn page(comparison: &Comparison, folder: &Path) -> Result<()> {
    let counting = comparison.runs.iter().filter(|turn| turn.counts());
    let runs: Vec<Run> =
        counting.map(|turn| Run { side: turn.peer.clone(), report: turn.report.clone() }).collect();
    if runs.is_empty() {
        return Ok(());
    }
    let links = [JSON, TEXT].map(|name| Link { name: name.to_owned(), path: name.to_owned() });
    let file = folder.join(PAGE);
    fs::write(&file, html_of_many(&comparison.title, &Runs::new(runs), &links))
        .with_context(|| format!("`{}` cannot be written", file.display()))
}

/// Ten thousand connections need as many descriptors on both sides, and children inherit the limit.
fn raise_open_files() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // With fewer, only runs with many connections fail, and say so themselves.
    let _ = setrlimit(Resource::Nofile, limit);
}

/// Seconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// A word of the command line that may be a URL.
fn without_password(word: &str) -> String {
    match (word.split_once("://"), word.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, place))) => format!("{scheme}://{place}"),
        _ => word.to_owned(),
    }
}
