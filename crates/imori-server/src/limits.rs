//! Limits of the runtime: each with its unit, the reason, and what happens when it is reached.

use std::num::NonZeroU32;
use std::time::Duration;

/// Bytes read from one connection in a turn. It bounds how long others wait; more is read in the next turn.
pub(crate) const READ_BYTES: usize = 64 * 1024;

/// Connections with something to write after which a cell does not wait for the end of its work. Each is a
/// system call, and the first of them has waited for all.
pub(crate) const FLUSH_CONNECTIONS_MAX: usize = 128;

/// How long a busy cell lets what was gathered wait. Shorter costs system calls, longer latency.
pub(crate) const FLUSH_AFTER: Duration = Duration::from_micros(100);

/// How long after a turn of another connection a cell takes its turns to have others waiting. They then
/// change the routing table less, so that a client that sends a hundred messages a second is served as one
/// that sends many.
pub(crate) const BESIDE_OTHERS: Duration = Duration::from_millis(10);

/// Empty buffers that a cell keeps. More are freed.
pub(crate) const SPARE_BUFFERS_MAX: usize = 16;

/// Bytes of a buffer that a cell keeps. A larger one is freed.
pub(crate) const SPARE_BUFFER_BYTES_MAX: usize = 512 * 1024;

/// How long a publisher waits for a slow reader of a live subscription, in a turn.
pub(crate) const THROTTLE_MAX: Duration = Duration::from_millis(5);

/// How long a user or a vhost may have published nothing and make up for it at once, in a limit on what is published a
/// second.
pub(crate) const RATE_BURST: Duration = Duration::from_secs(1);

/// How long a publisher waits at least that met such a limit. Less would wake it for each message.
pub(crate) const RATE_WAIT_MIN: Duration = Duration::from_millis(5);

/// Users and vhosts with limits of which `/metrics` tells. Those behind them are told of by the admin API alone.
pub(crate) const LIMITED_SERIES_MAX: usize = 100;

/// How long a client that may not settle now waits until it asks again. Less often than the checkpointer looks would hold
/// it up for longer than it has to.
pub(crate) const SETTLE_AGAIN: Duration = Duration::from_millis(5);

/// Threads that check logins which take longer than a turn may. More would take the cells' time: a password hash is work
/// for a processor.
pub(crate) const VERIFIER_THREADS_MAX: usize = 2;

/// Logins that wait for such a thread, each with a password. More: the client is told to come again.
pub(crate) const LOGINS_WAITING_MAX: usize = 1024;

/// How long such a thread waits for another login before it ends.
pub(crate) const VERIFIER_IDLE_MAX: Duration = Duration::from_secs(10);

/// How long the 19 MiB of a password check wait for another one. Shorter would fetch them from the system again while
/// wrong passwords come in.
pub(crate) const HASH_MEMORY_IDLE_MAX: Duration = Duration::from_secs(8);

/// How long the allocator keeps what was freed: mimalloc's `purge_delay` of a second, and a little more.
pub(crate) const ALLOCATOR_PURGE_DELAY: Duration = Duration::from_millis(1100);

/// Spans that wait to be sent. More: they are lost, and counted.
pub(crate) const TRACE_SPANS_MAX: usize = 8192;

/// Spans in one request to a collector.
pub(crate) const TRACE_BATCH_SPANS_MAX: usize = 512;

/// How long a span waits for others that go with it.
pub(crate) const TRACE_EXPORT_EVERY: Duration = Duration::from_secs(1);

/// How long a collector may take to answer.
pub(crate) const TRACE_PATIENCE: Duration = Duration::from_secs(5);

/// Bytes of a name in a span; longer ones are cut.
pub(crate) const TRACE_NAME_BYTES_MAX: usize = 256;

/// Bytes of an access token. More: it is taken for a password.
pub(crate) const JWT_BYTES_MAX: usize = 16 << 10;

/// Bytes of the name of a user in an access token, as a short string of AMQP holds them.
pub(crate) const JWT_USER_BYTES_MAX: usize = 255;

/// Keys of an issuer of access tokens.
pub(crate) const JWT_KEYS_MAX: usize = 64;

