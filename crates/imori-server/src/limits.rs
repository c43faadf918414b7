//! Limits of the server: each with its unit, its reason, and what happens when it is reached.

use std::num::NonZeroU32;
use std::time::Duration;

/// Bytes read from one connection in a turn. Bounds how long others wait; the rest is read in the next turn.
pub(crate) const READ_BYTES: usize = 64 * 1024;

/// Connections with pending output at which a cell flushes before its work is done. Each takes a system call, and the
/// first one has waited for all others.
pub(crate) const FLUSH_CONNECTIONS_MAX: usize = 128;

/// Longest delay of a flush by a busy cell. Shorter costs system calls, longer costs latency.
pub(crate) const FLUSH_AFTER: Duration = Duration::from_micros(100);

/// Time after another connection's turn in which a cell still assumes that others are waiting. Turns then change the
/// routing table less, so that a client with a hundred messages a second is served as well as a busy one.
pub(crate) const BESIDE_OTHERS: Duration = Duration::from_millis(10);

/// Empty buffers that a cell keeps. More are freed.
pub(crate) const SPARE_BUFFERS_MAX: usize = 16;

/// Largest buffer that a cell keeps. A larger one is freed.
pub(crate) const SPARE_BUFFER_BYTES_MAX: usize = 512 * 1024;

/// Longest wait of a publisher within a turn for a slow reader of a live subscription.
pub(crate) const THROTTLE_MAX: Duration = Duration::from_millis(5);

/// Burst of a publish rate: unused time of a user or vhost that may be made up for at once.
pub(crate) const RATE_BURST: Duration = Duration::from_secs(1);

/// Shortest wait of a publisher that exceeded such a rate. Less would wake it for each message.
pub(crate) const RATE_WAIT_MIN: Duration = Duration::from_millis(5);

/// Time after which a settlement that may not be executed now is retried. Longer than the checkpointer's interval
/// would delay it unnecessarily.
pub(crate) const SETTLE_AGAIN: Duration = Duration::from_millis(5);

/// Threads for slow checks of logins. More would take CPU time from the cells, because password hashes are expensive.
pub(crate) const VERIFIER_THREADS_MAX: usize = 2;

/// Logins that wait for such a thread, each with a password. More: the client is asked to try again later.
pub(crate) const LOGINS_WAITING_MAX: usize = 1024;

/// Time that such a thread waits for another login before it ends.
pub(crate) const VERIFIER_IDLE_MAX: Duration = Duration::from_secs(10);

/// Checks of passwords per second and login thread at normal priority, a twentieth of a core. More: at low priority, so
/// that a flood of wrong passwords delays no message.
pub(crate) const PROMPT_CHECKS_PER_S: u32 = 4;

/// Time for which the 19 MiB of a password check are kept for the next one. Shorter would allocate them again and
/// again while wrong passwords arrive.
pub(crate) const HASH_MEMORY_IDLE_MAX: Duration = Duration::from_secs(8);

/// Time for which the allocator keeps freed memory: mimalloc's `purge_delay` of a second, and a little more.
pub(crate) const ALLOCATOR_PURGE_DELAY: Duration = Duration::from_millis(1100);

/// Spans waiting to be sent. More are dropped and counted.
pub(crate) const TRACE_SPANS_MAX: usize = 8192;

/// Spans in one request to a collector.
pub(crate) const TRACE_BATCH_SPANS_MAX: usize = 512;

/// Longest delay of a span to send it together with others.
pub(crate) const TRACE_EXPORT_EVERY: Duration = Duration::from_secs(1);

/// Messages that a trace follows at most.
pub const TRACED_MESSAGES_MAX: usize = 1000;

/// Steps of one message in a trace; more are counted only. A message to many receivers has many.
pub(crate) const TRACE_STEPS_MAX: usize = 100;

/// Services whose calls are measured at once. Calls of others are counted only.
pub(crate) const CALL_SERVICES_MAX: usize = 1000;

/// Requests in flight that are followed at once. Others are counted only.
pub(crate) const CALLS_IN_FLIGHT_MAX: usize = 10_000;

/// Time after which a request without a reply counts as timed out.
pub(crate) const CALL_PATIENCE: Duration = Duration::from_secs(30);

/// Responders that are named of one service.
pub(crate) const RESPONDERS_MAX: usize = 16;

/// Time for which calls are measured after an operator has looked at them.
pub(crate) const CALLS_LEASE: Duration = Duration::from_secs(15);

