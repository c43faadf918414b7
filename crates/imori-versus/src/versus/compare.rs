//! `versus`: finds the peers, runs them in turns, prints the table, and keeps all results in a folder.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use imori_bench::limits::{INCONCLUSIVE, MISSED};
use imori_bench::report::fit;
use imori_bench::report::html::{Link, html_of_many};
use imori_bench::report::packed::pack;
use imori_bench::url::Scheme;
use rustix::process::{Resource, getrlimit, setrlimit};

use crate::peers::found::{Program, SearchPaths, find};
use crate::peers::ourselves::Ourselves;
use crate::peers::peer::{Choice, Peer};
use crate::versus::arguments::{ComparisonRequest, Load, TurnOptions, VersusArgs};
use crate::versus::comparison::{Comparison, FORMAT, Job, LeftOut, PeerFacts, Settings};
use crate::versus::list::Line;
use crate::versus::summary::worse;
use crate::versus::table::{absences, is_inconclusive, markdown};
use crate::versus::turns::{self, Group, Side, say};

/// Files in the folder of results.
const JSON: &str = "versus.json";
const TEXT: &str = "README.md";
const PAGE: &str = "report.html";

/// Runs the comparison and returns the exit code: 0 done, 1 a turn is missing, 3 something was lost
/// or altered, 4 inconclusive, 5 worse than tolerated.
pub(crate) fn run(args: &VersusArgs) -> Result<u8> {
    let asked = args.sorted()?;
    let ours = Ourselves::found(&["versus"])?;
    let wanted = wanted(&asked)?;
    let names: Vec<&str> = wanted.iter().take(1).flat_map(RequestedGroup::names).collect();
    let title = format!("{}: {}", asked.name, names.join(" beside "));
    let (groups, mut comparison) = begin(title, wanted, &asked.turns)?;
    let folder = match asked.turns.out {
        Some(folder) => folder,
        None => PathBuf::from(format!("imori-bench-{}-{}", asked.name, comparison.started_at)),
    };
    make(&folder)?;
    turns::run(&groups, &ours, &mut comparison, |comparison| keep(comparison, &folder))?;
    let raw = packed(&folder.join(JSON));
    page(&comparison, &folder, &raw)?;
    let text = markdown(&comparison);
    fit::print(&text)?;
    let worse = asked.tolerance.map_or_else(Vec::new, |tolerance| worse(&comparison, tolerance));
    for sentence in &worse {
        say(sentence);
    }
    say(&format!("kept in `{}`", folder.display()));
    Ok(match comparison.exit_code() {
        0 if !worse.is_empty() => MISSED,
        0 if is_inconclusive(&comparison) => INCONCLUSIVE,
        code => code,
    })
}

/// Jobs that share one start of each peer, before it is known which peers are installed.
#[derive(Debug)]
pub(crate) struct RequestedGroup {
    pub(crate) jobs: Vec<Job>,
    pub(crate) peers: Vec<Peer>,
    /// The protocol required by a line of a list.
    pub(crate) protocol: Option<Scheme>,
}

impl RequestedGroup {
    fn names(&self) -> impl Iterator<Item = &str> {
        self.peers.iter().map(|peer| peer.name.as_str())
    }

    /// The reason why a peer cannot take part; `None` if it can.
    fn refuses(&self, peer: &Peer) -> Option<String> {
        let scenario = self.jobs.first().and_then(|job| job.arguments.first());
        let cannot = scenario.and_then(|scenario| peer.cannot(scenario));
        self.protocol.and_then(|protocol| peer.cannot_speak(protocol)).or(cannot)
    }
}

/// Builds one group for a scenario, or one for each line of a list.
fn wanted(asked: &ComparisonRequest) -> Result<Vec<RequestedGroup>> {
    match &asked.load {
        Load::Scenario(words) => {
            let peers = Peer::named(&asked.peers, &asked.own, words, Choice::Common)?;
            let jobs = vec![Job { name: asked.name.clone(), arguments: words.clone() }];
            Ok(vec![RequestedGroup { jobs, peers, protocol: None }])
        }
        Load::List(lines) => {
            let of_line = |line: &Line| {
                let choice = Choice::Line(line.protocol);
                let peers = Peer::named(&asked.peers, &asked.own, &line.arguments, choice)?;
                let jobs = vec![Job { name: line.name.clone(), arguments: line.arguments.clone() }];
                Ok(RequestedGroup { jobs, peers, protocol: line.protocol })
            };
            lines.iter().map(of_line).collect()
        }
    }
}

/// Finds the programs, reports missing peers, and creates an empty comparison.
pub(crate) fn begin(
    title: String,
    wanted: Vec<RequestedGroup>,
    options: &TurnOptions,
) -> Result<(Vec<Group>, Comparison)> {
    raise_open_files();
    let (groups, left_out) = present(wanted, &options.places());
    for sentence in absences(&left_out) {
        say(&sentence);
    }
    let peers = facts(&groups);
    if peers.is_empty() {
        bail!("no peer is here; `imori-bench peers` shows them all");
    }
    let comparison = Comparison {
        format: FORMAT,
        tool: env!("CARGO_PKG_VERSION").to_owned(),
        title,
        started_at: now(),
        settings: Settings {
            command: env::args().map(|word| without_password(&word)).collect(),
            rounds: options.rounds(),
            jobs: groups.iter().flat_map(|group| group.jobs.iter().cloned()).collect(),
            cpus_broker: options.cpus_broker.clone(),
            cpus_client: options.cpus_client.clone(),
            load_before: fs::read_to_string("/proc/loadavg").unwrap_or_default().trim().to_owned(),
        },
        peers,
        left_out,
        runs: Vec::new(),
        failures: Vec::new(),
    };
    Ok((groups, comparison))
}

