//! Reports as JSON files: one run, or several runs of several sides.

use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Result, anyhow, bail, ensure};
use serde::{Deserialize, Serialize};

use crate::record::report::{FORMAT, Report};
use crate::report::packed;

/// A report and the side that it belongs to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Name of the side, for instance a broker; all turns of a side share it.
    #[serde(default)]
    pub side: String,
    /// The report.
    #[serde(flatten)]
    pub report: Report,
}

/// Several runs that belong together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Runs {
    /// Version of this format.
    pub format: u32,
    /// The runs, in the order in which they were made.
    pub runs: Vec<Run>,
}

impl Runs {
    /// Wraps runs in the current format.
    pub fn new(runs: Vec<Run>) -> Runs {
        Runs { format: FORMAT, runs }
    }

    /// Names of the sides, in order of their first run.
    pub fn sides(&self) -> Vec<&str> {
        let mut sides: Vec<&str> = Vec::new();
        for run in &self.runs {
            if !sides.contains(&run.side.as_str()) {
                sides.push(&run.side);
            }
        }
        sides
    }

    /// The reports of a side.
    pub fn of_side<'a>(&'a self, side: &'a str) -> impl Iterator<Item = &'a Report> {
        self.runs.iter().filter(move |run| run.side == side).map(|run| &run.report)
    }
}

/// Reads a file with one or several reports, compressed or not; a folder must contain exactly one.
pub fn read(file: &str) -> Result<Runs> {
    let raw = packed::raw_in(Path::new(file))?;
    let text = packed::read(&raw).map_err(|error| unreadable(file, &error))?;
    parse(&text).map_err(|error| anyhow!("`{file}` {error}"))
}

fn unreadable(file: &str, error: &std::io::Error) -> anyhow::Error {
    match error.kind() {
        ErrorKind::NotFound => anyhow!("`{file}` does not exist; name a file that `--json` wrote"),
        _ => anyhow!("`{file}` cannot be read: {error}; name a file that `--json` wrote"),
    }
}

/// The fields that decide how to parse the rest.
#[derive(Deserialize)]
struct Outline {
    format: Option<serde_json::Value>,
    #[serde(default)]
    runs: Option<serde::de::IgnoredAny>,
}

/// Several runs, each labelled with the job it was made for.
#[derive(Deserialize)]
struct Jobs {
    runs: Vec<JobRun>,
}

#[derive(Deserialize)]
struct JobRun {
    #[serde(default)]
    job: String,
    #[serde(flatten)]
    run: Run,
}

impl Jobs {
    /// Makes a side of each peer, or of each job of each peer if there are several jobs.
    fn by_side(self) -> Runs {
        let has_several =
            self.runs.iter().any(|run| self.runs.first().is_some_and(|first| first.job != run.job));
        let named = |JobRun { job, run }: JobRun| match has_several {
            true => Run { side: format!("{}, {job}", run.side), ..run },
            false => run,
        };
        Runs::new(self.runs.into_iter().map(named).collect())
    }
}

fn parse(text: &[u8]) -> Result<Runs> {
    if text.iter().all(u8::is_ascii_whitespace) {
        bail!("is empty; run the benchmark again with `--json`");
    }
    let outline: Outline = serde_json::from_slice(text).map_err(|error| match error.classify() {
        serde_json::error::Category::Eof => {
            anyhow!(
                "ends in the middle of its JSON, in line {}; run the benchmark again with `--json`",
                error.line()
            )
        }
        serde_json::error::Category::Data => {
            anyhow!("is JSON, but no report; name a file that `--json` wrote")
        }
        _ => anyhow!("is no JSON: {error}; name a file that `--json` wrote"),
    })?;
    match outline.format {
        None => bail!("is JSON, but no report: it has no `format`; name a file that `--json` wrote"),
        Some(format) if format != FORMAT => bail!(
            "has format `{format}`, and this version reads format `{FORMAT}`; run the benchmark again, or read it with the version that wrote it"
        ),
        Some(_) => {}
    }
    let wrong = |error: serde_json::Error| {
        anyhow!("is no report of format `{FORMAT}`: {error}; name a file that `--json` wrote")
    };
    let runs = match outline.runs {
        Some(_) => serde_json::from_slice::<Jobs>(text).map_err(wrong)?.by_side(),
        None => Runs::new(vec![serde_json::from_slice(text).map_err(wrong)?]),
    };
    ensure!(!runs.runs.is_empty(), "holds no runs; run the benchmark again with `--json`");
    Ok(runs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    #[test]
    fn what_was_written_is_read() {
        let report = sample::report();
        let one = serde_json::to_vec_pretty(&report).unwrap();
        let read = parse(&one).unwrap();
        assert_eq!((read.runs.len(), &read.runs[0].report), (1, &report));
        let several = Runs::new(vec![
            Run { side: "a".to_owned(), report: report.clone() },
            Run { side: "b".to_owned(), report },
        ]);
        assert_eq!(parse(&serde_json::to_vec(&several).unwrap()).unwrap(), several);
        assert_eq!(several.sides(), ["a", "b"]);
    }

    #[test]
    fn jobs_of_a_comparison_are_sides_of_their_own() {
        let report = serde_json::to_value(sample::report()).unwrap();
        for (jobs, expected) in [(["x", "x"], vec!["a"]), (["x", "y"], vec!["a, x", "a, y"])] {
            let runs = jobs.map(|job| {
                let mut run = report.clone();
                run["side"] = "a".into();
                run["job"] = job.into();
                run
            });
            let text = serde_json::json!({"format": FORMAT, "runs": runs}).to_string();
            assert_eq!(parse(text.as_bytes()).unwrap().sides(), expected);
        }
    }

    #[test]
    fn what_is_no_report_is_refused_in_a_sentence() {
        let whole = serde_json::to_string(&sample::report()).unwrap();
        for (text, expected) in [
            ("", "is empty"),
            (" \n", "is empty"),
            (&whole[..whole.len() / 2], "ends in the middle"),
            ("hello", "is no JSON"),
            ("[1, 2]", "no report"),
            ("{\"a\": 1}", "has no `format`"),
            ("{\"format\": 2}", "has format `2`"),
            ("{\"format\": \"x\"}", "has format `\"x\"`"),
            ("{\"format\": 1}", "is no report of format `1`: missing field"),
            ("{\"format\": 1, \"runs\": []}", "holds no runs"),
            ("{\"format\": 1, \"runs\": 5}", "is no report"),
        ] {
            let error = parse(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(expected), "`{error}` does not say `{expected}`");
            assert!(error.contains("; "), "`{error}` does not say what to do");
            assert!(!error.contains('\n'), "`{error}` is more than a sentence");
        }
    }
}