/// Timeout of a request to a collector.
pub(crate) const TRACE_PATIENCE: Duration = Duration::from_secs(5);

/// Bytes of a name in a span; longer names are truncated.
pub(crate) const TRACE_NAME_BYTES_MAX: usize = 256;

/// Bytes of an access token. A longer one is treated as a password.
pub(crate) const JWT_BYTES_MAX: usize = 16 << 10;

/// Bytes of a user name in an access token, as in a short string of AMQP.
pub(crate) const JWT_USER_BYTES_MAX: usize = 255;

/// Keys of an issuer of access tokens.
pub(crate) const JWT_KEYS_MAX: usize = 64;

/// Bytes of an issuer's key set.
pub(crate) const JWT_KEYS_BYTES_MAX: u64 = 1 << 20;

/// Timeout of fetching an issuer's keys, and of a login that waits for them.
pub(crate) const JWT_KEYS_PATIENCE: Duration = Duration::from_secs(3);

/// Minimum time between two refreshes of the keys, whatever tokens name.
pub(crate) const JWT_KEYS_EVERY_MIN: Duration = Duration::from_secs(10);

/// Time for the client of a closing connection to read its remaining output and close its side.
pub(crate) const LINGER_MAX: Duration = Duration::from_secs(5);

/// Divisor of the memory mark that bounds one connection's unsent bytes, whatever the configuration allows. More: a
/// connection that does not read is closed.
pub(crate) const UNSENT_SHARE_OF_MARK: usize = 4;

/// Time in which a connection with unsent bytes may make no progress while memory is short. Longer: it is closed,
/// because publishers wait for the memory that it holds.
pub(crate) const STALL_MAX: Duration = Duration::from_secs(10);

/// Unsent bytes below which such a connection is kept, because closing it would free too little.
pub(crate) const STALL_BYTES_MIN: usize = 64 * 1024;

/// Divisor of the memory mark that bounds the bodies of requests that HTTP listeners hold. It is small because what
/// comes over HTTP is small, or goes to disk or elsewhere as it comes. More: a body is not read until others are done.
pub(crate) const BODIES_SHARE_OF_MARK: usize = 8;

/// Divisor of that share which bounds the bodies of one source, so that no source has all of it.
pub(crate) const BODIES_SOURCE_SHARE: usize = 2;

/// Bytes of each body that are charged but wait for no room: an operator's requests are shorter, and pass in any case.
pub(crate) const BODY_FIRST_BYTES: usize = 16 * 1024;

/// Bytes for which a body of unknown length asks at once.
pub(crate) const BODY_STEP_BYTES: usize = 256 * 1024;

/// Longest time for which a body waits for room. More: 503.
pub(crate) const BODY_ROOM_MAX: Duration = Duration::from_secs(20);

/// Time after which a client may try again whose body found no room.
pub(crate) const BODY_RETRY: Duration = Duration::from_secs(5);

/// Longest time without a byte of a body, and the time that each body has besides that for its bytes. More: 408.
pub(crate) const BODY_IDLE_MAX: Duration = Duration::from_secs(30);

/// The lowest average rate of a body, as slow as a bad mobile connection. A slower one gets 408.
pub(crate) const BODY_BYTES_PER_SECOND_MIN: u64 = 8 * 1024;

/// Divisor of the memory mark that bounds long frames being received. The rest is left to waiting messages. More: a
/// connection is not read until other frames are complete, except that one frame may always exceed the bound.
pub(crate) const LONG_FRAMES_SHARE_OF_MARK: usize = 2;

/// Time in which the next [`READ_BYTES`] of a long frame must arrive while others wait for memory. Longer: its
/// connection is closed.
pub(crate) const LONG_FRAME_STALL_MAX: Duration = Duration::from_secs(10);

/// Interval of the search for stalled connections while memory is short.
pub(crate) const STALL_LOOK: Duration = Duration::from_secs(1);

/// Bytes of TLS read at once, into memory shared by all sessions of a cell.
pub(crate) const TLS_READ_BYTES: usize = 64 * 1024;

/// Smallest read of TLS; otherwise each tiny record would cost a system call.
pub(crate) const TLS_READ_BYTES_MIN: usize = 4 * 1024;

/// Records of TLS without data, such as KeyUpdates, accepted in [`TLS_DRY_RECORDS_WINDOW`]. Libraries send one in
/// many gigabytes. More: the connection is closed, because each may cost a new key.
pub(crate) const TLS_DRY_RECORDS_MAX: u32 = 32;

