//! The workload of a seed: its queues, sizes, likelihoods and faults.

use std::time::Duration;

use imori_core::restore::Leaving;

use super::action::{Action, Flavour, weights};
use super::queue_spec::{QueueSpec, queues};
use super::special_messages::{Delays, Repeats};
use super::stream_spec::StreamSpec;
use crate::random::Random;

/// The settings that a seed decides before a run.
#[derive(Debug)]
pub(crate) struct Workload {
    pub(crate) cells: usize,
    pub(crate) clients: usize,
    pub(crate) actions_each: usize,
    pub(crate) queues: Vec<QueueSpec>,
    pub(crate) weights: Vec<usize>,
    pub(crate) window: usize,
    pub(crate) feed_bytes: usize,
    pub(crate) unsent_bytes_max: usize,
    pub(crate) mark_bytes: Option<usize>,
    pub(crate) body_bytes_max: usize,
    pub(crate) read_bytes: usize,
    /// Whether connections are written only by their own cells.
    pub(crate) writes_own: bool,
    pub(crate) haste: usize,
    /// Likelihood, out of 16, that a cell continues and not a client.
    pub(crate) cell_share: usize,
    pub(crate) prefetch_max: usize,
    /// Whether messages may have a time to live of their own. Such a message may expire unnoticed
    /// behind others, so the number of waiting messages is uncertain.
    pub(crate) has_expirations: bool,
    pub(crate) delays: Option<Delays>,
    pub(crate) repeats: Option<Repeats>,
    /// Persistent messages among eight.
    pub(crate) persistent_share: usize,
    /// Maximum number of times that the run ends the broker.
    pub(crate) crashes: usize,
    /// Whether half of the broker's ends are clean.
    pub(crate) stops: bool,
    /// Ends the broker once in this many decisions, up to `crashes` times.
    pub(crate) crash_every: usize,
    /// Whether the disk may fail or be full.
    pub(crate) has_disk_trouble: bool,
    /// Blocks of a journal file.
    pub(crate) file_blocks: usize,
    /// Takes disk space, or gives some back, once in this many decisions.
    pub(crate) room_every: Option<usize>,
    /// Toggles a slow disk once in this many decisions, so that dead letters claim reserved room.
    pub(crate) behind_every: Option<usize>,
    /// Whether most settles reject or release.
    pub(crate) rejects: bool,
    /// The journal takes the first of this many checkpoints and refuses the others, as if its files had no room.
    pub(crate) checkpoints_in_turn: Option<u64>,
    /// Records that may wait for the disk before publishers have to wait.
    pub(crate) queued_max: u64,
    /// Likelihood, out of 64, that definitions are delayed while other work is possible.
    pub(crate) define_delay: usize,
    /// The most messages to send to a queue at once.
    pub(crate) burst_max: usize,
    pub(crate) paging: Paging,
    /// Clients among eight that speak NATS.
    pub(crate) nats_share: usize,
    /// Whether credentials are checked outside the turn they arrive in, and some clients send wrong credentials.
    pub(crate) has_slow_logins: bool,
    /// Clients among eight that are internal, and operate the broker.
    pub(crate) inside_share: usize,
    /// Clients among eight that have channels.
    pub(crate) channel_share: usize,
    /// The streams of a run whose clients use streams alone; empty for other runs.
    pub(crate) streams: Vec<StreamSpec>,
}

/// Limits on the parts of queues in memory and in the journal.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paging {
    /// Bytes of memory that the waiting messages of a queue may use.
    pub(crate) share_bytes: usize,
    /// Bytes that the checkpointer may copy to free the oldest journal file.
    pub(crate) exchange_bytes_max: usize,
    /// The segment size that the checkpointer aims at, in bytes.
    pub(crate) segment_bytes_goal: usize,
    /// Journal files that may be live.
    pub(crate) files_max: usize,
    /// The messages that a start leaves in the journal.
    pub(crate) leaving: Leaving,
    /// Whether space counts as low, so that every page to be freed is worth a checkpoint.
    pub(crate) is_space_low: bool,
}

impl Paging {
    /// Whether queues may outgrow their memory.
    pub(crate) fn is_short(&self) -> bool {
        self.share_bytes < usize::MAX
    }

    fn new(random: &Random) -> Paging {
        Paging {
            share_bytes: usize::MAX,
            exchange_bytes_max: *random.pick(&[2_000, 10_000, 100_000]),
            segment_bytes_goal: *random.pick(&[600, 2_000, 20_000]),
            files_max: random.between(1, 3),
            leaving: Leaving {
                after_bytes: *random.pick(&[0, 1_000, 4_000, usize::MAX]),
                page_bytes: *random.pick(&[300, 2_000]),
            },
            is_space_low: random.chance(1, 2),
        }
    }
}

