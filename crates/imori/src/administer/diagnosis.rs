//! Why a queue grows or stands still, in sentences with the figures.

use std::time::Duration;

use serde_json::Value;

use crate::admin_client::text;
use crate::figures::{count, counted, duration, rate};

/// The share of the rate of publishing by which a queue grows or shrinks at least, to say so.
const NOTICEABLE_SHARE: f64 = 0.02;

/// What the broker says of a queue, its consumers and itself.
#[derive(Debug)]
pub struct Evidence {
    /// The queue, as `/v1/queues` shows it.
    pub queue: Value,
    /// Its consumers, as `/v1/consumers` lists them: those that the user may see.
    pub consumers: Vec<Value>,
    /// The broker, as `/v1/overview` shows it.
    pub overview: Value,
}

impl Evidence {
    /// Says in one paragraph what the queue does, and why.
    pub fn diagnosis(&self) -> String {
        let sentences = [self.what(), self.consumption(), self.delayed(), self.alarms(), self.limits()];
        sentences.into_iter().flatten().collect::<Vec<String>>().join(" ")
    }

    fn number(&self, field: &str) -> u64 {
        self.queue[field].as_u64().unwrap_or_default()
    }

    fn rate(&self, kind: &str) -> f64 {
        self.queue["rates"][kind]["per_second"].as_f64().unwrap_or_default()
    }

    /// How many messages wait, for how long, and whether they become more.
    fn what(&self) -> Option<String> {
        let (ready, into, out) = (self.number("ready"), self.rate("published"), self.rate("delivered"));
        let flow = format!("{} come in and {} go out", rate(into), rate(out));
        if ready == 0 {
            let never = self.queue["rates"]["published"]["total"] == 0;
            return Some(match never {
                true => {
                    String::from("No message waits, and none was published to it since the broker started.")
                }
                false => format!("No message waits; {flow}."),
            });
        }
        let age = self.queue["oldest_ms"].as_u64().map(Duration::from_millis);
        let age = age.map(|age| format!(", the oldest for {}", duration(age))).unwrap_or_default();
        let waiting = format!("{}{age}", with_verb(ready, ["message waits", "messages wait"]));
        let (growth, noticeable) = (into - out, f64::max(NOTICEABLE_SHARE * into, 0.1));
        Some(if growth > noticeable {
            format!("{waiting}. It grows by {}: {flow}.", rate(growth))
        } else if -growth > noticeable {
            let left = duration(Duration::from_secs_f64((ready as f64 / -growth).min(1e9)));
            format!("{waiting}. It shrinks by {}, so that it is empty in {left}: {flow}.", rate(-growth))
        } else if into < 0.05 && out < 0.05 {
            format!("{waiting}. It stands still: nothing comes in and nothing goes out.")
        } else {
            format!("{waiting}. It keeps its length: {flow}.")
        })
    }

    /// Who takes messages, and what keeps them from it.
    fn consumption(&self) -> Option<String> {
        let (consumers, unsettled) = (self.number("consumers"), self.number("unsettled"));
        let settled = rate(self.rate("acknowledged"));
        if self.number("ready") == 0 {
            let waiting = with_verb(unsettled, ["delivery waits", "deliveries wait"]);
            return (unsettled > 0).then(|| format!("{waiting} to be settled; {settled} are."));
        }
        if consumers == 0 {
            return Some(String::from("It has no consumer."));
        }
        let exhausted =
            self.consumers.iter().filter(|consumer| consumer["credit"] == 0).collect::<Vec<&Value>>();
        let their = if self.consumers.len() == 1 { "its client has" } else { "their clients have" };
        let whose = match (exhausted.len(), self.consumers.len()) {
            (0, _) if self.rate("delivered") < 0.05 => {
                return Some(format!(
                    "It has {} with credit that take nothing: no message may match their selectors, or another consumer \
                     is the only one that may take them.",
                    counted(consumers, "consumer")
                ));
            }
            (0, _) => {
                return Some(format!(
                    "Its {} have credit and take all that they can: more of them, or faster ones, would take more.",
                    counted(consumers, "consumer")
                ));
            }
            (1, 1) => String::from("Its consumer has no credit"),
            (out, all) if out == all => format!("None of its {all} consumers has credit"),
            (out, all) => format!("{out} of its {all} consumers have no credit"),
        };
        let is_granted = exhausted.iter().all(|consumer| consumer["prefetch"].is_null()) && unsettled == 0;
        Some(if is_granted {
            format!("{whose}: {their} granted none.")
        } else {
            format!(
                "{whose} until deliveries are settled: {} are unsettled, and {settled} are settled.",
                count(unsettled)
            )
        })
    }

    fn delayed(&self) -> Option<String> {
        let delayed = self.number("delayed");
        let are = with_verb(delayed, ["message is", "messages are"]);
        (delayed > 0).then(|| format!("{are} delayed and not due yet."))
    }

    /// What holds publishers back.
    fn alarms(&self) -> Option<String> {
        let told = [
            (self.overview["memory_alarm"] == true, "All publishers wait for memory."),
            (self.overview["disk_alarm"] == true, "Publishers of persistent messages wait for disk space."),
            (
                self.queue["publishers_wait"] == true,
                "Its publishers wait, because it grows faster than it is written to disk.",
            ),
        ];
        let told: Vec<&str> =
            told.into_iter().filter_map(|(is_so, sentence)| is_so.then_some(sentence)).collect();
        (!told.is_empty()).then(|| told.join(" "))
    }

    /// The limits that it has reached, or that drop what waits.
    fn limits(&self) -> Option<String> {
        let settings = self.queue["in_effect"].as_array().map_or(&[][..], Vec::as_slice);
        let set =
            |key: &str| settings.iter().find(|setting| setting["key"] == key && !setting["value"].is_null());
        let by = |setting: &Value| text(&setting["source"]);
        let mut told = Vec::new();
        for (key, reached) in
            [("max-length", self.number("ready")), ("max-length-bytes", self.number("ready_bytes"))]
        {
            let Some(limit) = set(key) else { continue };
            if limit["value"].as_u64().is_some_and(|limit| reached >= limit) {
                let overflow = set("overflow").map(|overflow| text(&overflow["value"])).unwrap_or_default();
                told.push(format!(
                    "It is full: `{key}` is {} by {}, and `overflow` is `{overflow}`.",
                    text(&limit["value"]),
                    by(limit)
                ));
            }
        }
        if let Some(ttl) = set("message-ttl")
            && let Some(limit) = ttl["value"].as_u64()
        {
            told.push(format!(
                "What waits for {} expires, by {}.",
                duration(Duration::from_millis(limit)),
                by(ttl)
            ));
        }
        (!told.is_empty()).then(|| told.join(" "))
    }
}

/// A count with its noun and verb, for one and for several.
fn with_verb(number: u64, [one, several]: [&str; 2]) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { several })
}
