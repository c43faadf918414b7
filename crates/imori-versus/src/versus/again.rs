//! `report`: prints kept results again, or renders them as a page.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use clap::Args;
use imori_bench::report::fit;
use imori_bench::report::html::html_of_many;
use imori_bench::report::packed;
use imori_bench::report::runs::read;
use imori_bench::report::write::save;

use crate::versus::comparison::Comparison;
use crate::versus::table::markdown;

/// Prints kept results again: the tables of a comparison, or the reports of runs.
#[derive(Debug, Clone, Args)]
pub struct ReportArgs {
    /// A folder that `versus` or `experiment` wrote, or a file that `--json` wrote; `.gz` is unpacked.
    #[arg(value_name = "PLACE")]
    pub(crate) place: PathBuf,
    /// Only this job of a comparison.
    #[arg(long, value_name = "NAME")]
    pub(crate) job: Option<String>,
    /// File for the results as a page; of a comparison of several jobs, `--job` says which.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<String>,
}

/// Prints the results, and writes the page if requested.
pub(crate) fn run(args: &ReportArgs) -> Result<()> {
    let file = packed::raw_in(&args.place)?;
    let comparison =
        comparison(&file).map(|comparison| chosen(comparison, args.job.as_deref())).transpose()?;
    let (title, text, runs) = match comparison {
        Some(comparison) => {
            let is_one = comparison.settings.jobs.len() == 1;
            ensure!(is_one || args.html.is_none(), "a page has one job; choose it with `--job`");
            (comparison.title.clone(), markdown(&comparison), comparison.counted())
        }
        None => {
            let runs = read(&file.to_string_lossy())?;
            let texts: Vec<String> = runs.runs.iter().map(|run| run.report.to_string()).collect();
            ("imori bench".to_owned(), texts.join("\n"), runs)
        }
    };
    fit::print(&text)?;
    match &args.html {
        Some(file) => save(file, "--html", html_of_many(&title, &runs, &[]).as_bytes()),
        None => Ok(()),
    }
}

/// Reads a comparison from a file; `None` for anything else, including errors, which are reported later.
fn comparison(file: &Path) -> Option<Comparison> {
    serde_json::from_slice(&packed::read(file).ok()?).ok()
}

fn chosen(mut comparison: Comparison, job: Option<&str>) -> Result<Comparison> {
    let Some(job) = job else { return Ok(comparison) };
    let names: Vec<&str> = comparison.settings.jobs.iter().map(|job| job.name.as_str()).collect();
    ensure!(names.contains(&job), "`{job}` is no job of it; use one of {}", names.join(", "));
    let has_part: Vec<String> = comparison.peers_of(job).map(|peer| peer.name.clone()).collect();
    comparison.peers.retain(|peer| has_part.contains(&peer.name));
    comparison.settings.jobs.retain(|known| known.name == job);
    comparison.runs.retain(|run| run.job == job);
    comparison.failures.retain(|failure| failure.job.as_deref().is_none_or(|failed| failed == job));
    Ok(comparison)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::versus::comparison::Job;
    use crate::versus::sample::comparison;

    #[test]
    fn one_job_of_several_is_a_comparison_of_its_own() {
        let mut both = comparison(&[("a", &[1.0, 2.0]), ("b", &[3.0, 4.0])]);
        let alone = both.clone();
        both.settings.jobs.push(Job { name: "other".to_owned(), arguments: vec!["idle".to_owned()] });
        let mut of_other = both.runs[0].clone();
        "other".clone_into(&mut of_other.job);
        both.runs.push(of_other);
        assert_eq!(chosen(both.clone(), Some("rpc")).unwrap(), alone);
        let error = chosen(both, Some("none")).unwrap_err().to_string();
        assert!(error.contains("use one of rpc, other"), "{error}");
    }
}
