//! The queues of a run, and the guarantees that they must keep.

use std::time::Duration;

use imori_core::confirm::Level;

use crate::broker_end::EndKind;
use crate::random::Random;

/// A queue of a run.
#[derive(Debug, Clone, Default)]
pub(crate) struct QueueSpec {
    pub(crate) name: String,
    /// The headers that declare it.
    pub(crate) arguments: Vec<(&'static str, String)>,
    /// The index of its dead-letter queue.
    pub(crate) dead_letter: Option<usize>,
    pub(crate) is_dead_letter_queue: bool,
    /// The pattern of its binding to the topic exchange; a bound queue is never addressed by name.
    pub(crate) pattern: Option<String>,
    pub(crate) ttl_ms: Option<usize>,
    /// Whether the queue has a length limit.
    pub(crate) is_bounded: bool,
    /// Whether it refuses messages at its limit instead of dropping some.
    pub(crate) refuses: bool,
    pub(crate) has_priorities: bool,
    pub(crate) has_delivery_limit: bool,
    /// Whether it delivers to one consumer at a time.
    pub(crate) is_single_active: bool,
    /// The window within which it accepts each id once.
    pub(crate) window: Option<Duration>,
    /// Whether the queue can disappear and come back empty.
    pub(crate) is_volatile: bool,
    /// Whether the queue ends with the broker.
    pub(crate) is_transient: bool,
    /// The declared confirm level of persistent messages.
    pub(crate) level: Option<Level>,
}

impl QueueSpec {
    /// Whether the queue and its messages survive the broker.
    pub(crate) fn is_kept(&self) -> bool {
        !self.is_volatile && !self.is_transient
    }

    /// The level of its confirms.
    pub(crate) fn level(&self) -> Level {
        if self.is_transient { Level::Memory } else { self.level.unwrap_or(Level::Disk) }
    }

    /// Whether its confirmed messages survive this kind of end.
    pub(crate) fn keeps(&self, kind: EndKind) -> bool {
        self.is_kept() && self.level() >= kind.level()
    }

    fn argue(&mut self, name: &'static str, value: &dyn ToString) {
        self.arguments.push((name, value.to_string()));
    }

    pub(crate) fn limit_time(&mut self, ttl_ms: usize) {
        self.argue("x-message-ttl", &ttl_ms);
        self.ttl_ms = Some(ttl_ms);
    }

    pub(crate) fn limit_length(&mut self, messages: usize) {
        self.argue("x-max-length", &messages);
        self.is_bounded = true;
    }

    pub(crate) fn limit_deliveries(&mut self, failures: usize) {
        self.argue("x-delivery-limit", &failures);
        self.has_delivery_limit = true;
    }

    pub(crate) fn have_one_active(&mut self) {
        self.argue("x-single-active-consumer", &"true");
        self.is_single_active = true;
    }

    /// Sends dead letters to the queue with this name and index.
    pub(crate) fn send_dead_to(&mut self, name: &str, index: usize) {
        self.argue("x-dead-letter-exchange", &"");
        self.argue("x-dead-letter-routing-key", &name);
        self.dead_letter = Some(index);
    }
}

/// The words of subjects and patterns.
const WORDS: [&str; 3] = ["a", "b", "c"];

/// The queues of a run; few and short-lived ones with `comes_and_goes`.
pub(crate) fn queues(random: &Random, comes_and_goes: bool) -> Vec<QueueSpec> {
    let mut queues = vec![QueueSpec { name: String::from("rpc"), ..QueueSpec::default() }];
    for number in 0..if comes_and_goes { 1 } else { random.between(1, 3) } {
        let mut queue = QueueSpec { name: format!("q{number}"), ..QueueSpec::default() };
        if random.chance(1, 5) {
            queue.limit_time(random.between(0, 40));
        }
        if random.chance(1, 5) {
            queue.limit_length(random.between(0, 5));
            match random.below(3) {
                0 => {}
                1 => {
                    queue.argue("x-overflow", &"reject-publish");
                    queue.refuses = true;
                }
                _ => {
                    queue.argue("x-overflow", &"reject-publish-dlx");
                    queue.refuses = true;
                }
            }
        }
        if random.chance(1, 6) {
            queue.argue("x-max-priority", &3);
            queue.has_priorities = true;
        }
        if random.chance(1, 8) {
            queue.limit_deliveries(random.between(0, 2));
        }
        if comes_and_goes || random.chance(1, 8) {
            queue.argue("auto-delete", &"true");
            queue.is_volatile = true;
        }
        if random.chance(1, 16) {
            queue.argue("x-expires", &random.between(1, 50));
            queue.is_volatile = true;
        }
        if random.chance(1, 12) {
            queue.argue("durable", &"false");
            queue.is_transient = true;
        }
        if random.chance(1, 4) {
            let level = *random.pick(&[Level::Os, Level::Os, Level::Disk, Level::Memory]);
            queue.argue("x-level", &level);
            queue.level = Some(level);
        }
        if random.chance(1, 6) {
            queue.arguments.retain(|(name, _)| *name != "durable");
            queue.is_transient = false;
            queue.pattern = Some(pattern(random));
            queue.name = format!("bound{number}");
            queue.arguments.push(("durable", String::from("true")));
            queue.arguments.retain(|(name, _)| *name != "auto-delete");
            queue.is_volatile = queue.arguments.iter().any(|(name, _)| *name == "x-expires");
        }
        if random.chance(1, 3) {
            let name = format!("dead{number}");
            queue.send_dead_to(&name, queues.len() + 1);
            queues.push(queue);
            queues.push(QueueSpec { name, is_dead_letter_queue: true, ..QueueSpec::default() });
        } else {
            queues.push(queue);
        }
    }
    queues
}

/// A subject of one to three words.
pub(crate) fn subject(random: &Random) -> String {
    let words: Vec<&str> = (0..random.between(1, 3)).map(|_| *random.pick(&WORDS)).collect();
    words.join(".")
}

/// A pattern that often matches.
pub(crate) fn pattern(random: &Random) -> String {
    let mut words: Vec<&str> = (0..random.between(1, 2))
        .map(|_| if random.chance(1, 2) { "*" } else { *random.pick(&WORDS) })
        .collect();
    if random.chance(1, 2) {
        words.push("#");
    }
    words.join(".")
}