impl Workload {
    pub(crate) fn new(random: &Random) -> Workload {
        let workload = Workload::simple(random);
        let workload = Workload { stops: random.chance(1, 2), ..workload };
        let workload = if random.chance(1, 4) { workload.with_delays(random) } else { workload };
        let workload = if random.chance(1, 4) { workload.with_repeats(random) } else { workload };
        let workload = if random.chance(1, 8) { workload.with_tiny_files(random) } else { workload };
        let room_every =
            (workload.persistent_share > 0 && random.chance(1, 3)).then(|| *random.pick(&[100, 400]));
        let behind_every =
            (workload.persistent_share > 0 && random.chance(1, 6)).then(|| *random.pick(&[2, 100, 400]));
        let workload = Workload { room_every, behind_every, ..workload };
        let has_dead_letters = workload.persistent_share > 0 && random.chance(1, 5);
        let workload = if has_dead_letters { workload.with_dead_letters(random) } else { workload };
        let has_room = !random.chance(1, 6);
        Workload {
            checkpoints_in_turn: if has_room { None } else { Some(random.between(2, 4) as u64) },
            ..workload
        }
    }

    /// Adds further protocols and slow logins. Draws from its own randomness, so runs without them do not change.
    pub(crate) fn with_protocols(self, random: &Random) -> Workload {
        let nats_share = if random.chance(1, 4) { *random.pick(&[2, 4, 7]) } else { 0 };
        let has_slow_logins = random.chance(1, 4);
        // Internal clients purge queues, which is rare where most messages are on disk.
        let odds = if self.paging.is_short() { 2 } else { 4 };
        let inside_share = if random.chance(1, odds) { *random.pick(&[1, 3, 5]) } else { 0 };
        let workload = Workload { nats_share, has_slow_logins, inside_share, ..self };
        let workload = if inside_share > 0 { workload.with_one_active(random) } else { workload };
        let channel_share = if random.chance(1, 4) { *random.pick(&[2, 4, 7]) } else { 0 };
        Workload { channel_share, ..workload }
    }

    /// Makes some runs ones of streams. Draws from its own randomness, so other runs do not change.
    pub(crate) fn with_streams(self, random: &Random) -> Workload {
        if !random.chance(1, 6) {
            return self;
        }
        let streams = (0..random.between(1, 3)).map(|number| StreamSpec::new(random, number)).collect();
        let feed_bytes = *random.pick(&[1_000, 4_000, 100_000]);
        let share_bytes = *random.pick(&[4_000, 4_000, 12_000, usize::MAX]);
        Workload {
            streams,
            clients: random.between(2, 4),
            actions_each: random.between(10, 40),
            queues: Vec::new(),
            window: *random.pick(&[1_000, 4_000, 64_000]),
            feed_bytes,
            unsent_bytes_max: feed_bytes + random.pick(&[12_000, 1_000_000]),
            mark_bytes: None,
            body_bytes_max: *random.pick(&[24, 200, 600]),
            has_expirations: false,
            delays: None,
            repeats: None,
            persistent_share: 8,
            crashes: random.below(4),
            crash_every: *random.pick(&[200, 600, 2_000]),
            has_disk_trouble: random.chance(1, 4),
            file_blocks: *random.pick(&[12, 16, 40]),
            rejects: false,
            burst_max: *random.pick(&[1, 4, 10]),
            paging: Paging { share_bytes, ..self.paging },
            nats_share: 0,
            inside_share: 0,
            channel_share: 0,
            ..self
        }
    }

    /// Gives some queues a single active consumer.
    fn with_one_active(mut self, random: &Random) -> Workload {
        for queue in self.queues.iter_mut().filter(|queue| queue.is_kept() && !queue.is_dead_letter_queue) {
            if random.chance(1, 4) {
                queue.have_one_active();
            }
        }
        self
    }

    /// Makes journal files so small that some messages do not fit.
    fn with_tiny_files(mut self, random: &Random) -> Workload {
        self.file_blocks = *random.pick(&[3, 4]);
        self.body_bytes_max = self.body_bytes_max.min(24);
        self.prefetch_max = self.prefetch_max.min(3);
        self.weigh(Action::SendTooLarge, *random.pick(&[0, 1, 2]));
        self
    }

    fn with_delays(mut self, random: &Random) -> Workload {
        self.delays = Some(Delays::new(random, self.mark_bytes.is_some()));
        self.weigh(Action::Cancel, *random.pick(&[0, 2, 6]));
        self
    }

    fn with_repeats(mut self, random: &Random) -> Workload {
        let repeats = Repeats::new(random, self.mark_bytes.is_some());
        let is_open = |queue: &&mut QueueSpec| !queue.is_dead_letter_queue && queue.name != "rpc";
        for queue in self.queues.iter_mut().filter(is_open) {
            if random.chance(2, 3) {
                queue.arguments.push(("x-dedup-window", repeats.window.as_millis().to_string()));
                queue.window = Some(repeats.window);
            }
        }
        self.repeats = Some(repeats);
        self.weigh(Action::Repeat, *random.pick(&[6, 16]));
        if random.chance(1, 2) {
            // Makes ids outlive the records of their messages and the broker process.
            self.persistent_share = *random.pick(&[7, 8]);
            self.crashes = random.between(1, 4);
            self.crash_every = *random.pick(&[200, 600]);
            self.file_blocks = 8;
            self.paging.files_max = 1;
        }
        self
    }

