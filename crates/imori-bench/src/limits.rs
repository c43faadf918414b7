//! Limits of the load tool: each with its unit, the reason, and what happens when it is reached.

use std::time::Duration;

/// Bytes read from a socket at once, so that a batch of replies costs one system call.
pub(crate) const READ_BYTES: usize = 256 * 1024;

/// Bytes of one frame from the broker. More: the run ends, for the broker sends what nobody asked for.
pub const FRAME_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Bytes that a sender prepares before it writes. It bounds the memory of a run that sends everything first.
pub(crate) const FILL_BYTES: usize = 128 * 1024;

/// Unwritten bytes at which a connection is no longer read, as a client that blocks in its write would do.
pub(crate) const BACKLOG_BYTES_MAX: usize = 1024 * 1024;

/// How long nothing may move before a run ends as "blocked".
pub(crate) const BLOCKED_AFTER: Duration = Duration::from_secs(10);

/// How often time-outs, the progress bar and the blocked rule are looked at.
pub(crate) const TICK: Duration = Duration::from_millis(100);

/// How long connecting and subscribing may take, for each connection.
pub(crate) const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(30);

/// Requesters in one run; the correlation id has four hexadecimal digits for them.
pub(crate) const REQUESTERS_MAX: u32 = 65_535;

/// Calls of one requester; the correlation id has eight hexadecimal digits for them.
pub(crate) const CALLS_MAX: u64 = u32::MAX as u64;

/// Publishers in one run; the stamp has two bytes for them.
pub(crate) const PUBLISHERS_MAX: u32 = 65_535;

/// The most comparisons of a selector.
pub(crate) const COMPARISONS_MAX: i64 = 100;

/// The longest that a message may live: the stamp's time wraps after 71 minutes, and whether one came
/// too late could not be told after that.
pub(crate) const EXPIRATION_MAX: Duration = Duration::from_secs(60 * 60);

/// Acknowledgements that are kept back to give them out of turn, unless the prefetch is known: fewer
/// than the 1 KB messages that Artemis gives before it waits for them.
pub(crate) const HELD_ACKS: usize = 4;

/// Samples that must lie above a percentile before it is printed.
pub(crate) const SAMPLES_ABOVE_MIN: u64 = 10;

/// A run that measures for less than this is marked as short: a stall or a collection may fall outside it.
pub(crate) const SHORT_RUN: Duration = Duration::from_secs(10);

/// How long a call may take in a soak before it is given up; longer than a stall that one wants to see.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// How long each step of opening a broken connection again may take; it holds up the load meanwhile.
pub(crate) const REOPEN_TIMEOUT: Duration = Duration::from_secs(1);

/// How long a broken connection is tried to be opened again, in nanoseconds, before the run ends.
pub(crate) const REOPENING_NANOS_MAX: u64 = 60_000_000_000;

/// Exit code of a run that did not keep an objective, and of a comparison in which a number is worse than it may be.
/// 2 is that of a command line that cannot be read.
pub(crate) const MISSED: u8 = 5;

/// Exit code of a comparison whose difference may not be told.
pub(crate) const INCONCLUSIVE: u8 = 4;

/// Where the search for the highest rate begins, in operations a second.
pub(crate) const FIND_RATE_FIRST: f64 = 1_000.0;