/// The window in which those records are counted.
pub(crate) const TLS_DRY_RECORDS_WINDOW: Duration = Duration::from_secs(1);

/// Handshake steps that wait for a thread, each with a record of up to 18 KiB: as many as connections may be waiting
/// for login by default. More: the oldest step of the source with the most is dropped.
pub(crate) const HANDSHAKES_WAITING_MAX: usize = 4096;

/// Niceness of the threads that compute handshakes, and of those that check passwords in a flood, which leaves them
/// about a tenth of a core that a cell wants too. The lowest priority would let logins time out while cells are busy.
pub(crate) const LOGIN_NICENESS: i32 = 10;

/// Time that such a thread waits for another handshake before it ends.
pub(crate) const HANDSHAKER_IDLE_MAX: Duration = Duration::from_secs(10);

/// Interval of checks of certificate files. Certificate and key both have to be unchanged for as long.
pub(crate) const TLS_FILES_LOOK: Duration = Duration::from_secs(1);

/// Log lines per second about refused clients. More are counted in the next line.
pub(crate) const PEER_LOG_LINES_MAX: usize = 8;

/// Pause after accepting failed for lack of descriptors or memory.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Connections that may wait to be accepted.
pub(crate) const ACCEPT_BACKLOG: i32 = 4096;

/// Inboxes of one connection. A client needs one; a library that creates one per call needs a few thousand. More: the
/// SEND that asks for it is refused.
pub(crate) const INBOXES_MAX: u16 = 4096;

/// Connections to the monitor, and as many to the admin listener. Each may hold a response that is not read. More:
/// the oldest one without a request is closed.
pub(crate) const HTTP_CONNECTIONS_MAX: usize = 16;

/// Connections to the automation's listener: senders of webhooks, clients of its API, and readers of its stream, whose
/// connections stay. More: the oldest one without a request is closed.
pub(crate) const AUTOMATION_CONNECTIONS_MAX: usize = 256;

/// Bytes of a request's head. More: it is refused. The HTTP library accepts no smaller limit.
pub(crate) const HTTP_HEAD_BYTES_MAX: usize = 8 * 1024;

/// Headers of a request. More: it is refused.
pub(crate) const HTTP_HEADERS_MAX: usize = 32;

/// Timeout of a request's head, including the idle time before it. Longer: the connection is closed.
pub(crate) const HTTP_HEAD_MAX: Duration = Duration::from_secs(10);

/// Timeout of a TLS handshake on an HTTP listener. Longer: the connection is closed.
pub(crate) const HTTP_HANDSHAKE_MAX: Duration = Duration::from_secs(5);

/// Time that services have to finish their work after the broker's end. Longer: they are cut.
pub(crate) const FINISHING_TIME_MAX: Duration = Duration::from_secs(10);

/// Threads for HTTP requests that block on the check of a login or on the disk: one for each possible connection to the
/// monitor and the admin listener. More wait.
pub(crate) const HTTP_WAITING_THREADS_MAX: usize = 2 * HTTP_CONNECTIONS_MAX;

/// Lifetime of a connection to the monitor or the admin listener; a response in progress is finished, and the live feed
/// goes on until its reader or the broker ends it.
pub(crate) const HTTP_LIFE_MAX: Duration = Duration::from_secs(60);

/// Bytes of a request for an upgrade to WebSocket. More: it is refused. Browsers send a few hundred, plus cookies.
pub(crate) const UPGRADE_BYTES_MAX: usize = 8 * 1024;

/// Bytes of a WebSocket message beyond a message's body and headers. Protocols add framing, and clients combine small
/// messages. A longer one: the connection is closed.
pub(crate) const WEBSOCKET_SLACK_BYTES: u64 = 1024 * 1024;

/// Bytes of a WebSocket message from the broker. More goes into the next one. Clients buffer a whole message, many
/// with a limit of 1 MiB or less.
pub(crate) const WEBSOCKET_MESSAGE_BYTES_MAX: usize = 64 * 1024;

/// Bytes of queued pongs. More: pings are not answered until there is room.
pub(crate) const WEBSOCKET_CONTROL_BYTES_MAX: usize = 4 * 1024;

/// Bytes queued for the disk, and at most half of a journal file. More: publishers of persistent messages wait until
/// half of that is left.
pub(crate) const QUEUED_BYTES_MARK: usize = 32 * 1024 * 1024;

/// Disk space beyond a journal file that a declaration must leave. A commit to the definitions' store takes it before
/// it gives some back, even for a deletion. Less: the declaration is refused.
pub(crate) const DEFINITIONS_ROOM_BYTES: u64 = 2 * 1024 * 1024;