    pub(crate) fn weigh(&mut self, action: Action, weight: usize) {
        let weights = Action::ALL.iter().zip(&mut self.weights);
        weights.filter(|(other, _)| **other == action).for_each(|(_, old)| *old = weight);
    }

    /// Whether the de-duplication window is so long that the run counts as at rest only after a long pause.
    pub(crate) fn long_waits(&self) -> bool {
        self.repeats.is_some_and(|repeats| repeats.is_long())
    }

    /// Whether the next message bears an id that other messages may share.
    pub(crate) fn bears_id(&self, random: &Random) -> bool {
        self.repeats.is_some_and(|repeats| repeats.is_next(random))
    }

    /// The time until a client's next action.
    pub(crate) fn pause(&self, random: &Random) -> Duration {
        match self.long_waits() && random.chance(1, 16) {
            true => Duration::from_secs(25),
            false => Duration::from_micros(*random.pick(&[0, 10, 200, 200, 15_000])),
        }
    }

    /// The delay of the next message, if it is delayed.
    pub(crate) fn delay_ms(&self, random: &Random) -> Option<u64> {
        self.delays.and_then(|delays| delays.next_ms(random))
    }

    fn simple(random: &Random) -> Workload {
        let flavour = match random.below(16) {
            0..3 => Flavour::ComesAndGoes,
            3..5 => Flavour::Flood,
            5..8 => Flavour::Backlog,
            _ => Flavour::Mixed,
        };
        let mark_bytes = random.chance(1, 5).then(|| random.between(2, 6) * 10_000);
        let is_large = mark_bytes.is_some() || flavour == Flavour::Flood;
        let feed_bytes = *random.pick(&[200, 1_000, 4_000, 100_000]);
        let workload = Workload {
            cells: random.between(2, 3),
            clients: random.between(2, 6),
            actions_each: random.between(5, 30) * if flavour == Flavour::Mixed { 1 } else { 2 },
            queues: queues(random, flavour == Flavour::ComesAndGoes),
            weights: weights(random, flavour),
            window: *random.pick(&[300, 1_000, 4_000, 64_000]),
            feed_bytes,
            unsent_bytes_max: feed_bytes + random.pick(&[4_000, 12_000, 1_000_000]),
            mark_bytes,
            body_bytes_max: if is_large { 1_200 } else { *random.pick(&[24, 24, 200, 1_200]) },
            read_bytes: *random.pick(&[64, 512, 4_096]),
            writes_own: random.chance(1, 4),
            haste: random.below(8),
            cell_share: random.between(6, 15),
            prefetch_max: *random.pick(&[1, 3, 20]),
            has_expirations: random.chance(1, 4),
            delays: None,
            repeats: None,
            persistent_share: 0,
            crashes: 0,
            stops: false,
            crash_every: 1,
            has_disk_trouble: false,
            file_blocks: *random.pick(&[16, 24, 40]),
            room_every: None,
            behind_every: None,
            rejects: false,
            checkpoints_in_turn: None,
            queued_max: *random.pick(&[3, 20, 10_000, 10_000]),
            define_delay: *random.pick(&[0, 0, 0, 63]),
            burst_max: 3,
            paging: Paging::new(random),
            has_slow_logins: false,
            inside_share: 0,
            channel_share: 0,
            nats_share: 0,
            streams: Vec::new(),
        };
        if flavour == Flavour::Backlog {
            return workload.with_long_queues(random);
        }
        let workload = match random.chance(1, 2) {
            true => Workload {
                persistent_share: *random.pick(&[4, 7, 8, 8]),
                crashes: random.below(4),
                crash_every: *random.pick(&[200, 600, 2_000]),
                has_disk_trouble: random.chance(1, 3),
                has_expirations: workload.has_expirations && random.chance(1, 4),
                ..workload
            },
            false => workload,
        };
        if flavour == Flavour::Flood {
            let feed_bytes = 200;
            return Workload { window: 300, feed_bytes, unsent_bytes_max: feed_bytes + 4_000, ..workload };
        }
        if flavour == Flavour::ComesAndGoes {
            return Workload { prefetch_max: 20, ..workload };
        }
        workload
    }

    /// Makes queues outgrow their memory, and the broker restart several times.
    fn with_long_queues(self, random: &Random) -> Workload {
        Workload {
            clients: random.between(2, 4),
            actions_each: random.between(10, 30),
            mark_bytes: None,
            body_bytes_max: *random.pick(&[8, 24, 200, 600]),
            has_expirations: random.chance(1, 8),
            persistent_share: *random.pick(&[4, 7, 8, 8]),
            crashes: random.between(0, 4),
            crash_every: *random.pick(&[300, 600, 2_000]),
            has_disk_trouble: random.chance(1, 4),
            file_blocks: *random.pick(&[8, 12, 16]),
            burst_max: *random.pick(&[4, 8, 16]),
            paging: Paging { share_bytes: *random.pick(&[1_500, 3_000, 6_000, 12_000]), ..self.paging },
            ..self
        }
    }
}
