//! A workload in which messages die for every reason while their dead-letter queues lack room.

use super::action::Action;
use super::queue_spec::QueueSpec;
use super::workload::Workload;
use crate::random::Random;

impl Workload {
    /// Makes queues durable and dead-lettering, slows or fills the disk for a while, and ends the
    /// broker meanwhile.
    pub(crate) fn with_dead_letters(mut self, random: &Random) -> Workload {
        for index in 0..self.queues.len() {
            let dead = self.queues.len();
            let Some(queue) = self.queues.get_mut(index) else { continue };
            if queue.is_dead_letter_queue || queue.name == "rpc" {
                continue;
            }
            queue.last();
            queue.die_of_something(random);
            if queue.dead_letter.is_none() {
                let name = format!("dead-of-{}", queue.name);
                queue.send_dead_to(&name, dead);
                self.queues.push(QueueSpec { name, is_dead_letter_queue: true, ..QueueSpec::default() });
            }
        }
        self.rejects = true;
        self.persistent_share = *random.pick(&[7, 8]);
        self.crashes = random.between(1, 4);
        self.crash_every = *random.pick(&[400, 800]);
        self.file_blocks = *random.pick(&[8, 12]);
        self.paging.files_max = 1;
        self.prefetch_max = *random.pick(&[3, 20]);
        self.weigh(Action::SendToQueue, 16);
        self.weigh(Action::Settle, 24);
        self.weigh(Action::SubscribeQueue, 6);
        (self.room_every, self.behind_every) =
            *random.pick(&[(Some(100), None), (Some(400), Some(400)), (None, Some(200)), (None, Some(800))]);
        self
    }
}

impl QueueSpec {
    /// Makes the queue permanent and durable.
    fn last(&mut self) {
        (self.is_volatile, self.is_transient) = (false, false);
        let ends = |name: &str, value: &str| {
            matches!(name, "auto-delete" | "x-expires") || (name, value) == ("durable", "false")
        };
        self.arguments.retain(|(name, value)| !ends(name, value));
    }

    /// Gives some queues a cause of death besides rejection, if they have none.
    fn die_of_something(&mut self, random: &Random) {
        match random.below(6) {
            0 if self.ttl_ms.is_none() => self.limit_time(random.between(0, 40)),
            1 if !self.is_bounded => self.limit_length(random.between(0, 5)),
            2 if !self.has_delivery_limit => self.limit_deliveries(random.between(0, 2)),
            _ => {}
        }
    }
}
