//! Limits of the load tool: each with its unit, the reason, and the effect of reaching it.

use std::time::Duration;

/// Bytes read from a socket at once, so that a batch of replies costs one system call.
pub const READ_BYTES: usize = 256 * 1024;

/// Bytes of one frame from the broker. A longer frame ends the run, because we ask for none of that size.
pub const FRAME_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Bytes that a sender prepares before it writes; this bounds the memory of a run that sends everything first.
pub(crate) const FILL_BYTES: usize = 128 * 1024;

/// Unwritten bytes at which a connection is no longer read, just as a client that blocks in its
/// write would stop reading.
pub(crate) const BACKLOG_BYTES_MAX: usize = 1024 * 1024;

/// Time without any progress after which a run ends as "blocked".
pub const BLOCKED_AFTER: Duration = Duration::from_secs(10);

/// Interval at which time-outs, the progress bar and the blocked rule are checked.
pub const TICK: Duration = Duration::from_millis(100);

/// Time allowed for connecting and subscribing, per connection.
pub(crate) const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(30);

/// Requesters in one run; the correlation id reserves four hexadecimal digits for them.
pub(crate) const REQUESTERS_MAX: u32 = 65_535;

/// Calls of one requester; the correlation id reserves eight hexadecimal digits for them.
pub(crate) const CALLS_MAX: u64 = u32::MAX as u64;

/// Publishers in one run; the stamp reserves two bytes for them.
pub(crate) const PUBLISHERS_MAX: u32 = 65_535;

/// The most comparisons in one selector.
pub(crate) const COMPARISONS_MAX: i64 = 100;

/// The longest time to live of a message: the stamp's time wraps after 71 minutes, after which a
/// late message could no longer be recognized.
pub(crate) const EXPIRATION_MAX: Duration = Duration::from_secs(60 * 60);

/// Acknowledgements that are held back in order to give them out of turn, unless the prefetch is
/// known. It is fewer than the number of 1 KB messages that Artemis delivers before it waits for
/// acknowledgements.
pub(crate) const HELD_ACKS: usize = 4;

/// Samples that must lie above a percentile before the percentile is printed.
pub(crate) const SAMPLES_ABOVE_MIN: u64 = 10;

/// A run that measures for less than this is marked as short, because it may miss a stall or a
/// garbage collection.
pub(crate) const SHORT_RUN: Duration = Duration::from_secs(10);

/// Time after which a soak gives up a call; longer than any stall that a soak should show.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// Time allowed for each step of re-opening a broken connection; the load waits meanwhile.
pub(crate) const REOPEN_TIMEOUT: Duration = Duration::from_secs(1);

/// Nanoseconds for which a broken connection is retried before the run ends.
pub(crate) const REOPENING_NANOS_MAX: u64 = 60_000_000_000;

/// Exit code of a run that missed an objective, and of a comparison that found a number worse than
/// allowed. 2 is taken by clap for a command line that it cannot read.
pub const MISSED: u8 = 5;

/// Exit code of a comparison that cannot establish a difference either way.
pub const INCONCLUSIVE: u8 = 4;

/// First rate that the search for the highest rate tries, in operations a second.
pub(crate) const FIND_RATE_FIRST: f64 = 1_000.0;
