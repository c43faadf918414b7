//! `experiment`: repeats a published experiment with Imori and its peers, as one command.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::Args;
use imori_bench::amount::count;
use imori_bench::report::fit;

use crate::peers::ourselves::Ourselves;
use crate::peers::peer::{Choice, Own, Peer};
use crate::versus::arguments::{TurnOptions, check};
use crate::versus::chart::{chart, file_name};
use crate::versus::compare::{RequestedGroup, begin, make, now, packed};
use crate::versus::comparison::{Comparison, Job};
use crate::versus::figures::{FIGURES, Figure};
use crate::versus::list::replace_value;
use crate::versus::series::{Series, Which};
use crate::versus::table::{facts, spread_of};
use crate::versus::text::{head, line, row, shown};
use crate::versus::turns::{self, say};

/// Repeats an experiment that others published, for Imori and those that it was made with.
#[derive(Debug, Clone, Args)]
pub struct ExperimentArgs {
    /// Which one.
    #[arg(value_enum)]
    pub(crate) which: Which,
    /// The peers to measure, as for `versus`, with their protocols; by default all.
    pub(crate) peers: Vec<String>,
    /// Leave out points with more requests, requesters or bytes than this.
    #[arg(long, value_parser = count, value_name = "COUNT")]
    pub(crate) largest: Option<u64>,
    /// Measuring time of each point, if the experiment is bounded by time.
    #[arg(long, value_name = "TIME")]
    pub(crate) time: Option<String>,
    #[command(flatten)]
    pub(crate) turns: TurnOptions,
}

/// Runs the experiment, prints its tables, and returns the exit code: 0 done, 1 a run is missing, 3
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
        let jobs = jobs(series, args.largest, args.time.as_deref())?;
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
    fit::print(&tables)?;
    say(&format!("kept in `{}`", folder.display()));
    Ok(code)
}

/// Draws each figure.
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

/// The points of a series as jobs, up to the largest, each with its own or the given duration.
fn jobs(series: &Series, largest: Option<u64>, time: Option<&str>) -> Result<Vec<Job>> {
    let within = series.points.iter().filter(|(size, ..)| largest.is_none_or(|largest| *size <= largest));
    within
        .map(|(_, name, words)| {
            let mut arguments: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
            if let Some(time) = time {
                ensure!(
                    replace_value(&mut arguments, "--time", time),
                    "this experiment counts requests; leave `--time` out, or take `sizes`"
                );
            }
            let (scenario, options) = arguments.split_first().context("a point needs a scenario")?;
            check(scenario, options)?;
            Ok(Job { name: (*name).to_owned(), arguments })
        })
        .collect()
}

/// The peers of a series, or the chosen ones that can take part in it.
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
        chosen => chosen.iter().filter(|word| !series.without.contains(&word.as_str())).cloned().collect(),
    };
    Peer::named(&words, &Own::default(), &depth, Choice::Common)
}

/// One table per figure, with one row per point.
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
    use clap::ValueEnum as _;

    use super::*;
    use crate::versus::series::LOCK_STEP;

    #[test]
    fn every_point_is_a_run_that_its_scenario_takes() {
        for which in Which::value_variants() {
            for series in which.series() {
                assert!(!peers(series, &[]).unwrap().is_empty());
                assert_eq!(jobs(series, None, None).unwrap().len(), series.points.len());
                for title in series.figures {
                    assert!(FIGURES.iter().any(|figure| figure.title == *title), "{title}");
                }
            }
        }
    }

    #[test]
    fn points_above_the_largest_are_left_out() {
        for (largest, expected) in [(None, 5), (Some(128_000), 3), (Some(31_999), 0)] {
            assert_eq!(jobs(&LOCK_STEP, largest, None).unwrap().len(), expected);
        }
    }

    #[test]
    fn only_what_is_bounded_by_time_takes_another_time() {
        let [sizes] = Which::Sizes.series() else { panic!("one series") };
        for job in jobs(sizes, None, Some("3s")).unwrap() {
            assert!(job.arguments.join(" ").contains("--time 3s"), "{job:?}");
        }
        let error = jobs(&LOCK_STEP, None, Some("3s")).unwrap_err().to_string();
        assert!(error.contains("leave `--time` out"), "{error}");
        assert!(jobs(sizes, None, Some("soon")).is_err());
    }
}
