//! Memory of fresh brokers: with automation over without, and with rules over without.

use std::thread::sleep;
use std::time::Duration;

use anyhow::Result;
use imori_bench::probe::process::usage;
use serde_json::json;

use crate::automation::figure::Value;
use crate::automation::subject::Starter;

/// Rules whose memory is measured together.
const RULES: u64 = 50;

/// Bytes that automation adds to an idle broker, and that rules add to that.
pub(crate) fn memory(starter: &Starter, hold: Duration) -> Result<Vec<Value>> {
    let resident = |pids: &[u32]| {
        sleep(hold);
        usage(pids).map(|usage| usage.rss_bytes)
    };
    let plain = starter.without_automation()?;
    let without = resident(&plain.pids)?;
    drop(plain);
    let mut subject = starter.with_automation()?;
    let idle = resident(&subject.pids)?;
    for number in 0..RULES {
        let (name, url) = (format!("imori_bench_{number}"), format!("imori-bench-{number}"));
        let action = json!({ "ref": "core.local", "parameters": { "cmd": "echo {{ trigger.body.size }}" } });
        subject.rule(&name, &url, true, &action)?;
    }
    Ok(figures(without, idle, resident(&subject.pids)?))
}

fn figures(without: u64, idle: u64, with_rules: u64) -> Vec<Value> {
    let added = |more: u64, less: u64| more as f64 - less as f64;
    vec![("memory-idle", added(idle, without)), ("memory-rules", added(with_rules, idle))]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_a_difference_that_may_be_negative() {
        assert_eq!(figures(100, 130, 120), [("memory-idle", 30.0), ("memory-rules", -10.0)]);
    }
}
