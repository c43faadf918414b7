//! The limits of the core: each with its unit, its reason, and what happens when it is reached.

/// Bytes of a subject or routing key. AMQP's short strings end at 255; NATS and STOMP users
/// nest deeper. Longer: the publish or bind is refused.
pub const SUBJECT_BYTES_MAX: usize = 1024;

/// Tokens of a subject or a pattern. Bounds the depth of the trie and the work of a match. More:
/// the publish or bind is refused.
pub const SUBJECT_TOKENS_MAX: usize = 128;

/// Steps between the first and the last "many" of a pattern, as in `#.a.b.#`. They may stand
/// anywhere in a subject and are tried at each of its tokens, so three of them keep a match
/// within four times the work of a literal one. More: the bind is refused.
pub const PATTERN_FLOATING_STEPS_MAX: usize = 3;

/// Live subscriptions of a vhost. Each costs about 200 bytes. More: the subscribe is refused.
pub const SUBSCRIPTIONS_PER_VHOST_MAX: usize = 1_000_000;

/// Bindings to queues and exchanges of a vhost. Each costs about 400 bytes, because it is indexed
/// from both ends. More: the bind is refused.
pub const BINDINGS_PER_VHOST_MAX: usize = 1_000_000;

/// Encoded bytes of the arguments of a binding. A store keeps them in the key of a row, and the
/// record must fit into the smallest journal file. More: the bind is refused.
pub const ARGUMENTS_BYTES_MAX: usize = 16 << 10;

/// Nesting depth of lists and maps in an argument of a binding, which decoding recurses into. More:
/// the bind is refused.
pub const ARGUMENTS_DEPTH_MAX: usize = 16;

/// Queues of a vhost. More: the declare is refused.
pub const QUEUES_PER_VHOST_MAX: usize = 200_000;

/// Exchanges of a vhost; one message visits each at most once. More: the declare is refused.
pub const EXCHANGES_PER_VHOST_MAX: usize = 10_000;

/// Routes that one cell caches by address, and as many again by stem, about 350 bytes each. The
/// cache starts small. It has sets of two, so a thousand routes in use only avoid evicting each
/// other in a larger one. More: the less recently used route of the set is evicted.
/// the set that was used less lately is forgotten.
pub const ROUTE_CACHE_ENTRIES_MAX: usize = 4096;

/// Targets in all routes that one cell caches of one kind, 20 bytes each: a few subjects with a
/// hundred thousand subscribers must not hold memory for ever. More: the cache is cleared.
pub const ROUTE_CACHE_TARGETS_MAX: usize = 1 << 20;

/// Pairs of queue and reason in a message's death history. Each death copies the history and
/// searches it. More: the dead letter is dropped and counted.
pub const DEATHS_MAX: usize = 64;

/// Dead letters that one command may cause beyond those of the first queue: each can displace
/// others from full queues, or go to many. More: they are dropped and counted.
pub const DEAD_LETTERS_CAUSED_MAX: usize = 10_000;

/// Bytes of the ids that a queue remembers for de-duplication, each with about 150 bytes of
/// overhead: half a million ids of the length of a UUID. More: the oldest id is forgotten, which
/// shortens the window.
pub const DEDUP_BYTES_MAX: usize = 96 << 20;

/// Bytes of ids in one record that records them again, which is written while their queue is
/// locked. More: another record.
pub const SEEN_BYTES_MAX: usize = 64 << 10;

/// Milliseconds that a message may be delayed: 32 bits, 49 days, as in RabbitMQ's plugin. More: the
/// publish is refused.
pub const DELAY_MS_MAX: u64 = u32::MAX as u64;

/// Readers that one step of ending a connection or a session removes under one topology lock, which
/// others wait for; also the exclusive queues that it deletes. More: another step.
pub const READERS_AT_ONCE: usize = 16;

/// Sessions of one connection, including the first. AMQP clients may ask for as many in RabbitMQ,
/// which allows 2,047 channels per connection. An idle one costs about 300 bytes. More: opening one
/// is refused.
pub const SESSIONS_MAX: u16 = 2048;

/// Deliveries that one command settles at a time, or that one step of ending releases. With the
/// deliveries that this causes, it takes about 7 ms. More: the rest follows after others had a
/// turn.
pub const SETTLES_AT_ONCE: usize = 1024;

/// Commands in one turn of a connection, so that others get their turn.
pub const TURN_COMMANDS_MAX: usize = 256;

/// Change of a queue's bytes after which its vhost's total is updated, so that cells do not contend
/// for the total at each message. The total is exact up to this many bytes per queue.
pub const BYTES_TOLD_STEP: u64 = 16 * 1024;

/// Deliveries that one turn of a connection may cause.
pub const TURN_RECEIVERS_MAX: usize = 1024;

/// Changes of the routing table in one turn of a connection. Each takes as long as several
/// messages, but the changes of a turn can share the copied path to them.
pub const TURN_CHANGES_MAX: usize = 32;

/// Changes of the routing table in one turn while other connections of the cell wait. Each adds a
/// microsecond or more to the latency of a message of theirs. Fewer would share less copying.
pub const TURN_CHANGES_BESIDE_OTHERS_MAX: usize = 8;