/// Bytes in which an issuer's keys are written.
pub(crate) const JWT_KEYS_BYTES_MAX: u64 = 1 << 20;

/// How long an issuer may take to show its keys, and a login may wait for them.
pub(crate) const JWT_KEYS_PATIENCE: Duration = Duration::from_secs(3);

/// How long keys are not read again, whatever tokens name.
pub(crate) const JWT_KEYS_EVERY_MIN: Duration = Duration::from_secs(10);

/// How long a connection that ends may take to read what is left for it, and to close its own side.
pub(crate) const LINGER_MAX: Duration = Duration::from_secs(5);

/// The part of the memory mark, as one through this, that may wait for one connection, whatever the
/// configuration allows it. More: a connection that does not read is closed.
pub(crate) const UNSENT_SHARE_OF_MARK: usize = 4;

/// How long a connection may take nothing of what waits for it while memory is short. Longer: it is
/// closed, since publishers wait for the memory that it holds.
pub(crate) const STALL_MAX: Duration = Duration::from_secs(10);

/// Unsent bytes that such a connection may keep: closing it would free no more than itself.
pub(crate) const STALL_BYTES_MIN: usize = 64 * 1024;

/// The part of the memory mark, as one through this, that long frames may take while they come. The rest is left to
/// messages that wait. More: the connection is not read until others are whole; one frame at a time goes beyond.
pub(crate) const LONG_FRAMES_SHARE_OF_MARK: usize = 2;

/// How long a long frame may take for the next [`READ_BYTES`] while others wait for memory. Longer: its connection is
/// closed.
pub(crate) const LONG_FRAME_STALL_MAX: Duration = Duration::from_secs(10);

/// How often, while memory is short, the connections are looked at that may have stalled.
pub(crate) const STALL_LOOK: Duration = Duration::from_secs(1);

/// Bytes of TLS that are read at once, into memory that all sessions of a cell share.
pub(crate) const TLS_READ_BYTES: usize = 64 * 1024;

/// Bytes of TLS that are read at least: records of a few bytes would else be a system call each.
pub(crate) const TLS_READ_BYTES_MIN: usize = 4 * 1024;

/// Records of TLS without data, such as KeyUpdates, that a client may send in [`TLS_DRY_RECORDS_WINDOW`]. A library
/// sends one in many gigabytes. More: the connection is closed, as each costs new keys.
pub(crate) const TLS_DRY_RECORDS_MAX: u32 = 32;

/// The time in which those are counted.
pub(crate) const TLS_DRY_RECORDS_WINDOW: Duration = Duration::from_secs(1);

/// Steps of handshakes that wait for a thread, each with a record of up to 18 KiB: as many as connections may wait for
/// their login by default. More: the oldest is refused of the source that has the most.
pub(crate) const HANDSHAKES_WAITING_MAX: usize = 4096;

/// How much less than cells the threads of handshakes get of a core that both want: about a tenth of it. The lowest
/// priority would have clients wait for longer than a handshake may take while cells are busy.
pub(crate) const HANDSHAKER_NICENESS: i32 = 10;

/// How long such a thread waits for another handshake before it ends.
pub(crate) const HANDSHAKER_IDLE_MAX: Duration = Duration::from_secs(10);

/// How often the files of certificates are looked at. Both, certificate and key, have to rest for as long.
pub(crate) const TLS_FILES_LOOK: Duration = Duration::from_secs(1);

/// Lines of the log in a second about refused clients. More: they are counted in the next line.
pub(crate) const PEER_LOG_LINES_MAX: usize = 8;

/// How long accepting waits when it fails for want of descriptors or memory.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Connections that may wait to be accepted.
pub(crate) const ACCEPT_BACKLOG: i32 = 4096;

/// Inboxes of one connection. A client needs one, a library that makes one a call a few thousand.
/// More: the SEND that asks for it is refused.
pub(crate) const INBOXES_MAX: u16 = 4096;

/// Connections to the monitor, and as many to the admin listener, at a time. Each may hold an answer that nobody reads.
/// More: the one that has waited longest without a request is closed.
pub(crate) const HTTP_CONNECTIONS_MAX: usize = 16;

