//! Compares a queue in memory with a naive model of it.

use std::time::Duration;

use proptest::prelude::*;

use super::super::test_stage::{Given, Stage, dead_lettering, properties_with, shown};
use super::*;
use crate::delivery::Outcome;
use crate::message::DeathReason;

#[derive(Debug, Clone)]
enum Step {
    Publish { priority: u8, expiration_ms: Option<u32> },
    Grant(u32),
    Settle { index: usize, outcome: Outcome },
    Pass(u64),
    Purge,
}

fn step() -> impl Strategy<Value = Step> {
    let outcome = prop_oneof![
        Just(Outcome::Accept),
        Just(Outcome::Reject),
        any::<bool>().prop_map(|failed| Outcome::Release { failed }),
    ];
    prop_oneof![
        6 => (0..4_u8, proptest::option::of(0..50_u32))
            .prop_map(|(priority, expiration_ms)| Step::Publish { priority, expiration_ms }),
        3 => (1..4_u32).prop_map(Step::Grant),
        4 => (any::<prop::sample::Index>(), outcome)
            .prop_map(|(index, outcome)| Step::Settle { index: index.index(1 << 16), outcome }),
        2 => (0..30_u64).prop_map(Step::Pass),
        1 => Just(Step::Purge),
    ]
}

/// A second queue, written without a thought for cost.
#[derive(Default)]
struct Model {
    ready: Vec<Modelled>,
    unsettled: Vec<Modelled>,
    gone: Vec<String>,
    given: Vec<Given>,
    credit: u32,
    /// The reader was offered a message without credit, and got no credit since.
    is_full: bool,
    next: u64,
}

#[derive(Debug, Clone)]
struct Modelled {
    sequence: u64,
    priority: u8,
    deadline: Option<Time>,
    failures: u32,
    is_redelivered: bool,
}

const MODEL_PRIORITY_MAX: u8 = 2;
const MODEL_LENGTH_MAX: usize = 8;
const MODEL_DELIVERY_LIMIT: u32 = 2;

impl Model {
    fn dead_letter(&mut self, message: &Modelled, reason: DeathReason) {
        self.gone.push(format!("{}:{}", message.sequence, reason.as_str()));
    }

    fn sort(&mut self) {
        self.ready.sort_by_key(|message| (u8::MAX - message.priority, message.sequence));
    }

    /// Removes the expired messages at the front of each priority.
    fn expire(&mut self, now: Time) {
        for priority in (0..=MODEL_PRIORITY_MAX).rev() {
            while let Some(index) = self.ready.iter().position(|message| message.priority == priority)
                && self.ready[index].deadline.is_some_and(|deadline| deadline <= now)
            {
                let message = self.ready.remove(index);
                self.dead_letter(&message, DeathReason::Expired);
            }
        }
    }

    fn deliver(&mut self, now: Time) {
        self.expire(now);
        while !self.is_full && !self.ready.is_empty() {
            let message = self.ready.remove(0);
            if message.deadline.is_some_and(|deadline| deadline <= now) {
                self.dead_letter(&message, DeathReason::Expired);
            } else if let Some(message) = self.offer(message) {
                self.ready.insert(0, message);
            }
        }
    }

    /// Delivers a message, or returns it if there is no credit.
    fn offer(&mut self, message: Modelled) -> Option<Modelled> {
        if self.credit == 0 {
            self.is_full = true;
            return Some(message);
        }
        self.credit -= 1;
        self.given.push(Given {
            reader: 1,
            sequence: message.sequence,
            body: message.sequence.to_string(),
            failures: message.failures,
            is_redelivered: message.is_redelivered,
        });
        self.unsettled.push(message);
        None
    }

    fn publish(&mut self, priority: u8, expiration_ms: Option<u32>, now: Time) {
        self.next += 1;
        let deadline = expiration_ms.map(|ms| now.after(Duration::from_millis(u64::from(ms))));
        let message = Modelled {
            sequence: self.next,
            priority: priority.min(MODEL_PRIORITY_MAX),
            deadline,
            failures: 0,
            is_redelivered: false,
        };
        // A reader with credit gets it, however short its time to live.
        let hands_over = self.ready.is_empty() && !self.is_full;
        let Some(message) = (if hands_over { self.offer(message) } else { Some(message) }) else {
            return;
        };
        self.ready.push(message);
        self.sort();
        // A released message can exceed the limit too.
        while self.ready.len() > MODEL_LENGTH_MAX {
            let least = self.ready.iter().map(|message| message.priority).min().unwrap();
            let index = self.ready.iter().position(|message| message.priority == least).unwrap();
            let message = self.ready.remove(index);
            self.dead_letter(&message, DeathReason::Overflow);
        }
    }

    fn settle(&mut self, sequence: u64, outcome: Outcome) {
        let Some(index) = self.unsettled.iter().position(|message| message.sequence == sequence) else {
            return;
        };
        let mut message = self.unsettled.remove(index);
        match outcome {
            Outcome::Accept => {}
            Outcome::Reject => self.dead_letter(&message, DeathReason::Rejected),
            Outcome::Release { failed } | Outcome::Refuse { failed } => {
                message.failures += u32::from(failed);
                message.is_redelivered = true;
                if message.failures > MODEL_DELIVERY_LIMIT {
                    self.dead_letter(&message, DeathReason::DeliveryLimit);
                } else {
                    self.ready.push(message);
                    self.sort();
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn a_queue_does_what_its_model_does(steps in prop::collection::vec(step(), 1..80)) {
        let mut stage = Stage::with_reader(
            QueueSettings {
                priority_max: Some(MODEL_PRIORITY_MAX),
                length_max: Some(MODEL_LENGTH_MAX as u64),
                delivery_limit: Some(MODEL_DELIVERY_LIMIT),
                ..dead_lettering()
            },
            0,
        );
        let mut model = Model::default();
        for step in steps {
            match step.clone() {
                Step::Publish { priority, expiration_ms } => {
                    model.publish(priority, expiration_ms, stage.now);
                    let properties = properties_with(Some(priority), expiration_ms);
                    stage.publish_with(&model.next.to_string(), &properties, None).unwrap();
                }
                Step::Grant(credit) => {
                    model.credit += credit;
                    model.is_full = false;
                    model.deliver(stage.now);
                    stage.grant(1, credit);
                }
                Step::Settle { index, outcome } => {
                    let sequence = index as u64 % (model.next + 2);
                    model.settle(sequence, outcome);
                    model.deliver(stage.now);
                    stage.settle(sequence, outcome);
                }
                Step::Pass(ms) => {
                    stage.pass(Duration::from_millis(ms));
                    model.expire(stage.now);
                }
                Step::Purge => {
                    prop_assert_eq!(stage.purge(), model.ready.len());
                    model.ready.clear();
                }
            }
            prop_assert_eq!(&stage.given, &model.given, "{:?}", step);
            let dead_lettered: Vec<String> = stage.effects.dead().iter().map(shown).collect();
            prop_assert_eq!(&dead_lettered, &model.gone, "{:?}", step);
            prop_assert_eq!(stage.queue.ready_len(), model.ready.len());
            prop_assert_eq!(stage.queue.unsettled_len(), model.unsettled.len());
            prop_assert_eq!(stage.credit[&1], model.credit);
            let bytes: usize = model.ready.iter().map(|message| message.sequence.to_string().len()).sum();
            prop_assert_eq!(stage.queue.ready.body_bytes(), bytes as u64);
        }
        let gauge = stage.gauge.clone();
        drop(stage);
        prop_assert_eq!(gauge.bytes(), 0);
    }
}
