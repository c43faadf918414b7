//! The list of queues, as readers of the feed get it.

use std::fmt::Write as _;
use std::time::Duration;

use imori_core::id::{QueueId, VhostId};
use imori_core::queue::Queue;
use imori_core::time::Time;
use imori_server::broker::Broker;
use serde_json::json;

use super::counts::shown_rate;
use super::rows::Rows;
use crate::limits::GROWING_SECONDS;
use crate::milliseconds::millis;
use crate::operations::queues::waits_since;

/// The columns of a row, as a JSON list.
pub(crate) const COLUMNS: &str = "[\"id\",\"vhost\",\"name\",\"kind\",\"durable\",\"ready\",\"unsettled\",\"bytes\",\
    \"consumers\",\"in_rate\",\"out_rate\",\"oldest_ms\",\"state\"]";

/// Bits of a queue's number that count earlier queues in its slot: with the slot's 32 bits, JavaScript still reads the
/// number exactly.
const GENERATION_BITS: u32 = 21;

/// Ages below this differ in every pass; a shown age is wrong by at most this, or by a tenth.
const AGE_STEP_MS: u64 = 1_000;

/// The list; who may see the vhost of a queue may see its row.
pub(crate) type QueueRows = Rows<VhostId, QueueNumbers>;

/// The numbers of a queue that change. Two are equal if the same is shown of them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QueueNumbers {
    published: u64,
    delivered: u64,
    /// Passes in which the queue became longer, less those in which it did not.
    rises: u8,
    shown: Shown,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Shown {
    ready: usize,
    unsettled: usize,
    bytes: u64,
    consumers: usize,
    in_rate: f64,
    out_rate: f64,
    oldest_ms: Option<u64>,
    state: Option<&'static str>,
}

impl PartialEq for QueueNumbers {
    fn eq(&self, other: &QueueNumbers) -> bool {
        self.shown == other.shown
    }
}

/// What a pass reads of a queue under its lock.
#[derive(Debug, Clone, Copy)]
pub(super) struct QueueReading {
    pub(super) vhost: VhostId,
    pub(super) ready: usize,
    pub(super) unsettled: usize,
    bytes: u64,
    consumers: usize,
    published: u64,
    delivered: u64,
    /// When the message that is next began to wait; unknown for one on disk.
    waits_since: Option<Time>,
    is_throttling: bool,
}

impl QueueReading {
    /// Reads a queue for its row.
    pub(super) fn of(queue: &Queue) -> QueueReading {
        let activity = queue.activity();
        QueueReading {
            vhost: queue.vhost(),
            ready: queue.ready_len(),
            unsettled: queue.unsettled_len(),
            bytes: queue.ready_bytes(),
            consumers: queue.consumers_len(),
            published: activity.published,
            delivered: activity.deliveries(),
            waits_since: waits_since(queue),
            is_throttling: queue.is_throttling(),
        }
    }

    /// The numbers of the row, after a pass that was `time` ago.
    fn numbers(&self, before: Option<&QueueNumbers>, now: Time, time: Duration) -> QueueNumbers {
        let rises = before.map_or(0, |before| match self.ready.cmp(&before.shown.ready) {
            std::cmp::Ordering::Greater => before.rises.saturating_add(1).min(2 * GROWING_SECONDS),
            std::cmp::Ordering::Equal => before.rises.saturating_sub(1),
            std::cmp::Ordering::Less => 0,
        });
        let age = self.waits_since.map(|since| millis(now.since(since)));
        QueueNumbers {
            published: self.published,
            delivered: self.delivered,
            rises,
            shown: Shown {
                ready: self.ready,
                unsettled: self.unsettled,
                bytes: self.bytes,
                consumers: self.consumers,
                in_rate: shown_rate(self.published, before.map(|before| before.published), time),
                out_rate: shown_rate(self.delivered, before.map(|before| before.delivered), time),
                oldest_ms: shown_age(age, before.and_then(|before| before.shown.oldest_ms)),
                state: match () {
                    () if self.is_throttling => Some("throttling"),
                    () if rises >= GROWING_SECONDS => Some("growing"),
                    () => None,
                },
            },
        }
    }

    /// Adds the queue to the pass over the list.
    pub(super) fn meet(&self, rows: &mut QueueRows, id: QueueId, broker: &Broker, now: Time, time: Duration) {
        let fixed = || {
            let (vhost, text) = broker.with_queue(id, |queue| (queue.vhost(), fixed(id, queue, broker)))?;
            Some((vhost, text))
        };
        rows.meet(number(id), |before| self.numbers(before, now, time), fixed, write);
    }
}

/// The age to show, given the one that is shown: it changes only if that differs noticeably, because a row with another
/// age is sent to each reader.
fn shown_age(age: Option<u64>, shown: Option<u64>) -> Option<u64> {
    match (age, shown) {
        (Some(age), Some(shown)) if age.abs_diff(shown) < AGE_STEP_MS.max(shown / 10) => Some(shown),
        _ => age,
    }
}