/// Bytes of entries in a page: large enough for an efficient read, small enough to hold one for
/// each queue that is read ahead. A larger message is a page by itself.
pub const PAGE_BYTES_GOAL: usize = 256 << 10;

/// Bytes that a queue sends to disk at once: enough to be worth a write and a sync, and the memory
/// needed meanwhile.
pub const PAGED_BYTES_GOAL: usize = 16 << 20;

/// Bytes of messages that a queue may hold in memory above its share while pages of it are being
/// written. This is two batches: while one is written, the next is ready and one more may arrive.
/// More: publishers wait until it is less, or until no page is being written.
pub const THROTTLE_BYTES: usize = 2 * PAGED_BYTES_GOAL;

/// Multiple of its own share of memory that a throttling queue may hold, if that is less than
/// [`THROTTLE_BYTES`]. Ten thousand queues with shares of 64 KiB must not hold 32 MiB each. With
/// fewer shares, batches would be too small to be worth a sync.
pub const THROTTLE_SHARES: usize = 4;

/// Bytes of dead letters that stay in a queue because the disk has no room for them elsewhere.
/// More: until there is room, no further messages die there, and none are delivered.
pub const PENDING_DEAD_LETTER_BYTES_MAX: usize = 1 << 20;

/// Buckets that count the journal records a queue needs, 16 bytes each. More: neighbouring buckets
/// are merged, so that the journal is held back for at most 4/1024 of the queue too long.
pub const RECORD_BUCKETS_MAX: usize = 1024;

/// Bytes counted for a record beyond its payload: its journal header and alignment.
pub const RECORD_SLACK_BYTES: usize = 64;

/// Messages in one record of settlements or delivery counts, at most 24 bytes each, so that the
/// record fits into the smallest journal file.
pub const RECORD_ENTRIES_MAX: usize = 16_384;

/// Bytes of a regular expression in a right, as in RabbitMQ, or in a policy. More: the right or
/// policy is refused.
pub const EXPRESSION_BYTES_MAX: usize = 1024;

/// Bytes of a compiled expression of a right or policy, and of its cached states: a thousand users
/// have several each. More: the right or policy is refused.
pub const EXPRESSION_COMPILED_BYTES_MAX: usize = 256 << 10;

/// Nesting depth of an expression in a right or policy, which parsing recurses into. More: the
/// right or policy is refused.
pub const EXPRESSION_NESTING_MAX: u32 = 32;

/// Subject patterns in one list of a user's rights, 100 to 200 bytes each. More: the right is
/// refused.
pub const SUBJECT_GRANTS_MAX: usize = 10_000;

/// Unanswered messages of a connection that may answer only what it receives, about 150 bytes each.
/// More: the oldest can no longer be answered.
pub const OPEN_ANSWERS_MAX: usize = 4096;

/// Bytes of a selector; a list of a thousand ids has 40,000. More: the selector is refused.
pub const SELECTOR_BYTES_MAX: usize = 64 << 10;

/// Words of a selector: names, literals, operators and parentheses. Each becomes at most one step,
/// so that an evaluation takes at most a tenth of a millisecond. More: the selector is refused.
pub const SELECTOR_WORDS_MAX: usize = 8192;

/// Pending operators and open parentheses while parsing a selector. More: the selector is refused.
pub const SELECTOR_NESTING_MAX: usize = 64;

/// Stack slots for evaluating a selector: two for each pending operator, plus one. More: the
/// selector is refused.
pub const SELECTOR_SLOTS_MAX: usize = 2 * SELECTOR_NESTING_MAX + 1;

/// Characters of a piece between two `%` that contains `_`, which is tried at every position of a
/// text. More: the selector is refused.
pub const SELECTOR_WILD_PIECE_MAX: usize = 64;

/// Messages returned to positions that a consumer with a selector has already passed, about 30
/// bytes each. More: it searches the queue from the start again.
pub const RETURNED_MAX: usize = 4096;

/// Messages that consumers with selectors examine under one lock of their queue, about a
/// millisecond. More: they continue after others had the queue.
pub const SEEK_AT_ONCE: usize = 8192;

/// Pages read at once for a consumer that searches a queue: the one that it needs, and those behind
/// it.
pub const SEEK_PAGES: usize = 4;

/// Messages that one consumer refused and that wait for another consumer, about 30 bytes each.
/// More: the message is dead-lettered as rejected.
pub const REFUSED_MAX: usize = 10_000;

/// Values of which a consumer of a stream takes messages; each message is compared with all of them. More: the
/// subscription is refused.
pub const FILTER_VALUES_MAX: usize = 256;

/// Message groups that one queue distinguishes, about 40 bytes each while assigned to a consumer.
/// More: some groups share a consumer.
pub const GROUPS_MAX: u16 = 4096;

/// Requests that wait for messages of one consumer of a stream, about 200 bytes each, whatever the consumer's own limit is.
/// More: a request ends at once.
pub const PULL_REQUESTS_MAX: usize = 65_536;