/// Interval of retries for definitions that did not fit on the disk. The journal keeps them meanwhile.
pub(crate) const DEFINITIONS_AGAIN: Duration = Duration::from_millis(200);

/// Bytes of a journal file that a record or group must leave for headers and the group's marks.
pub(crate) const JOURNAL_GROUP_SLACK_BYTES: usize = 8 * 1024;

/// Bytes of a journal file beyond the longest message: the address, a few deaths, and the ids of two thousand queues.
/// A longer record is refused, or split if it is a dead letter. With smaller files the broker does not start.
pub(crate) const JOURNAL_MESSAGE_SLACK_BYTES: usize = 32 * 1024;

/// Interval of the watch. Longer would report a hanging flush too late.
pub(crate) const STALL_WATCH_EVERY: Duration = Duration::from_millis(50);

/// Lag of a cell above which it is reported with the likely cause.
pub(crate) const CELL_LATE: Duration = Duration::from_millis(250);

/// Interval at which a cell measures its own lag; one timer per second costs nothing.
pub(crate) const PULSE: Duration = Duration::from_secs(1);

/// Stalls kept in full, about 250 bytes each. Older ones are only counted.
pub(crate) const STALLS_KEPT: usize = 64;

/// Interval of checks of free disk space. A second of publishing fits into the space left when publishers are
/// stopped.
pub(crate) const SPACE_LOOK: Duration = Duration::from_secs(1);

/// The same interval while space is low, because publishers wait for it.
pub(crate) const SPACE_LOOK_LOW: Duration = Duration::from_millis(200);

/// Seconds for each of which the longest commit is kept, because a mean hides stalls.
pub(crate) const COMMIT_SECONDS: usize = 60;

/// Time for clients to hear that the broker ends because of its disk; the whole end takes less than a second.
pub(crate) const DISK_FAILURE_GOODBYE: Duration = Duration::from_millis(200);

/// Findings of damage listed by the monitor and in the note. More appear only in the log, which an operator with so
/// many findings reads anyway.
pub(crate) const DAMAGES_MAX: usize = 256;

/// Interval at which the checkpointer checks the number of journal files. Longer would let more of them pile up.
pub(crate) const CHECKPOINTER_LOOK_EVERY: Duration = Duration::from_millis(50);

/// Bytes of messages that recovery loads from the journal into memory. Later records stay there until their queue
/// reaches them, because touching fresh memory would slow down the start.
pub(crate) const RESTORED_BYTES_MAX: usize = 16 << 20;

/// Interval at which a page write that waits for the journal checks for its failure. Progress is signalled at once.
pub(crate) const PAGER_LOOK_EVERY: Duration = Duration::from_millis(50);

/// Longest wait of pages for the journal, because jobs that free space wait behind them. After that the messages
/// stay in memory and the write is retried.
pub(crate) const PAGER_WAIT_MAX: Duration = Duration::from_secs(5);

/// Live journal files while space is short: only the current one. Freeing any other may let publishers continue.
pub(crate) const FILES_MAX_WHEN_SHORT: usize = 1;

/// Pause of the checkpointer after a copy to segments found no room. Each attempt scans all messages in memory, and
/// only consumers make room meanwhile.
pub(crate) const SPILL_AGAIN: Duration = Duration::from_millis(250);

/// Connections without a peer that wait for the disk to publish what they received. Each uses a slot and a
/// descriptor. More: the data is dropped, as nothing was confirmed.
pub(crate) const DETACHED_MAX: usize = 1024;

/// Divisor of all connection slots that bounds those connections, because consumers that drain the disk need slots.
pub(crate) const DETACHED_SHARE_OF_PLACES: usize = 4;

/// Divisor of the memory mark that bounds their messages; at the mark every publisher would wait for the disk. More:
/// the data is dropped as well.
pub(crate) const DETACHED_SHARE_OF_MARK: usize = 8;

/// Pause after a checkpoint larger than a journal file. Each attempt scans all queues and appends their counts again.
pub(crate) const CHECKPOINT_AGAIN: Duration = Duration::from_secs(1);

/// Unneeded pages that alone justify a checkpoint: 64 MiB of disk, and until then each is listed in the checkpoint's
/// payload.
pub(crate) const CHECKPOINT_PAGES: usize = 256;

/// Divisor of a queue's memory while more than half of the memory mark is used.
pub(crate) const QUEUE_MEMORY_SHARE_WHEN_SHORT: usize = 8;

