//! Everything that a comparison found, as one value: written after each turn, so that nothing is
//! lost when it is stopped.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::record::report::{Outcome, Report};
use crate::report::runs::{Run, Runs};

/// Version of the JSON.
pub(crate) const FORMAT: u32 = 1;

/// Several peers under the same load, in turns.
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
    /// How it was made.
    pub settings: Settings,
    /// The sides, the one that the others are compared with first.
    pub peers: Vec<PeerFacts>,
    /// The peers that were asked for and take no part.
    pub left_out: Vec<LeftOut>,
    /// Every run, in the order in which they were made.
    pub runs: Vec<Turn>,
    /// Every turn that did not end in a report.
    pub failures: Vec<Failure>,
}

/// How a comparison was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// The command, word by word, without passwords.
    pub command: Vec<String>,
    /// Turns of each peer.
    pub rounds: u32,
    /// The measurements of a turn, each with its scenario and options.
    pub jobs: Vec<Job>,
    /// CPUs that the brokers were pinned to.
    pub cpus_broker: Option<String>,
    /// CPUs that the client was pinned to.
    pub cpus_client: Option<String>,
    /// The load average of the machine before it, as the kernel writes it.
    pub load_before: String,
}

/// A measurement of a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// The name in tables.
    pub name: String,
    /// Its scenario and the options, without those that depend on the peer.
    pub arguments: Vec<String>,
}

/// Which program a side is, and how it was run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerFacts {
    /// The name.
    pub name: String,
    /// The protocols spoken with it.
    pub protocol: String,
    /// Name and version as its program gives them; absent if it is not started here.
    pub version: Option<String>,
    /// Checksum of the program, if it is started here.
    pub sha256: Option<String>,
    /// Its command and the files it was given, each with its text, from its first turn.
    pub configuration: Vec<(String, String)>,
}

/// A peer that takes no part, in anything or in one job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// The name of the peer.
    pub peer: String,
    /// The only job that it takes no part in; absent if it takes part in none.
    #[serde(default)]
    pub job: Option<String>,
    /// Why, and what to do.
    pub why: String,
}

/// A run of a turn, with its report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// Against whom.
    #[serde(rename = "side")]
    pub peer: String,
    /// In which round, from 1.
    pub turn: u32,
    /// The name of the job.
    pub job: String,
    /// The protocol that was spoken; empty in files of earlier versions.
    #[serde(default)]
    pub protocol: String,
    /// The exit code of the run's own process.
    pub exit_code: i32,
    /// The report, among the other fields, so that readers of several reports read comparisons too.
    #[serde(flatten)]
    pub report: Report,
}

/// A turn, or a run of it, without a report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Against whom.
    pub peer: String,
    /// In which round, from 1.
    pub turn: u32,
    /// The job that was to be run; absent if the peer did not even start.
    pub job: Option<String>,
    /// The cause.
    pub why: String,
}

impl Turn {
    /// Whether its numbers may be compared: it came to its end, nothing was lost or altered,
    /// and nothing confirmed at a lower level than was asked for.
    pub(crate) fn counts(&self) -> bool {
        self.report.outcome == Outcome::Done && !self.report.is_broken()
    }
}

impl Comparison {
    /// The reports of a peer in a job that count, with their turns.
    pub(crate) fn reports<'a>(
        &'a self,
        peer: &'a str,
        job: &'a str,
    ) -> impl Iterator<Item = (u32, &'a Report)> + 'a {
        let matching = self.runs.iter().filter(move |run| run.peer == peer && run.job == job);
        matching.filter(|run| run.counts()).map(|run| (run.turn, &run.report))
    }

    /// The runs that count, each under the name of its peer.
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

    /// The exit code: 3 if something was lost or altered, 1 if a run is missing, else 0.
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

    /// Writes it as JSON; a file of that name is replaced as a whole.
    pub(crate) fn save(&self, file: &Path) -> Result<()> {
        let mut json = serde_json::to_vec(self)?;
        json.push(b'\n');
        let beside = file.with_extension("part");
        fs::write(&beside, json).and_then(|()| fs::rename(&beside, file)).with_context(|| {
            format!("`{}` cannot be written; name another folder with `--out`", file.display())
        })
    }
}
