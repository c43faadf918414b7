//! Latencies: one execution after the other, and events at a rate until their actions have ended.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use imori_bench::record::latency::Recorder;
use imori_bench::report::spread::Spread;
use serde_json::{Value as Json, json};

use crate::automation::figure::Value;
use crate::automation::load::{Load, Pace};
use crate::automation::options::AutomationOptions;
use crate::automation::pack::PACK;
use crate::automation::stream::{Stream, Update};
use crate::automation::subject::{Subject, push_body};

/// Characters of the large result.
const LARGE: u64 = 4_000_000;

/// The action whose end is timed after an event; it shows which event it was.
const ANNOUNCEMENT: &str = "core.announcement";

/// Microseconds of one noop, the median of several.
pub(crate) fn noop(subject: &mut Subject, options: &AutomationOptions) -> Result<Vec<Value>> {
    runs(subject, options.runs, "noop", "core.noop", &|_| json!({}))
}

/// Microseconds of one command of the shell.
pub(crate) fn shell(subject: &mut Subject, options: &AutomationOptions) -> Result<Vec<Value>> {
    runs(subject, options.runs, "shell", "core.local", &|_| json!({ "cmd": "echo 1" }))
}

/// Microseconds of one Python action whose Python waits for it.
pub(crate) fn python_warm(subject: &mut Subject, options: &AutomationOptions) -> Result<Vec<Value>> {
    let action = python(subject)?;
    subject.run(&action, &json!({}))?;
    runs(subject, options.runs, "python-warm", &action, &|_| json!({}))
}

/// Microseconds of one Python action whose Python has to start. A Python starts for each environment that it has to
/// have from its beginning.
pub(crate) fn python_cold(subject: &mut Subject, _options: &AutomationOptions) -> Result<Vec<Value>> {
    let action = python(subject)?;
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let environment = json!({ "PYTHONIMORIBENCH": now.as_nanos().to_string() });
    runs(subject, 1, "python-cold", &action, &|_| json!({ "env": environment }))
}

/// Microseconds of a Python action that returns 4 MB, until the client has them.
pub(crate) fn large_result(subject: &mut Subject, _options: &AutomationOptions) -> Result<Vec<Value>> {
    let action = python(subject)?;
    subject.run(&action, &json!({}))?;
    runs(subject, 1, "result-4mb", &action, &|_| json!({ "length": LARGE }))
}

/// Microseconds of one workflow of the pack.
pub(crate) fn workflow(subject: &mut Subject, figure: &'static str) -> Result<Vec<Value>> {
    subject.install_pack()?;
    let action = format!("{PACK}.{}", figure.replace('-', "_"));
    runs(subject, 1, figure, &action, &|_| json!({}))
}

fn python(subject: &mut Subject) -> Result<String> {
    subject.install_pack()?;
    Ok(format!("{PACK}.text"))
}

fn runs(
    subject: &mut Subject,
    count: u32,
    figure: &'static str,
    action: &str,
    parameters: &dyn Fn(u32) -> Json,
) -> Result<Vec<Value>> {
    let stream = Stream::open(&subject.api, action)?;
    let times: Result<Vec<f64>> = (0..count)
        .map(|number| {
            let began = Instant::now();
            let end = subject.run_on(&stream, action, &parameters(number))?;
            Ok(micros(end.duration_since(began)))
        })
        .collect();
    let median = Spread::of(times?.into_iter()).context("no execution was timed")?.median;
    Ok(vec![(figure, median)])
}

/// Microseconds from an event to the end of its action, at a rate of events: median and 99 of 100.
pub(crate) fn event_to_action(subject: &mut Subject, options: &AutomationOptions) -> Result<Vec<Value>> {
    let message = json!({ "number": "{{ trigger.body.number }}" });
    let action = json!({ "ref": ANNOUNCEMENT, "parameters": { "message": message } });
    subject.rule("imori_bench_event", "imori-bench-event", true, &action)?;
    let count = (f64::from(options.rate) * options.time.as_secs_f64()).ceil() as u64;
    ensure!(count > 0, "no event is sent in this time; use `--time 5s`");
    let bodies: Result<Vec<Vec<u8>>> = (0..count).map(push_body).collect();
    let (bodies, sender) = (bodies?, subject.api.sender.clone());
    let request = move |number: u64| {
        let body = usize::try_from(number).ok().and_then(|number| bodies.get(number));
        sender.request("POST", "/v1/webhooks/imori-bench-event", body.map(Vec::as_slice).unwrap_or_default())
    };
    let stream = Stream::open(&subject.api, ANNOUNCEMENT)?;
    let load = Load {
        address: subject.api.address,
        connections: options.connections,
        pace: Pace::Open(options.rate),
        count,
        status: 202,
        request: &request,
    };
    let sent = load.run()?;
    let mut ends = HashMap::new();
    while (ends.len() as u64) < count {
        let update = stream
            .next()
            .with_context(|| format!("`{}` of `{count}` events have an action that ended", ends.len()))?;
        if let Some(number) = update.is_end().then(|| event_number(&update)).flatten() {
            ends.entry(number).or_insert(update.at);
        }
    }
    figures(&sent.due, &ends)
}

/// The number of the event that an announcement is about.
fn event_number(update: &Update) -> Option<u64> {
    let number = update.document.get("parameters")?.get("message")?.get("number")?;
    number.as_u64().or_else(|| number.as_str()?.parse().ok())
}

/// The times from when each event was due until its action had ended.
fn figures(due: &[Instant], ends: &HashMap<u64, Instant>) -> Result<Vec<Value>> {
    let mut recorder = Recorder::new();
    for (number, due) in (0..).zip(due) {
        let end = ends.get(&number).with_context(|| format!("event `{number}` has no action that ended"))?;
        recorder.record(end.saturating_duration_since(*due).as_nanos().try_into().unwrap_or(u64::MAX));
    }
    let names = [("event-action-p50", 0.5), ("event-action-p99", 0.99)];
    // A percentile with few samples above it says nothing, and is left out.
    Ok(names.into_iter().filter_map(|(name, at)| Some((name, recorder.quantile_us(at)?))).collect())
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_an_event_is_read_as_the_template_renders_it() {
        let update = |number: Json| Update {
            at: Instant::now(),
            document: json!({ "parameters": { "message": { "number": number } }, "status": "succeeded" }),
        };
        for (number, expected) in
            [(json!(7), Some(7)), (json!("7"), Some(7)), (json!("x"), None), (json!(null), None)]
        {
            assert_eq!(event_number(&update(number.clone())), expected, "{number}");
        }
        assert!(update(json!(1)).is_end());
    }

    #[test]
    fn times_run_from_when_an_event_was_due() {
        let begin = Instant::now();
        let due: Vec<Instant> = (0..2_000).map(|number| begin + Duration::from_millis(number)).collect();
        let late = |number: u64| Duration::from_millis(if number < 1_970 { 2 } else { 30 });
        let mut ends: HashMap<u64, Instant> =
            (0..2_000).map(|number| (number, due[number as usize] + late(number))).collect();
        let found = figures(&due, &ends).unwrap();
        let near = |at: usize, name: &str, micros: f64| {
            found[at].0 == name && (found[at].1 - micros).abs() < micros / 100.0
        };
        assert!(near(0, "event-action-p50", 2e3) && near(1, "event-action-p99", 30e3), "{found:?}");
        assert_eq!(figures(&due[..100], &ends).unwrap().len(), 1, "100 samples have no p99");
        ends.remove(&3);
        assert!(figures(&due, &ends).is_err());
    }
}
