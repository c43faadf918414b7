//! Throughputs: events that are made durable, webhooks whose rule runs a noop, noops requested by the API.

use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use imori_bench::interrupt;
use imori_bench::probe::process::{Usage, usage};
use serde_json::json;

use crate::automation::figure::Value;
use crate::automation::load::{Load, Pace};
use crate::automation::options::AutomationOptions;
use crate::automation::subject::{Subject, push_body};
use crate::limits::API_ANSWER_TIMEOUT;

/// Time between two counts of executions after all requests are answered.
const COUNT_EVERY: Duration = Duration::from_millis(5);

/// Events a second that are on disk: a webhook is answered once its event is.
pub(crate) fn durable_events(subject: &mut Subject, options: &AutomationOptions) -> Result<Vec<Value>> {
    subject.rule("imori_bench_other", "imori-bench-other", false, &json!({ "ref": "core.noop" }))?;
    let work = webhooks(subject, "imori-bench-other", options)?;
    Ok(work.figures(["event-durable", "event-durable-cpu"]))
}

/// Webhooks a second whose rule has run a noop.
pub(crate) fn webhook_noops(subject: &mut Subject, options: &AutomationOptions) -> Result<Vec<Value>> {
    let action = json!({ "ref": "core.noop" });
    let rule = subject.rule("imori_bench_noop", "imori-bench-noop", true, &action)?;
    let list = format!("/v1/executions?rule={rule}&status=succeeded&limit=1&include_attributes=id");
    let before = subject.api.count(&list)?;
    let mut work = webhooks(subject, "imori-bench-noop", options)?;
    work.wait_for(subject, &list, before)?;
    Ok(work.figures(["webhook-noop", "webhook-noop-cpu"]))
}

/// Noops a second that the API requests.
pub(crate) fn noops(subject: &mut Subject, options: &AutomationOptions) -> Result<Vec<Value>> {
    let list = "/v1/executions?action=core.noop&status=succeeded&limit=1&include_attributes=id";
    let before = subject.api.count(list)?;
    let sender = subject.api.sender.clone();
    let request = move |_| sender.request("POST", "/v1/executions", br#"{"action":"core.noop"}"#);
    let mut work = Work::done(subject, options, 201, &request)?;
    work.wait_for(subject, list, before)?;
    Ok(work.figures(["noops", "noops-cpu"]))
}

fn webhooks(subject: &Subject, url: &str, options: &AutomationOptions) -> Result<Work> {
    let (sender, body) = (subject.api.sender.clone(), push_body(0)?);
    let path = format!("/v1/webhooks/{url}");
    Work::done(subject, options, 202, &move |_| sender.request("POST", &path, &body))
}

/// Operations that were requested, and what they took.
#[derive(Debug)]
struct Work {
    operations: u64,
    began: Instant,
    elapsed: Duration,
    before: Usage,
    after: Usage,
}

impl Work {
    fn done(
        subject: &Subject,
        options: &AutomationOptions,
        status: u16,
        request: &dyn Fn(u64) -> Vec<u8>,
    ) -> Result<Work> {
        let operations = options.operations;
        ensure!(operations > 0, "a throughput needs operations; use `--operations 10k`");
        let before = usage(&subject.pids)?;
        let (address, connections) = (subject.api.address, options.connections);
        let load = Load { address, connections, pace: Pace::Closed, count: operations, status, request };
        let sent = load.run()?;
        let elapsed = sent.ended.duration_since(sent.began);
        Ok(Work { operations, began: sent.began, elapsed, before, after: usage(&subject.pids)? })
    }

    /// Waits until the list has one object more for each operation than `before`.
    fn wait_for(&mut self, subject: &mut Subject, list: &str, before: u64) -> Result<()> {
        let expected = before + self.operations;
        let deadline = Instant::now() + API_ANSWER_TIMEOUT;
        loop {
            let done = subject.api.count(list)?;
            if done >= expected {
                break;
            }
            if interrupt::is_asked_for() || Instant::now() >= deadline {
                bail!("`{}` of `{}` executions succeeded", done.saturating_sub(before), self.operations);
            }
            sleep(COUNT_EVERY);
        }
        self.elapsed = self.began.elapsed();
        self.after = usage(&subject.pids)?;
        Ok(())
    }

    /// Operations a second, and microseconds of the broker's CPU for one.
    fn figures(&self, [rate, cpu]: [&'static str; 2]) -> Vec<Value> {
        let operations = self.operations as f64;
        let cpu_micros = self.after.cpu_seconds_since(&self.before) * 1e6;
        vec![(rate, operations / self.elapsed.as_secs_f64()), (cpu, cpu_micros / operations)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_follow_from_operations_time_and_cpu() {
        let usage = |cpu_ticks| Usage { cpu_ticks, ..Usage::default() };
        let elapsed = Duration::from_millis(2_500);
        let (before, after) = (usage(100), usage(250));
        let work = Work { operations: 10_000, began: Instant::now(), elapsed, before, after };
        assert_eq!(work.figures(["a", "b"]), [("a", 4_000.0), ("b", 150.0)]);
    }
}
