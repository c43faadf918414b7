//! The results of a comparison as one value, which is saved after each turn, so that an interrupted
//! comparison loses nothing.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use imori_bench::record::report::{Outcome, Report};
use imori_bench::report::runs::{Run, Runs};
use serde::{Deserialize, Serialize};

/// Version of the JSON format.
pub(crate) const FORMAT: u32 = 1;

/// Results of several peers under the same load, in turns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Version of this format.
    pub format: u32,
    /// Version of this tool.
    pub tool: String,
    /// The heading.
    pub title: String,
    /// When it began, in seconds since 1970.
    pub started_at: u64,
    /// The settings of the comparison.
    pub settings: Settings,
    /// The peers; the first one is the reference for the others.
    pub peers: Vec<PeerFacts>,
    /// Requested peers that were left out.
    pub left_out: Vec<LeftOut>,
    /// Every run, in the order in which they were made.
    pub runs: Vec<Turn>,
    /// Every turn, or run of it, that ended without a report.
    pub failures: Vec<Failure>,
}

/// The settings of a comparison.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// The command line, word by word, without passwords.
    pub command: Vec<String>,
    /// Turns of each peer.
    pub rounds: u32,
    /// The measurements in each turn, each with its scenario and options.
    pub jobs: Vec<Job>,
    /// CPUs that the brokers were pinned to.
    pub cpus_broker: Option<String>,
    /// CPUs that the client was pinned to.
    pub cpus_client: Option<String>,
    /// Load average of the machine before the comparison, as in `/proc/loadavg`.
    pub load_before: String,
}

/// One measurement of a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// The name in tables.
    pub name: String,
    /// Scenario and options, without options that depend on the peer.
    pub arguments: Vec<String>,
}

/// The identity of a peer's program, and its configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerFacts {
    /// The name.
    pub name: String,
    /// The protocols used with it.
    pub protocol: String,
    /// Name and version that its program reports; absent if it is not started here.
    pub version: Option<String>,
    /// Checksum of the program, if it is started here.
    pub sha256: Option<String>,
    /// Its command line and configuration files, from its first turn.
    pub configuration: Vec<(String, String)>,
}

/// A peer that was left out, of one job or entirely.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// The name of the peer.
    pub peer: String,
    /// The job that it is left out of; absent if it is left out entirely.
    #[serde(default)]
    pub job: Option<String>,
    /// The reason, and a remedy.
    pub why: String,
}

/// One run within a turn, with its report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// Name of the peer.
    #[serde(rename = "side")]
    pub peer: String,
    /// The round, from 1.
    pub turn: u32,
    /// The name of the job.
    pub job: String,
    /// The protocol used; empty in files of earlier versions.
    #[serde(default)]
    pub protocol: String,
    /// The exit code of the run's own process.
    pub exit_code: i32,
    /// The report, flattened, so that readers of several reports also read comparisons.
    #[serde(flatten)]
    pub report: Report,
}

/// A turn, or a run of it, that ended without a report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Name of the peer.
    pub peer: String,
    /// The round, from 1.
    pub turn: u32,
    /// The job that failed; absent if the peer did not even start.
    pub job: Option<String>,
    /// The reason.
    pub why: String,
}

impl Turn {
    /// Whether its numbers may be compared: the run was completed, nothing was lost or altered, and
    /// no confirm was below the requested level.
    pub(crate) fn counts(&self) -> bool {
        self.report.outcome == Outcome::Done && !self.report.is_broken()
    }
}

impl Comparison {
    /// The valid reports of a peer in a job, with their turns.
    pub(crate) fn reports<'a>(
        &'a self,
        peer: &'a str,
        job: &'a str,
    ) -> impl Iterator<Item = (u32, &'a Report)> + 'a {
        let matching = self.runs.iter().filter(move |run| run.peer == peer && run.job == job);
        matching.filter(|run| run.counts()).map(|run| (run.turn, &run.report))
    }

    /// All valid runs, each named after its peer.
    pub(crate) fn counted(&self) -> Runs {
        let counting = self.runs.iter().filter(|turn| turn.counts());
        Runs::new(counting.map(|turn| Run { side: turn.peer.clone(), report: turn.report.clone() }).collect())
    }

    /// The peers that take part in a job.
    pub(crate) fn peers_of<'a>(&'a self, job: &'a str) -> impl Iterator<Item = &'a PeerFacts> + 'a {
        let is_left_out = move |peer: &PeerFacts| {
            let mut left_out = self.left_out.iter();
            left_out.any(|left| left.peer == peer.name && left.job.as_deref() == Some(job))
        };
        self.peers.iter().filter(move |peer| !is_left_out(peer))
    }

    /// Exit code: 3 if something was lost or altered, 1 if a run is missing, else 0.
    pub(crate) fn exit_code(&self) -> u8 {
        let is_broken = self.runs.iter().any(|run| run.report.is_broken());
        let jobs = self.settings.jobs.iter();
        let pairs: usize = jobs.map(|job| self.peers_of(&job.name).count()).sum();
        let wanted = pairs * self.settings.rounds as usize;
        let is_partial = self.runs.iter().filter(|run| run.counts()).count() < wanted;
        match (is_broken, is_partial) {
            (true, _) => 3,
            (false, true) => 1,
            (false, false) => 0,
        }
    }

    /// Writes the results as JSON, replacing the file atomically.
    pub(crate) fn save(&self, file: &Path) -> Result<()> {
        let mut json = serde_json::to_vec(self)?;
        json.push(b'\n');
        let beside = file.with_extension("part");
        fs::write(&beside, json).and_then(|()| fs::rename(&beside, file)).with_context(|| {
            format!("`{}` cannot be written; name another folder with `--out`", file.display())
        })
    }
}