/// Bytes of a request's head. More: it is refused. It is the least that the HTTP library takes.
pub(crate) const HTTP_HEAD_BYTES_MAX: usize = 8 * 1024;

/// Headers of a request. More: it is refused.
pub(crate) const HTTP_HEADERS_MAX: usize = 32;

/// How long a request's head may take, the time before it included. Longer: the connection is closed.
pub(crate) const HTTP_HEAD_MAX: Duration = Duration::from_secs(10);

/// How long the handshake of TLS may take on a listener of HTTP. Longer: the connection is closed.
pub(crate) const HTTP_HANDSHAKE_MAX: Duration = Duration::from_secs(5);

/// Threads for requests of HTTP that wait: for the check of a login, or for the disk. There is one for each connection
/// that may be there.
pub(crate) const HTTP_WAITING_THREADS_MAX: usize = 2 * HTTP_CONNECTIONS_MAX;

/// Bytes of the body of a request to the admin listener, as in RabbitMQ. More: it is refused.
pub(crate) const ADMIN_BODY_BYTES_MAX: u64 = 10 * 1024 * 1024;

/// How often a request that waits for the disk looks whether the broker still runs.
pub(crate) const ADMIN_LOOK_EVERY: Duration = Duration::from_millis(250);

/// How long a connection of HTTP lives; what is being answered then is finished.
pub(crate) const HTTP_LIFE_MAX: Duration = Duration::from_secs(60);

/// Rows of a list of the admin listener that are gathered at a time, about a kilobyte each. The rest is gathered when
/// these are written and other requests had their turn.
pub(crate) const HTTP_ROWS_AT_ONCE: usize = 256;

/// Rows of a page of a list of the admin listener, as in RabbitMQ. More: the request is refused.
pub(crate) const ADMIN_PAGE_ROWS_MAX: usize = 500;

/// Connections in an answer of the monitor, each about 600 bytes. More: the answer says so in its `limit`.
pub(crate) const MONITOR_ROWS_MAX: usize = 10_000;

/// Subscriptions in an answer of the monitor, each up to a kilobyte. More: they are left out.
pub(crate) const MONITOR_LISTED_MAX: usize = 10_000;

/// Bytes of a request for an upgrade to WebSocket. More: it is refused. Browsers send a few hundred, and cookies.
pub(crate) const UPGRADE_BYTES_MAX: usize = 8 * 1024;

/// Bytes of a WebSocket message beyond a message's body and headers. Protocols put some bytes around them,
/// and clients send small messages along. More than all of that: the connection is closed.
pub(crate) const WEBSOCKET_SLACK_BYTES: u64 = 1024 * 1024;

/// Bytes of a message that the broker sends over WebSocket. More: the next message goes on with it. Clients
/// gather a message before they look at it, many with a limit from 1 MiB down.
pub(crate) const WEBSOCKET_MESSAGE_BYTES_MAX: usize = 64 * 1024;

/// Bytes of pongs that wait to be written. More: pings are not answered until there is room.
pub(crate) const WEBSOCKET_CONTROL_BYTES_MAX: usize = 4 * 1024;

/// Bytes that may wait for the disk, and at most half of a journal file. More: publishers of persistent messages
/// wait until it is half of that.
pub(crate) const QUEUED_BYTES_MARK: usize = 32 * 1024 * 1024;

/// Bytes of the disk, beside those of a journal file, that a declaration must leave. A commit of the store of
/// definitions takes them before it gives some back, also one that deletes. Less: the declaration is refused.
pub(crate) const DEFINITIONS_ROOM_BYTES: u64 = 2 * 1024 * 1024;

/// How often definitions are tried again that the disk has no room for. What is declared meanwhile is in the journal.
pub(crate) const DEFINITIONS_AGAIN: Duration = Duration::from_millis(200);

/// Bytes of a journal file that a record, or a group of them, leaves free: headers, and what marks the group.
pub(crate) const JOURNAL_GROUP_SLACK_BYTES: usize = 8 * 1024;