/// The number of a queue, which rises with its slot.
fn number(id: QueueId) -> u64 {
    (u64::from(id.slot) << GENERATION_BITS) | u64::from(id.generation & ((1 << GENERATION_BITS) - 1))
}

/// The part of a row that never changes.
fn fixed(id: QueueId, queue: &Queue, broker: &Broker) -> String {
    let settings = queue.declared();
    let is_temporary = settings.exclusive_to.is_some() || settings.is_auto_delete;
    let kind = if is_temporary { "temporary" } else { settings.kind.name() };
    let (vhost, name) = (json!(broker.vhost_name(queue.vhost())), json!(queue.name().to_string()));
    format!("[{},{vhost},{name},\"{kind}\",{},", number(id), settings.is_durable)
}

/// Writes the rest of a row.
fn write(numbers: &QueueNumbers, text: &mut String) {
    let Shown { ready, unsettled, bytes, consumers, in_rate, out_rate, oldest_ms, state } = numbers.shown;
    let oldest = oldest_ms.map_or_else(|| String::from("null"), |age| age.to_string());
    let state = state.map_or_else(|| String::from("null"), |state| format!("\"{state}\""));
    // Writing to a string cannot fail.
    let _ = write!(text, "{ready},{unsettled},{bytes},{consumers},{in_rate},{out_rate},{oldest},{state}]");
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    const READING: QueueReading = QueueReading {
        vhost: VhostId(0),
        ready: 5,
        unsettled: 1,
        bytes: 500,
        consumers: 2,
        published: 100,
        delivered: 40,
        waits_since: Some(Time(1_000_000)),
        is_throttling: false,
    };

    const SECOND: Duration = Duration::from_secs(1);

    fn next(before: Option<&QueueNumbers>, reading: QueueReading, at_ms: u64) -> QueueNumbers {
        reading.numbers(before, Time(at_ms * 1_000), SECOND)
    }

    #[test]
    fn a_row_has_a_value_for_each_column() {
        let first = next(None, READING, 3_500);
        let mut text = String::from("[1,\"/\",\"a\",\"classic\",true,");
        write(&first, &mut text);
        let row: Value = serde_json::from_str(&text).unwrap();
        let columns: Vec<String> = serde_json::from_str(COLUMNS).unwrap();
        assert_eq!(row.as_array().unwrap().len(), columns.len());
        assert_eq!(text, "[1,\"/\",\"a\",\"classic\",true,5,1,500,2,0,0,2500,null]");
    }

    #[test]
    fn rates_are_those_since_the_last_pass() {
        let first = next(None, READING, 3_500);
        let moved = QueueReading { published: 150, delivered: 41, ..READING };
        let second = next(Some(&first), moved, 3_600);
        assert_eq!((second.shown.in_rate, second.shown.out_rate), (50.0, 1.0));
        let third = next(Some(&second), QueueReading { published: 200, delivered: 42, ..READING }, 3_700);
        assert_eq!(third, second, "the same is shown");
        assert_eq!(next(Some(&third), QueueReading { published: 200, ..moved }, 3_700).shown.in_rate, 0.0);
    }

    #[test]
    fn an_age_changes_when_it_differs_noticeably() {
        for (age, shown, expected) in [
            (None, None, None),
            (None, Some(5), None),
            (Some(5), None, Some(5)),
            (Some(999), Some(0), Some(0)),
            (Some(1_000), Some(0), Some(1_000)),
            (Some(109_999), Some(100_000), Some(100_000)),
            (Some(110_000), Some(100_000), Some(110_000)),
            (Some(10), Some(100_000), Some(10)),
        ] {
            assert_eq!(shown_age(age, shown), expected, "{age:?} after {shown:?}");
        }
    }

    #[test]
    fn a_queue_that_becomes_longer_for_some_seconds_grows() {
        let mut numbers = next(None, READING, 3_000);
        for ready in 6..6 + usize::from(GROWING_SECONDS) {
            assert_eq!(numbers.shown.state, None);
            numbers = next(Some(&numbers), QueueReading { ready, ..READING }, 3_000);
        }
        assert_eq!(numbers.shown.state, Some("growing"));
        let shorter = next(Some(&numbers), READING, 3_000);
        assert_eq!(shorter.shown.state, None);
        let throttling = QueueReading { is_throttling: true, ..READING };
        assert_eq!(next(Some(&shorter), throttling, 3_000).shown.state, Some("throttling"));
    }

    #[test]
    fn numbers_of_queues_are_exact_in_javascript() {
        let last = number(QueueId { slot: u32::MAX, generation: u32::MAX });
        assert!(last < 1 << 53, "{last}");
        let id = |slot, generation| number(QueueId { slot, generation });
        assert!(id(1, 0) > id(0, 7) && id(1, 1) != id(1, 0));
    }
}