/// Time for the last checkpoint. Longer: it is given up, and the next start reads more of the journal.
pub(crate) const CHECKPOINT_AT_END_MAX: Duration = Duration::from_secs(2);

/// File descriptors reserved for listeners, runtimes, the log and the store; without them the journal could not open
/// its next file. More connections wait to be accepted.
pub(crate) const DESCRIPTORS_KEPT: usize = 48;

/// Subscriptions of the broker itself in each vhost: the responder to pings.
pub(crate) const BUILT_IN_SUBSCRIPTIONS: usize = 1;

/// Connections of a cell for internal clients of programs around the broker, such as a gateway: one for each client and
/// one for each of its live subscriptions, a kilobyte each. They are besides those for sockets. More are refused.
pub(crate) const INTERNAL_CLIENTS_MAX: usize = 65_536;

/// Connections of a cell for the broker's own services. The responder of each vhost has two, and all may stand on one
/// cell; the rest is for services to come. More are refused, which the log tells.
pub(crate) const SERVICE_CLIENTS_MAX: usize = 8 * VHOSTS_MAX;

/// Connections of a cell for operators' requests. Each request has one as long as it runs, and
/// [`HTTP_CONNECTIONS_MAX`] limits requests further. More are refused.
pub(crate) const OPERATOR_CLIENTS_MAX: usize = 256;

/// Bytes of bodies that wait for the receiver of a live subscription. More wait in the subscription's outbound half,
/// with the limits of every connection.
pub(crate) const PIPE_BYTES_MAX: usize = 256 * 1024;

/// Commands of an internal client waiting for its cell. More: the caller waits.
pub(crate) const INTERNAL_COMMANDS_MAX: usize = 64;

/// Bytes of the bodies that an internal client has parked, which count towards the memory alarm. More: no further
/// command is taken until the alarm ends or the queue is shorter.
pub(crate) const INTERNAL_PARKED_BYTES_MAX: usize = 8 << 20;

/// Live subscriptions of an internal client, each a connection that does not count towards its user's limit of
/// connections. More are refused.
pub(crate) const INTERNAL_SUBSCRIPTIONS_MAX: usize = 1_024;

/// Deliveries that one command of an internal client settles, a few milliseconds of work. More: further commands
/// settle the rest.
pub(crate) const INTERNAL_SETTLES_MAX: usize = 256;

/// The longest deadline of a call. Longer: the call is late after this time.
pub(crate) const INTERNAL_CALL_MAX: Duration = Duration::from_secs(24 * 3600);

/// Pings waiting for the broker's own responder. More wait in its outbound half.
pub(crate) const PINGS_WAITING_MAX: usize = 64;

/// Time in which an operator's change must become durable.
pub(crate) const DEFINITION_ROWS_PATIENCE: Duration = Duration::from_secs(10);

/// Bytes of the name of a user, vhost or policy.
pub(crate) const OBJECT_NAME_BYTES_MAX: usize = 255;

/// Policies of a vhost, and as many operator policies; each declared queue is matched against all of them. More: the
/// policy is refused.
pub(crate) const POLICIES_PER_VHOST_MAX: usize = 1_000;

/// Queues to which changed policies are applied in one turn. Each is locked, and messages may be dropped; others have
/// turns in between.
pub(crate) const POLICY_QUEUES_A_TURN: usize = 64;

/// Bytes of a policy's definition as JSON. More: the policy is refused.
pub(crate) const POLICY_DEFINITION_BYTES_MAX: usize = 16 << 10;

/// Time after which a wrong login as one user from one source is forgiven; leaves a guesser one guess a second.
pub(crate) const LOGIN_ATTEMPT_EVERY: Duration = Duration::from_secs(1);

/// Wrong logins as one user from one source that are checked in a row. More are refused unchecked for a while.
pub(crate) const LOGIN_ATTEMPTS_BURST: u32 = 20;

/// Time after which a wrong login is forgiven that counts for its source with any user, or for its user from any
/// source.
pub(crate) const LOGIN_TOTAL_ATTEMPT_EVERY: Duration = Duration::from_millis(50);

/// Wrong logins per source with any user, or per user from any source, that are checked in a row: far more than
/// misconfigured clients cause. More: sources that have not logged in as the user are refused unchecked for a while.
pub(crate) const LOGIN_TOTAL_ATTEMPTS_BURST: u32 = 1_000;

/// Time after a login for which its source is known to belong to the user.
pub(crate) const LOGIN_OWNER_MAX: Duration = Duration::from_secs(3600);

