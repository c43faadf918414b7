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
pub const COLUMNS: &str = "[\"id\",\"vhost\",\"name\",\"kind\",\"durable\",\"ready\",\"unsettled\",\"bytes\",\
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
pub struct QueueNumbers {
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
pub struct QueueReading {
    /// The vhost, whose users see the row.
    pub vhost: VhostId,
    /// Messages that wait for a consumer.
    pub ready: usize,
    /// Deliveries that no consumer has settled.
    pub unsettled: usize,
    /// Body bytes of ready messages.
    pub bytes: u64,
    /// Consumers of the queue.
    pub consumers: usize,
    /// Messages published to the queue so far.
    pub published: u64,
    /// Deliveries so far.
    pub delivered: u64,
    /// When the message that is next began to wait; unknown for one on disk.
    pub waits_since: Option<Time>,
    /// Publishers wait for the queue.
    pub is_throttling: bool,
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
    pub fn numbers(&self, before: Option<&QueueNumbers>, now: Time, time: Duration) -> QueueNumbers {
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
pub fn shown_age(age: Option<u64>, shown: Option<u64>) -> Option<u64> {
    match (age, shown) {
        (Some(age), Some(shown)) if age.abs_diff(shown) < AGE_STEP_MS.max(shown / 10) => Some(shown),
        _ => age,
    }
}

/// The number of a queue, which rises with its slot.
pub fn number(id: QueueId) -> u64 {
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
pub fn write(numbers: &QueueNumbers, text: &mut String) {
    let Shown { ready, unsettled, bytes, consumers, in_rate, out_rate, oldest_ms, state } = numbers.shown;
    let oldest = oldest_ms.map_or_else(|| String::from("null"), |age| age.to_string());
    let state = state.map_or_else(|| String::from("null"), |state| format!("\"{state}\""));
    // Writing to a string cannot fail.
    let _ = write!(text, "{ready},{unsettled},{bytes},{consumers},{in_rate},{out_rate},{oldest},{state}]");
}