/// Bytes of a journal file beyond the longest message: the address, a few deaths, and the numbers of two thousand
/// queues that have it. A message that has more is refused, or as a dead letter goes to its queues in parts. Files that
/// are smaller: the broker does not start.
pub(crate) const JOURNAL_MESSAGE_SLACK_BYTES: usize = 32 * 1024;

/// How often the disk is looked at from beside. Longer would tell of a flush that hangs too late.
pub(crate) const STALL_WATCH_EVERY: Duration = Duration::from_millis(50);

/// How late a cell may come to its work. Later: it is told of, with what is known of why.
pub(crate) const CELL_LATE: Duration = Duration::from_millis(250);

/// How often a cell measures by itself how late it is: a timer a second costs nothing.
pub(crate) const PULSE: Duration = Duration::from_secs(1);

/// Stalls that are kept in full, about 250 bytes each. Older ones are only counted.
pub(crate) const STALLS_KEPT: usize = 64;

/// How often the space on the disk is asked for. A second of publishing is less than the space that is left when
/// publishers are stopped.
pub(crate) const SPACE_LOOK: Duration = Duration::from_secs(1);

/// How often the space on the disk is asked for while there is little: publishers wait for the answer.
pub(crate) const SPACE_LOOK_LOW: Duration = Duration::from_millis(200);

/// Seconds of which the longest commit is kept, each for itself: a mean hides a stall.
pub(crate) const COMMIT_SECONDS: usize = 60;

/// Queues in an answer of the monitor, each about 200 bytes. More: the answer says so in its `limit`.
pub(crate) const MONITOR_QUEUES_MAX: usize = 10_000;

/// How long clients have to hear that the broker ends because its disk failed: with the rest of the end it is
/// below a second.
pub(crate) const DISK_FAILURE_GOODBYE: Duration = Duration::from_millis(200);

/// Findings of damage that the monitor lists and the note in the data folder has. More are in the log alone,
/// which an operator with so many findings reads anyway.
pub(crate) const DAMAGES_MAX: usize = 256;

/// How often the checkpointer looks whether the journal has too many files. Longer would let it have more of them.
pub(crate) const CHECKPOINTER_LOOK_EVERY: Duration = Duration::from_millis(50);

/// Bytes of messages that a start takes out of the journal into memory. Later records stay there until their
/// queue comes to them: a start would otherwise wait for memory that is touched for the first time.
pub(crate) const RESTORED_BYTES_MAX: usize = 16 << 20;

/// How often who waits for the journal so as to write pages looks whether that failed. That it came further it is told
/// at once.
pub(crate) const PAGER_LOOK_EVERY: Duration = Duration::from_millis(50);

/// How long pages wait for the journal at most: others wait behind them who would give room back. Then their messages
/// stay in memory, and are tried again.
pub(crate) const PAGER_WAIT_MAX: Duration = Duration::from_secs(5);

/// Journal files that may be live while space is short: the one that is written to. Each of the others may be what
/// publishers wait for.
pub(crate) const FILES_MAX_WHEN_SHORT: usize = 1;

/// How long the checkpointer waits after a copy to segments for which there was no room. A copy looks at all
/// that waits in memory, and only consumers make room meanwhile.
pub(crate) const SPILL_AGAIN: Duration = Duration::from_millis(250);

/// Connections whose peers are gone and that wait for the disk, to publish what these sent. Each keeps a place and a
/// descriptor. What one more has sent is dropped, as nothing was promised of it.
pub(crate) const DETACHED_MAX: usize = 1024;

/// The part of all places, as one through this, that they may take: who comes to drain the disk needs one.
pub(crate) const DETACHED_SHARE_OF_PLACES: usize = 4;

/// The part of the memory mark, as one through this, that their messages may take. At the mark everybody
/// would wait, and for the disk. More: as beyond their number.
pub(crate) const DETACHED_SHARE_OF_MARK: usize = 8;

/// How long the checkpointer waits after a checkpoint that was larger than a file of the journal. Each try
/// looks at all queues and writes their counts again.
pub(crate) const CHECKPOINT_AGAIN: Duration = Duration::from_secs(1);