/// Time for which a correct password is remembered, so that the user's next logins need no slow hash.
pub(crate) const VERIFIED_MAX: Duration = Duration::from_secs(3600);

/// Users named in one log line.
pub(crate) const USERS_NAMED_MAX: usize = 20;

/// Iterations of SCRAM-SHA-256 keys created by the broker. Clients compute as many at each login.
pub(crate) const SCRAM_ITERATIONS: NonZeroU32 = NonZeroU32::new(15_000).unwrap();

/// Fewest iterations of imported keys (RFC 7677, 4). Fewer: the keys are refused.
pub(crate) const SCRAM_ITERATIONS_MIN: u32 = 4096;

/// Most iterations of imported keys. More would keep clients busy for seconds: the keys are refused.
pub(crate) const SCRAM_ITERATIONS_MAX: u32 = 10_000_000;

/// Bytes of an imported salt. More: the keys are refused.
pub(crate) const SCRAM_SALT_BYTES_MAX: usize = 1024;

/// Sources, users, and pairs of them, for which logins are remembered. More: the entry with the fewest failures is
/// dropped.
pub(crate) const LOGIN_ATTEMPTS_KNOWN_MAX: usize = 4096;

/// Bytes of the definitions file: a few hundred thousand objects. More: the broker does not start, or refuses the
/// reload.
pub(crate) const DEFINITIONS_FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Connection slots of a cell, the highest value to which `limits.connections` can be raised at run time. A slot
/// takes memory once it is used.
pub(crate) const CONNECTIONS_MAX: usize = 1_000_000;

/// Queues of all vhosts together. A slot takes memory once it is used. More: the declaration is refused.
pub(crate) const QUEUES_MAX: usize = 64 << 20;

/// Vhosts of a broker; each has its own routing table and responder, and a share of the queue slots.
pub(crate) const VHOSTS_MAX: usize = 256;

/// Events kept for readers of the event stream, a few hundred bytes each. Older ones are dropped, and readers learn
/// how many they missed.
pub(crate) const HAPPENINGS_KEPT: usize = 4_096;

/// Bytes of a new password, so that hashing stays cheap. More: the change is refused.
pub(crate) const PASSWORD_BYTES_MAX: usize = 1024;

/// Snapshots and restores of streams that run at once. A further one waits, and [`TRANSFERS_WAITING_MAX`] wait.
pub(crate) const TRANSFERS_MAX: usize = 8;

/// Snapshots and restores of streams that wait. A further one is refused.
pub(crate) const TRANSFERS_WAITING_MAX: usize = 16;

/// Messages of a stream that a snapshot reads at once.
pub(crate) const SNAPSHOT_PEEK_LEN: usize = 256;

/// Bytes of their bodies, after which it reads fewer.
pub(crate) const SNAPSHOT_PEEK_BYTES: usize = 4 * 1024 * 1024;

/// Interval at which a snapshot waits for a page of a stream.
pub(crate) const SNAPSHOT_PAGE_LOOK_EVERY: Duration = Duration::from_millis(20);

/// Number of those intervals before the snapshot is given up.
pub(crate) const SNAPSHOT_PAGE_LOOKS_MAX: usize = 250;

/// Time for the reader of a snapshot to subscribe, as in nats-server. Longer: the snapshot is given up.
pub(crate) const SNAPSHOT_READER_PATIENCE: Duration = Duration::from_secs(2);

/// Interval at which a snapshot looks for its reader.
pub(crate) const SNAPSHOT_READER_LOOK_EVERY: Duration = Duration::from_millis(100);

/// Time for the reader of a snapshot to answer a piece, as in nats-server. Longer: the snapshot is given up.
pub(crate) const SNAPSHOT_ANSWER_PATIENCE: Duration = Duration::from_secs(5);

/// Time between two pieces of a restore, as in nats-server. Longer: the restore is given up.
pub(crate) const RESTORE_PIECE_PATIENCE: Duration = Duration::from_secs(5);

/// Bytes of messages that a restore stores at once.
pub(crate) const RESTORE_BATCH_BYTES: usize = 256 * 1024;

/// Bytes of all consumers' states in an archive, which wait for its end. More: the archive is refused.
pub(crate) const RESTORE_CONSUMERS_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Bytes of a message in an archive, headers and body; the journal may refuse smaller ones. More: the archive is refused.
pub(crate) const RESTORE_MESSAGE_BYTES_MAX: usize = 64 * 1024 * 1024;
