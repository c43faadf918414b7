//! Limits of the admin APIs, the monitor and the metrics, each with its unit and what happens beyond it.

use std::time::Duration;

/// Users and vhosts whose limits appear in `/metrics`. The admin API shows the others.
pub(crate) const LIMITED_SERIES_MAX: usize = 100;

/// Bytes of a request's body on the admin listener, as in RabbitMQ. More: it is refused.
pub(crate) const ADMIN_BODY_BYTES_MAX: u64 = 10 * 1024 * 1024;

/// Bytes of the boundary of a form, as RFC 2046 has it. More: the form is refused.
pub(crate) const BOUNDARY_BYTES_MAX: usize = 70;

/// Fields of a form before the wanted one. RabbitMQ's page sends one. More: the form is refused.
pub(crate) const FORM_FIELDS_MAX: usize = 16;

/// Rows of a list produced at a time, about a kilobyte each. The rest follows when these are written and other
/// requests had their turn.
pub const HTTP_ROWS_AT_ONCE: usize = 256;

/// Rows of a page on the admin listener, as in RabbitMQ. More: the request is refused.
pub(crate) const ADMIN_PAGE_ROWS_MAX: usize = 500;

/// Connections in a response of the monitor, about 600 bytes each. More: the response says so in its `limit`.
pub const MONITOR_ROWS_MAX: usize = 10_000;

/// Subscriptions in a response of the monitor, up to a kilobyte each. More are left out.
pub(crate) const MONITOR_LISTED_MAX: usize = 10_000;

/// Queues in a response of the monitor, about 200 bytes each. More: the response says so in its `limit`.
pub(crate) const MONITOR_QUEUES_MAX: usize = 10_000;

/// Queues with samples in `/metrics`: half of them hold the most messages, half moved the most. Even with the longest
/// names a response stays below a mebibyte; other queues are shown on request.
pub(crate) const METRICS_QUEUES_MAX: usize = 64;

/// Consumers of streams with samples in `/metrics`: those with the most messages that are not acknowledged. The others
/// are shown on request.
pub(crate) const METRICS_STREAM_CONSUMERS_MAX: usize = 256;

/// Interval at which the deletion of a vhost checks whether its connections have ended.
pub(crate) const VHOST_LOOK_EVERY: Duration = Duration::from_millis(100);

/// Number of those checks before the deletion gives up.
pub(crate) const VHOST_LOOKS_MAX: usize = 100;

/// Time between two samples of queue counters for rates. Shorter: rates of small numbers jump, and all queues are
/// scanned needlessly.
pub(crate) const RATES_EVERY: Duration = Duration::from_secs(5);

/// Messages that an operator peeks at or takes in one request. More: the request is refused.
pub(crate) const ADMIN_MESSAGES_MAX: usize = 1_000;

/// Bytes of those messages' bodies after the first, which are in memory together. More: fewer messages are returned.
pub(crate) const ADMIN_MESSAGES_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Interval at which a request waits for a page of a queue.
pub(crate) const ADMIN_PAGE_LOOK_EVERY: Duration = Duration::from_millis(20);

/// Number of those intervals before the request gives up.
pub(crate) const ADMIN_PAGE_LOOKS_MAX: usize = 250;

/// Messages that an operator's request moves in one turn of a cell, which bounds how long clients wait.
pub(crate) const ADMIN_MOVES_A_TURN: usize = 64;

/// Messages scanned by a dry run, which then reports that it stopped.
pub(crate) const ADMIN_DRY_RUN_MESSAGES_MAX: usize = 100_000;

/// Events written to a reader at a time.
pub(crate) const EVENTS_AT_ONCE: usize = 64;

/// Duration of an event stream: shorter than the life of an HTTP connection, so that it ends between two events.
pub(crate) const EVENTS_LIFE_MAX: Duration = Duration::from_secs(50);

/// Longest silence of an event stream; a write shows whether its reader is gone.
pub(crate) const EVENTS_QUIET_MAX: Duration = Duration::from_secs(5);

/// Sessions of the web console. More: the least recently used one ends.
pub const SESSIONS_MAX: usize = 1_000;

/// Sessions of one user, so that no user ends the sessions of others by signing in. More: that user's least recently used
/// one ends.
pub const USER_SESSIONS_MAX: usize = 100;

/// Duration of a session. Longer: the user signs in again.
pub const SESSION_LIFE_MAX: Duration = Duration::from_hours(12);

/// Time without a request after which a session ends.
pub const SESSION_IDLE_MAX: Duration = Duration::from_hours(1);

/// Checks of a password to sign in, if the user changes during each. More: it is refused.
pub(crate) const SIGN_IN_CHECKS_MAX: usize = 3;

/// Samples of a second that the history keeps: ten minutes. The oldest is dropped.
pub const HISTORY_SECONDS_MAX: usize = 600;

/// Samples of a minute that the history keeps: a day. The oldest is dropped.
pub const HISTORY_MINUTES_MAX: usize = 1_440;

/// Time between two samples of the broker.
pub(crate) const SAMPLE_EVERY: Duration = Duration::from_secs(1);

/// The next pass over all connections and queues begins after this many times the processor time of the last one:
/// without a reader of the feed, and with a reader of the overview. With a reader of a list, each sample has a pass.
pub(crate) const PASS_SHARE_UNSEEN: u32 = 4_000;
pub(crate) const PASS_SHARE_SEEN: u32 = 100;

/// Longest time between two passes.
pub(crate) const PASS_EVERY_MAX: Duration = Duration::from_mins(1);

/// Seconds in which the length of a queue has to rise before the queue is shown as growing.
pub const GROWING_SECONDS: u8 = 5;

/// Readers of the live feed: fewer than an admin listener has connections, so that requests get through. A further one
/// is refused.
pub(crate) const FEED_READERS_MAX: usize = 12;

/// Rows in an event of the feed. More: the rest follows in further events.
pub const FEED_CHUNK_ROWS_MAX: usize = 2_000;

/// Bytes of rows after which an event of the feed takes no further row, which bounds what waits for a slow reader.
pub(crate) const FEED_CHUNK_BYTES: usize = 512 * 1024;

/// Rows that are searched for changes at a time, which bounds how long others wait.
pub(crate) const FEED_SCANNED_MAX: usize = 20_000;

/// Removed rows that a list remembers for its readers. A reader that missed more begins anew.
pub const FEED_REMOVED_MAX: usize = 10_000;

/// Changes of stalls that the feed remembers for its readers. A reader that missed more does not hear of them.
pub(crate) const FEED_STALLS_MAX: usize = 64;

/// Longest silence of the feed; a write shows whether its reader is gone.
pub(crate) const FEED_QUIET_MAX: Duration = Duration::from_secs(5);

/// Time that a reader of the feed has to take an event. Longer: its feed ends.
pub(crate) const FEED_WRITE_MAX: Duration = Duration::from_secs(30);

/// Streams that are restored from archives at once. A further one is refused.
pub(crate) const RESTORES_MAX: usize = 8;

/// Time between two pieces of an archive. Longer: the restore is given up, and the part of the stream that came is
/// deleted.
pub(crate) const RESTORE_QUIET_MAX: Duration = Duration::from_secs(30);