/// Pages that nobody needs, for which alone a checkpoint is made: 64 MiB of the disk, and they are found in its payload
/// until then.
pub(crate) const CHECKPOINT_PAGES: usize = 256;

/// The part of a queue's memory that it may use while more than half of the memory mark is used.
pub(crate) const QUEUE_MEMORY_SHARE_WHEN_SHORT: usize = 8;

/// How long the last checkpoint may take. Longer: the next start reads more of the journal.
pub(crate) const CHECKPOINT_AT_END_MAX: Duration = Duration::from_secs(2);

/// Descriptors that connections leave to all else: listeners, runtimes, the log, the files of the store. With fewer
/// the journal could not go on to its next file. More connections: they wait to be accepted.
pub(crate) const DESCRIPTORS_KEPT: usize = 48;

/// Subscriptions that the broker itself has in each vhost: the responder to pings.
pub(crate) const BUILT_IN_SUBSCRIPTIONS: usize = 1;

/// Clients inside the process that a cell has places for, beside those of its sockets. One more is refused.
pub(crate) const INTERNAL_CLIENTS_MAX: usize = 256;

/// Bytes that are flushed to an internal client and that it has not taken. More wait in its outbound half, which has
/// the limits of every connection.
pub(crate) const PIPE_BYTES_MAX: usize = 256 * 1024;

/// Commands of an internal client that wait for its cell. Who gives more waits.
pub(crate) const INTERNAL_COMMANDS_MAX: usize = 64;

/// Publishes of an internal client that wait for room. Above that it is given no command until there is some.
pub(crate) const INTERNAL_PARKED_MAX: usize = 1024;

/// Pings that wait for the broker's own responder. More wait in its outbound half.
pub(crate) const PINGS_WAITING_MAX: usize = 64;

/// How long a change of what an operator sets may take to become durable.
pub(crate) const DEFINITION_ROWS_PATIENCE: Duration = Duration::from_secs(10);

/// Bytes of the name of a user, a vhost, a policy.
pub(crate) const OBJECT_NAME_BYTES_MAX: usize = 255;

/// Policies of a vhost, and as many operator policies: each queue that is declared is compared with all of them. More:
/// the policy is refused.
pub(crate) const POLICIES_PER_VHOST_MAX: usize = 1_000;

/// Queues on which policies act anew in one turn: each is locked, and its messages may be dropped. Others have their
/// turns between.
pub(crate) const POLICY_QUEUES_A_TURN: usize = 64;

/// Bytes of the definition of a policy, as JSON. More: the policy is refused.
pub(crate) const POLICY_DEFINITION_BYTES_MAX: usize = 16 << 10;

/// A wrong login as one user from one source is forgiven after this long, so that a guesser has one guess a second.
pub(crate) const LOGIN_ATTEMPT_EVERY: Duration = Duration::from_secs(1);

/// Wrong logins as one user from one source that are checked one after the other. More: refused unchecked for a while.
pub(crate) const LOGIN_ATTEMPTS_BURST: u32 = 20;

/// A wrong login of a source as any user, or as a user from any source, is forgiven after this long.
pub(crate) const LOGIN_TOTAL_ATTEMPT_EVERY: Duration = Duration::from_millis(50);

/// Wrong logins of a source as any user, or as a user from any source, that are checked one after the other: far more
/// than misconfigured clients make. More: those who have not logged in so before are refused unchecked for a while.
pub(crate) const LOGIN_TOTAL_ATTEMPTS_BURST: u32 = 1_000;

/// A source is known to be a user's for this long after it has logged in as that.
pub(crate) const LOGIN_OWNER_MAX: Duration = Duration::from_secs(3600);

/// A right password is remembered for this long, so that its user's next logins cost no slow hash.
pub(crate) const VERIFIED_MAX: Duration = Duration::from_secs(3600);

/// Users that one line of the log names.
pub(crate) const USERS_NAMED_MAX: usize = 20;

/// Iterations of the keys of SASL SCRAM-SHA-256 that are made here. A client does as many at each login.
pub(crate) const SCRAM_ITERATIONS: NonZeroU32 = NonZeroU32::new(15_000).unwrap();

