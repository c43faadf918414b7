//! Runs the measurements in rounds, and publishes the result.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail, ensure};
use imori_bench::clock::Clock;
use imori_bench::interrupt;
use imori_bench::report::fit;
use imori_bench::report::write::save;
use imori_bench::url::Scheme;
use imori_bench::watch::facts::machine_facts;
use imori_bench::watch::watching::{Watch, WatchOptions};
use serde_json::json;

use crate::automation::measurements::{Bench, MEASUREMENTS, Measured, Measurement};
use crate::automation::options::AutomationOptions;
use crate::automation::subject::{Starter, Subject};
use crate::automation::table::{AutomationReport, Circumstances, Missing, Results};
use crate::peers::found::{SearchPaths, find};
use crate::peers::ourselves::Ourselves;
use crate::peers::peer::{Kind, Origin, Peer};
use crate::versus::turns::say;

/// Measures, publishes the result, and returns the exit code: 0 done, 1 a measurement failed.
pub(crate) fn run(options: &AutomationOptions) -> Result<u8> {
    let chosen: Vec<&Measurement> =
        MEASUREMENTS.iter().filter(|measurement| measurement.is_chosen(&options.only)).collect();
    ensure!(!chosen.is_empty(), "no figure begins with `{}`; see `--help`", options.only.join(","));
    let load_average = load_average(&fs::read_to_string("/proc/loadavg").unwrap_or_default());
    let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let clock = Clock::start();
    let subject = Subject::running(options)?;
    let starter = if subject.is_none() { Some(starter(options)?) } else { None };
    let broker = match (&starter, &options.url) {
        (Some(starter), _) => starter.program.version.clone(),
        (None, Some(url)) => format!("the one at `{}:{}`", url.host, url.port),
        (None, None) => String::new(),
    };
    let mut bench = Bench::new(options, starter, subject);
    let watch = match chosen.iter().any(|measurement| measurement.needs_broker()) {
        true => bench.subject()?.map(|subject| watch(clock, subject)).transpose()?,
        false => None,
    };
    let mut results = Results::default();
    rounds(&mut bench, &chosen, options.rounds, &mut results)?;
    let folder = watch.as_ref().and_then(|watch| watch.disk_folder().map(Path::to_owned));
    let watched = watch.map(Watch::stop);
    let circumstances = Circumstances {
        broker,
        started_at: started.as_secs_f64(),
        machine: machine_facts(&folder.unwrap_or_else(std::env::temp_dir)),
        load_average,
        disk_sync: watched.as_ref().and_then(|watched| watched.disk_sync(0, clock.now())),
        asked: asked(options),
        notes: watched.map(|watched| watched.failures()).unwrap_or_default(),
    };
    publish(&results.report(circumstances, &options.only), options.json.as_deref())?;
    Ok(u8::from(results.has_failed()))
}

/// The means to start brokers.
fn starter(options: &AutomationOptions) -> Result<Starter> {
    let places = SearchPaths { imori: options.imori.clone(), peers: PathBuf::new() };
    let (name, origin) = ("imori".to_owned(), Origin::Known(Kind::Imori));
    let peer = Peer { name, origin, protocol: Scheme::Stomp, url: None };
    let program = find(&peer, &places)?.context("`imori` is absent; name it with `--imori`")?;
    Ok(Starter { program, ours: Ourselves::found(&["automation"])?, cpus: options.cpus_broker.clone() })
}

fn watch(clock: Clock, subject: &Subject) -> Result<Watch> {
    let address = subject.api.address;
    let options = WatchOptions {
        pids: subject.pids.clone(),
        host: address.ip().to_string(),
        port: address.port(),
        load_threads: 1,
        ..WatchOptions::default()
    };
    Watch::start(clock, &options)
}

/// Makes each measurement once in each round; one that failed is not repeated.
fn rounds(bench: &mut Bench<'_>, chosen: &[&Measurement], count: u32, results: &mut Results) -> Result<()> {
    for round in 1..=count {
        for measurement in chosen {
            if interrupt::is_asked_for() {
                bail!("stopped by hand");
            }
            if results.is_missing(measurement.figures) {
                continue;
            }
            let names = measurement.figures;
            say(&format!("round {round}: {}", names.first().unwrap_or(&"")));
            match bench.measure(measurement) {
                Ok(Measured::Values(values)) => results.add(values),
                Ok(Measured::Unavailable(why)) => results.miss(names, &Missing::Unavailable(why)),
                Err(error) => results.miss(names, &Missing::Failed(format!("{error:#}"))),
            }
        }
    }
    Ok(())
}

/// The options that values depend on.
fn asked(options: &AutomationOptions) -> serde_json::Map<String, serde_json::Value> {
    [
        ("rounds", json!(options.rounds)),
        ("operations", json!(options.operations)),
        ("connections", json!(options.connections)),
        ("rate", json!(options.rate)),
        ("time_s", json!(options.time.as_secs_f64())),
        ("runs", json!(options.runs)),
        ("cpu_time_s", json!(options.cpu_time.as_secs_f64())),
        ("cpus_broker", json!(options.cpus_broker)),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}

fn publish(report: &AutomationReport, json: Option<&str>) -> Result<()> {
    let mut packed = serde_json::to_string_pretty(report)?;
    packed.push('\n');
    match json {
        Some("-") => std::io::stdout().write_all(packed.as_bytes()).context("standard output is closed")?,
        _ => fit::print(&report.markdown())?,
    }
    match json.filter(|file| *file != "-") {
        Some(file) => save(file, "--json", packed.as_bytes()),
        None => Ok(()),
    }
}

/// The load average over a minute.
fn load_average(text: &str) -> Option<f64> {
    text.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_load_average_is_the_first_number() {
        for (text, expected) in [("1.25 0.9 0.5 2/300 77\n", Some(1.25)), ("", None), ("x", None)] {
            assert_eq!(load_average(text), expected, "{text}");
        }
    }
}
