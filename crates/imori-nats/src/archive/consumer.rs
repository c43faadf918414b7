//! The state of a consumer in an archive.

use std::collections::BTreeMap;

use imori_core::name::Name;
use imori_core::record::ConsumerState;
use imori_core::stream::{ConsumerSettings, Position};
use imori_core::time::Time;
use imori_streams::consumer_config::ConsumerConfig;
use serde::{Deserialize, Serialize};

use super::entry::NUMBER_MAX;

/// A consumer with its configuration and state.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchivedConsumer {
    /// The configuration.
    pub config: ConsumerConfig,
    /// The state, as nats-server has it.
    state: State,
    /// The rest of the state, which nats-server leaves out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    imori: Option<Rest>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct State {
    delivered: Place,
    ack_floor: Place,
    /// Deliveries without an acknowledgement, by sequence number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pending: Option<BTreeMap<u64, Delivered>>,
    /// How often messages were delivered again, by sequence number.
    #[serde(skip_serializing_if = "Option::is_none")]
    redelivered: Option<BTreeMap<u64, u64>>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Place {
    consumer_seq: u64,
    stream_seq: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Delivered {
    /// The number of the delivery.
    sequence: u64,
    /// When it was, in nanoseconds since the UNIX epoch.
    timestamp: i64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Rest {
    /// When the consumer was made, in microseconds since the UNIX epoch.
    created: u64,
    /// The first message that it has not looked at.
    next: u64,
    /// Messages to deliver before that one.
    first_ones: Vec<u64>,
    /// Messages from that one on that are acknowledged.
    acked: Vec<u64>,
}

impl ArchivedConsumer {
    /// The consumer with this configuration and state at the time `now`.
    #[must_use]
    pub fn new(config: ConsumerConfig, state: &ConsumerState, now: Time) -> ArchivedConsumer {
        let timestamp = i64::try_from(now.0.saturating_mul(1000)).unwrap_or(i64::MAX);
        let delivered = |number: u64| Delivered { sequence: number, timestamp };
        let pending: BTreeMap<_, _> =
            state.pending.iter().map(|(sequence, number, _)| (*sequence, delivered(*number))).collect();
        let again = state.pending.iter().filter(|(.., deliveries)| *deliveries > 1);
        let redelivered: BTreeMap<_, _> =
            again.map(|(sequence, _, deliveries)| (*sequence, deliveries - 1)).collect();
        ArchivedConsumer {
            config,
            state: State {
                delivered: Place::of(state.delivered),
                ack_floor: Place::of(state.floor),
                pending: Some(pending).filter(|pending| !pending.is_empty()),
                redelivered: Some(redelivered).filter(|redelivered| !redelivered.is_empty()),
            },
            imori: Some(Rest {
                created: state.created.0,
                next: state.next,
                first_ones: state.first_ones.clone(),
                acked: state.done.clone(),
            }),
        }
    }

    /// Bytes that it takes in memory, about.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let pending = self.state.pending.as_ref().map_or(0, BTreeMap::len);
        let again = self.state.redelivered.as_ref().map_or(0, BTreeMap::len);
        let rest = self.imori.as_ref().map_or(0, |rest| rest.first_ones.len() + rest.acked.len());
        size_of::<ArchivedConsumer>() + 40 * pending + 24 * again + 8 * rest
    }

    /// The state of a consumer with this name and these settings that is restored at the time `now`, of a stream whose last
    /// message is `last`. Places behind that message are taken for that message, as in nats-server.
    #[must_use]
    pub fn state(&self, name: &str, settings: ConsumerSettings, (last, now): (u64, Time)) -> ConsumerState {
        let State { delivered, ack_floor, pending, redelivered } = &self.state;
        let deliveries = |sequence: &u64| {
            let again = redelivered.as_ref().and_then(|again| again.get(sequence));
            again.map_or(1, |again| (*again).min(NUMBER_MAX) + 1)
        };
        let pending = pending.iter().flatten();
        let pending = pending.map(|(sequence, delivered)| {
            (*sequence, delivered.sequence.min(NUMBER_MAX), deliveries(sequence))
        });
        let rest = self.imori.clone().unwrap_or_else(|| Rest {
            created: now.0,
            next: delivered.stream_seq.saturating_add(1),
            ..Rest::default()
        });
        ConsumerState {
            name: Name::from(name),
            created: Time(rest.created.min(now.0)),
            settings,
            next: rest.next.clamp(1, last + 1),
            delivered: delivered.position(last),
            floor: ack_floor.position(last),
            pending: pending.collect(),
            first_ones: rest.first_ones,
            done: rest.acked,
        }
    }
}

impl Place {
    fn of(position: Position) -> Place {
        Place { consumer_seq: position.consumer, stream_seq: position.stream }
    }

    fn position(self, last: u64) -> Position {
        Position { consumer: self.consumer_seq.min(NUMBER_MAX), stream: self.stream_seq.min(last) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use imori_streams::settings::consumer_settings;

    fn settings() -> ConsumerSettings {
        consumer_settings(&ConsumerConfig::default()).unwrap()
    }

    #[test]
    fn the_state_of_a_consumer_comes_back() {
        let state = ConsumerState {
            name: Name::from("counter"),
            created: Time(7),
            settings: settings(),
            next: 9,
            delivered: Position { consumer: 12, stream: 8 },
            floor: Position { consumer: 3, stream: 3 },
            pending: vec![(5, 11, 4), (8, 12, 1)],
            first_ones: vec![2],
            done: vec![10],
        };
        let config = ConsumerConfig { name: "counter".to_owned(), ..ConsumerConfig::default() };
        let json = serde_json::to_vec(&ArchivedConsumer::new(config, &state, Time(1_000))).unwrap();
        let read: ArchivedConsumer = serde_json::from_slice(&json).unwrap();
        assert_eq!(read.state("counter", settings(), (20, Time(2_000))), state);
    }

    #[test]
    fn the_state_that_nats_server_writes_is_read() {
        let json = br#"{"config":{"name":"D","durable_name":"D","ack_policy":"explicit","num_replicas":0},
            "state":{"delivered":{"consumer_seq":3,"stream_seq":4},"ack_floor":{"consumer_seq":1,"stream_seq":1},
            "pending":{"2":{"Sequence":2,"Timestamp":1790000000000000000},"4":{"Sequence":3,"Timestamp":1}},
            "redelivered":{"2":1}}}"#;
        let read: ArchivedConsumer = serde_json::from_slice(json).unwrap();
        let state = read.state("D", settings(), (9, Time(5)));
        assert_eq!(state.pending, [(2, 2, 2), (4, 3, 1)]);
        assert_eq!((state.next, state.created), (5, Time(5)));
        let bounded = read.state("D", settings(), (3, Time(5)));
        assert_eq!((bounded.next, bounded.delivered.stream), (4, 3));
    }
}