/// Least iterations of keys that were made elsewhere (RFC 7677, 4). Less: the keys are refused.
pub(crate) const SCRAM_ITERATIONS_MIN: u32 = 4096;

/// Most iterations of keys that were made elsewhere. More would keep clients busy for seconds: the keys are refused.
pub(crate) const SCRAM_ITERATIONS_MAX: u32 = 10_000_000;

/// Bytes of a salt that was made elsewhere. More: the keys are refused.
pub(crate) const SCRAM_SALT_BYTES_MAX: usize = 1024;

/// Sources, users, and pairs of them, whose wrong and right logins are remembered. More: who failed the least is
/// forgotten.
pub(crate) const LOGIN_ATTEMPTS_KNOWN_MAX: usize = 4096;

/// Queues of which `/metrics` has samples without being asked: half of them as they hold the most, half as they moved
/// the most. With names of any length an answer stays below a mebibyte; the others are told of on request.
pub(crate) const METRICS_QUEUES_MAX: usize = 64;

/// Bytes of the definitions file: some hundred thousand objects. More: the broker does not start, or does not reload.
pub(crate) const DEFINITIONS_FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Connections that a cell has places for, the most that `limits.connections` can be raised to while the broker runs.
/// A place takes memory once it is used.
pub(crate) const CONNECTIONS_MAX: usize = 1_000_000;

/// Queues of all vhosts together. A place takes memory once it is used. More: the declaration is refused.
pub(crate) const QUEUES_MAX: usize = 64 << 20;

/// Vhosts of a broker: each has a routing table and a responder of its own, and a share of the places for queues.
pub(crate) const VHOSTS_MAX: usize = 256;

/// How often the deletion of a vhost looks whether its connections have ended.
pub(crate) const VHOST_LOOK_EVERY: Duration = Duration::from_millis(100);

/// How many times it looks before it gives up.
pub(crate) const VHOST_LOOKS_MAX: usize = 100;

/// How far apart two samples of the counts of queues are, from which rates are told. More often: the rates of small
/// numbers jump, and all queues are looked at for nothing.
pub(crate) const RATES_EVERY: Duration = Duration::from_secs(5);

/// Messages that an operator looks at or takes in one request. More: the request is refused.
pub(crate) const ADMIN_MESSAGES_MAX: usize = 1_000;

/// Bytes of the bodies of those messages, but for the first of them: as they stand in memory at once. More: fewer come.
pub(crate) const ADMIN_MESSAGES_BYTES_MAX: usize = 8 * 1024 * 1024;

/// How often a request that waits for a page of a queue looks again.
pub(crate) const ADMIN_PAGE_LOOK_EVERY: Duration = Duration::from_millis(20);

/// How many times it looks before it gives up.
pub(crate) const ADMIN_PAGE_LOOKS_MAX: usize = 250;

/// Messages that an operator's request moves in one turn of a cell, so that clients wait for no more.
pub(crate) const ADMIN_MOVES_A_TURN: usize = 64;

/// Messages that a dry run looks at. Behind them it says that it stopped.
pub(crate) const ADMIN_DRY_RUN_MESSAGES_MAX: usize = 100_000;

/// Happenings that are kept for readers of the event stream, a few hundred bytes each. More: the oldest go, and a reader
/// who missed them is told.
pub(crate) const HAPPENINGS_KEPT: usize = 4_096;

/// Happenings that are written to a reader at a time.
pub(crate) const EVENTS_AT_ONCE: usize = 64;

/// How long an event stream lasts: shorter than [`HTTP_LIFE_MAX`], so that it ends between two events.
pub(crate) const EVENTS_LIFE_MAX: Duration = Duration::from_secs(50);

/// How long an event stream says nothing, so that one whose reader has gone ends.
pub(crate) const EVENTS_QUIET_MAX: Duration = Duration::from_secs(5);

/// Bytes of a password that a user is given, so that hashing one stays cheap. More: the change is refused.
pub(crate) const PASSWORD_BYTES_MAX: usize = 1024;