/// Splits the peers into those that can take part and those that are left out of one group or of all.
fn present(wanted: Vec<RequestedGroup>, places: &SearchPaths) -> (Vec<Group>, Vec<LeftOut>) {
    let (mut groups, mut left_out): (Vec<Group>, Vec<LeftOut>) = (Vec::new(), Vec::new());
    for wanted in wanted {
        let mut sides = Vec::new();
        for peer in &wanted.peers {
            let found = match wanted.refuses(peer) {
                Some(why) => Err(why),
                None => found_before(peer, &groups)
                    .map_or_else(|| find(peer, places), |found| Ok(found.clone()))
                    .map_err(|error| format!("{error:#}")),
            };
            match found {
                Ok(found) => sides.push(Side { peer: peer.clone(), found }),
                Err(why) => {
                    let job = wanted.jobs.first().map(|job| job.name.clone());
                    left_out.push(LeftOut { peer: peer.name.clone(), job, why });
                }
            }
        }
        groups.push(Group { jobs: wanted.jobs, sides });
    }
    let takes_part =
        |name: &str| groups.iter().any(|group| group.sides.iter().any(|side| side.peer.name == name));
    let mut absent: Vec<String> = Vec::new();
    left_out.retain_mut(|left| {
        if takes_part(&left.peer) {
            return true;
        }
        left.job = None;
        let is_new = !absent.contains(&left.peer);
        absent.push(left.peer.clone());
        is_new
    });
    (groups, left_out)
}

/// The program of a peer, if an earlier group has already searched for it.
fn found_before<'a>(peer: &Peer, groups: &'a [Group]) -> Option<&'a Option<Program>> {
    let mut sides = groups.iter().flat_map(|group| &group.sides);
    sides.find(|side| &side.peer == peer).map(|side| &side.found)
}

/// Facts about each peer, in order of their first group.
fn facts(groups: &[Group]) -> Vec<PeerFacts> {
    let mut facts: Vec<PeerFacts> = Vec::new();
    for side in groups.iter().flat_map(|group| &group.sides) {
        let protocol = side.peer.protocol.word();
        match facts.iter_mut().find(|facts| facts.name == side.peer.name) {
            Some(known) if known.protocol.split(", ").any(|spoken| spoken == protocol) => {}
            Some(known) => known.protocol = format!("{}, {protocol}", known.protocol),
            None => {
                let Program { version, sha256, .. } = side.found.clone().unwrap_or_default();
                facts.push(PeerFacts {
                    name: side.peer.name.clone(),
                    protocol: protocol.to_owned(),
                    version: side.found.is_some().then_some(version),
                    sha256,
                    configuration: Vec::new(),
                });
            }
        }
    }
    facts
}

/// Creates the folder for results.
pub(crate) fn make(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)
        .with_context(|| format!("`{}` cannot be made; name another folder with `--out`", folder.display()))
}

/// Writes the results so far.
fn keep(comparison: &Comparison, folder: &Path) -> Result<()> {
    comparison.save(&folder.join(JSON))?;
    let file = folder.join(TEXT);
    fs::write(&file, markdown(comparison)).with_context(|| format!("`{}` cannot be written", file.display()))
}

/// Compresses the raw results; if that fails, they stay uncompressed.
pub(crate) fn packed(file: &Path) -> PathBuf {
    pack(file).unwrap_or_else(|error| {
        say(&format!("{error:#}"));
        file.to_owned()
    })
}

/// Writes the page of results, if there are any; several jobs do not fit on one page.
fn page(comparison: &Comparison, folder: &Path, raw: &Path) -> Result<()> {
    if comparison.settings.jobs.len() > 1 {
        return Ok(());
    }
    let runs = comparison.counted();
    if runs.runs.is_empty() {
        return Ok(());
    }
    let raw = raw.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let links = [raw, TEXT.to_owned()].map(|name| Link { path: name.clone(), name });
    let file = folder.join(PAGE);
    fs::write(&file, html_of_many(&comparison.title, &runs, &links))
        .with_context(|| format!("`{}` cannot be written", file.display()))
}

/// Raises the limit of open files for many connections; brokers inherit it as child processes.
fn raise_open_files() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // With a lower limit, only runs with many connections fail, with an error of their own.
    let _ = setrlimit(Resource::Nofile, limit);
}

/// Current time in seconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Removes the password from a word of the command line, if it is a URL.
fn without_password(word: &str) -> String {
    match (word.split_once("://"), word.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, place))) => format!("{scheme}://{place}"),
        _ => word.to_owned(),
    }
}
