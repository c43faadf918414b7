//! Reports as files of JSON: one run, or several runs of several sides.

use std::fs;
use std::io::ErrorKind;

use anyhow::{Result, anyhow, bail, ensure};
use serde::{Deserialize, Serialize};

use crate::record::report::{FORMAT, Report};

/// Bytes of a file that is read as a report. A run of hours has 30 MiB; more is something else.
const FILE_BYTES_MAX: u64 = 512 * 1024 * 1024;

/// A run and whose it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The side that it belongs to, for instance a broker; turns of one side have the same name.
    #[serde(default)]
    pub side: String,
    /// What it found.
    #[serde(flatten)]
    pub report: Report,
}

/// Several runs that belong together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Runs {
    /// Version of this format.
    pub format: u32,
    /// In the order in which they were made.
    pub runs: Vec<Run>,
}

impl Runs {
    /// Those of sides, each with its report.
    pub fn new(runs: Vec<Run>) -> Runs {
        Runs { format: FORMAT, runs }
    }

    /// The names of the sides, by first run.
    pub(crate) fn sides(&self) -> Vec<&str> {
        let mut sides: Vec<&str> = Vec::new();
        for run in &self.runs {
            if !sides.contains(&run.side.as_str()) {
                sides.push(&run.side);
            }
        }
        sides
    }

    /// The reports of a side.
    pub(crate) fn of_side<'a>(&'a self, side: &'a str) -> impl Iterator<Item = &'a Report> {
        self.runs.iter().filter(move |run| run.side == side).map(|run| &run.report)
    }
}

/// Reads a file that holds one report or several.
pub(crate) fn read(file: &str) -> Result<Runs> {
    let length = fs::metadata(file).map_err(|error| unreadable(file, &error))?.len();
    ensure!(
        length <= FILE_BYTES_MAX,
        "`{file}` has {length} bytes, which no report has; name a file that `--json` wrote"
    );
    let text = fs::read(file).map_err(|error| unreadable(file, &error))?;
    parse(&text).map_err(|error| anyhow!("`{file}` {error}"))
}

fn unreadable(file: &str, error: &std::io::Error) -> anyhow::Error {
    match error.kind() {
        ErrorKind::NotFound => anyhow!("`{file}` does not exist; name a file that `--json` wrote"),
        _ => anyhow!("`{file}` cannot be read: {error}; name a file that `--json` wrote"),
    }
}

/// What can be seen of a file before its version is known.
#[derive(Deserialize)]
struct Outline {
    format: Option<serde_json::Value>,
    #[serde(default)]
    runs: Option<serde::de::IgnoredAny>,
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
        Some(_) => serde_json::from_slice(text).map_err(wrong)?,
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
