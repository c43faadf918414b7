//! Limits of the core: each with its unit, the reason, and what happens when it is reached.

/// Bytes of a subject or routing key. AMQP's short strings end at 255; NATS and STOMP users
/// nest deeper. Longer: the publish or bind is refused.
pub const SUBJECT_BYTES_MAX: usize = 1024;

/// Tokens of a subject or a pattern. It bounds the depth of the trie and the work of a match.
/// More: the publish or bind is refused.
pub const SUBJECT_TOKENS_MAX: usize = 128;

/// Steps between the first and the last "many" of a pattern, as in `#.a.b.#`. They may stand
/// anywhere in a subject and are tried at each of its tokens, so three of them keep a match
/// within four times the work of a literal one. More: the bind is refused.
pub const PATTERN_FLOATING_STEPS_MAX: usize = 3;

/// Live subscriptions of a vhost. Each costs about 200 bytes. More: the subscribe is refused.
pub const SUBSCRIPTIONS_PER_VHOST_MAX: usize = 1_000_000;

/// Bindings to queues and exchanges of a vhost. Each costs about 400 bytes, as it is found
/// from both its ends. More: the bind is refused.
pub const BINDINGS_PER_VHOST_MAX: usize = 1_000_000;

/// Bytes of the arguments of a binding: a store keeps them in the key of a row, and a record of it has to fit into the
/// smallest journal file. More: the bind is refused.
pub const ARGUMENTS_BYTES_MAX: usize = 16 << 10;

/// Lists and maps in each other in an argument of a binding: reading it back takes as many nested calls. More: the bind
/// is refused.
pub const ARGUMENTS_DEPTH_MAX: usize = 16;

/// Queues of a vhost. More: the declare is refused.
pub const QUEUES_PER_VHOST_MAX: usize = 200_000;

/// Exchanges of a vhost; one message visits each at most once. More: the declare is refused.
pub const EXCHANGES_PER_VHOST_MAX: usize = 10_000;

/// Routes that one cell remembers of single addresses, and as many of beginnings of addresses, about 350
/// bytes each; it begins with few. Two share a set, so
/// a thousand in use find room beside each other only if there is more of it. More: the one of
/// the set that was used less lately is forgotten.
pub const ROUTE_CACHE_ENTRIES_MAX: usize = 4096;

/// Targets in all the routes that one cell remembers of one of these kinds, 20 bytes each: a few subjects with a
/// hundred thousand subscribers must not hold memory for ever. More: all are forgotten.
pub const ROUTE_CACHE_TARGETS_MAX: usize = 1 << 20;

/// Pairs of queue and reason in the history of a message's deaths. Each death copies the history
/// and looks for its queue in it. More: the dead letter is dropped and counted.
pub const DEATHS_MAX: usize = 64;

/// Dead letters that one command may cause beyond those of the first queue: each can push others
/// out of full queues, or go to many. More: they are dropped and counted.
pub const DEAD_LETTERS_CAUSED_MAX: usize = 10_000;

/// Bytes of the ids that a queue remembers so as to take none of them twice, each counted with about 150
/// bytes more: half a million ids of the length of a UUID. More: the oldest is forgotten, which makes its
/// window shorter.
pub const DEDUP_BYTES_MAX: usize = 96 << 20;

/// Bytes of ids in one record that tells of them again, which is written while their queue is locked.
/// More: another record.
pub const SEEN_BYTES_MAX: usize = 64 << 10;

/// Milliseconds that a message may be delayed: what 32 bits hold, 49 days, as in RabbitMQ's plugin. More: the
/// publish is refused.
pub const DELAY_MS_MAX: u64 = u32::MAX as u64;

/// Readers that one step of ending a connection or a session forgets, under one lock of the topology, for which others
/// wait; or exclusive queues that it deletes. More: another step.
pub const READERS_AT_ONCE: usize = 16;

/// Sessions of one connection, the first included: what AMQP clients may ask for in RabbitMQ, which has 2,047 channels
/// a connection. An idle one costs about 300 bytes. More: opening one is refused.
pub const SESSIONS_MAX: u16 = 2048;

/// Deliveries that one command settles at a time, or one step of an end gives back, with what their queues give out
/// instead: about 7 ms. More: the rest is settled after others had their turns.
pub const SETTLES_AT_ONCE: usize = 1024;

/// Commands that one turn of a connection works off, so that others get theirs.
pub const TURN_COMMANDS_MAX: usize = 256;

/// Bytes by which what a queue has changes before its vhost is told, so that cells do not meet there at each message. The
/// bytes of a vhost are exact but for so many for each of its queues.
pub const BYTES_TOLD_STEP: u64 = 16 * 1024;

/// Deliveries that one turn of a connection may cause.
pub const TURN_RECEIVERS_MAX: usize = 1024;

/// Changes of the routing table that one turn of a connection may ask for. Each takes as long as several
/// messages; those of a turn can share the copy of what lies on the way to them.
pub const TURN_CHANGES_MAX: usize = 32;

/// Changes of the routing table in one turn while others have turns on the same cell. Each adds a microsecond or more
/// to the time of a single message of theirs. Fewer would share less.
pub const TURN_CHANGES_BESIDE_OTHERS_MAX: usize = 8;

/// Bytes of entries that make a page: one read that is worth its call, and little to hold for each queue that is
/// read ahead. A message that is larger is a page by itself.
pub const PAGE_BYTES_GOAL: usize = 256 << 10;

/// Bytes that a queue sends to disk at once: a write and a sync that are worth their calls, and what memory has to
/// be spared for meanwhile.
pub const PAGED_BYTES_GOAL: usize = 16 << 20;

/// Bytes of messages that a queue may have in memory above its share while pages of it are being written. These are
/// two batches, so that the next is there when one is written, and one more may come meanwhile. More: publishers wait
/// until it is less, or until no page is being written.
pub const THROTTLE_BYTES: usize = 2 * PAGED_BYTES_GOAL;

/// Shares of memory above its own that a throttling queue may keep, where that is less than [`THROTTLE_BYTES`]. Ten
/// thousand queues with shares of 64 KiB must not hold 32 MiB each. With less than a few shares the batches would be
/// too small to be worth a sync.
pub const THROTTLE_SHARES: usize = 4;

/// Bytes of messages that died in a queue and stay there as the disk has no room for them elsewhere. More: nothing else
/// dies there, and nothing is given out, until there is.
pub const PENDING_DEAD_LETTER_BYTES_MAX: usize = 1 << 20;

/// Counts of records that a queue needs in the journal, 16 bytes each. More: neighbours are counted together, and the
/// journal is held for a part of the queue that is at most four times one through this.
pub const RECORD_BUCKETS_MAX: usize = 1024;

/// Bytes that a record is counted with beyond its payload: its head in the journal, and what aligns it.
pub const RECORD_SLACK_BYTES: usize = 64;

/// Messages in one record of settlements or delivery counts, at most 24 bytes each: the record fits into the smallest
/// journal file.
pub const RECORD_ENTRIES_MAX: usize = 16_384;

/// Bytes of a regular expression in a right, as in RabbitMQ, or in a policy. More: the right or policy is refused.
pub const EXPRESSION_BYTES_MAX: usize = 1024;

/// Bytes of a compiled expression of a right or policy, and of the states that it remembers: a thousand users have
/// several each. More: the right or policy is refused.
pub const EXPRESSION_COMPILED_BYTES_MAX: usize = 256 << 10;

/// Parts of an expression of a right or policy within each other: reading it takes as many nested calls. More: the
/// right or policy is refused.
pub const EXPRESSION_NESTING_MAX: u32 = 32;

/// Patterns of subjects in one list of a user's rights, 100 to 200 bytes each. More: the right is refused.
pub const SUBJECT_GRANTS_MAX: usize = 10_000;

/// Messages of a connection whose answers are a right of their own and did not come yet, about 150 bytes each. More: the
/// one that came first can no longer be answered.
pub const OPEN_ANSWERS_MAX: usize = 4096;

/// Bytes of a selector; a list of a thousand ids has 40,000. More: the selector is refused.
pub const SELECTOR_BYTES_MAX: usize = 64 << 10;

/// Words of a selector: names, literals, operators and parentheses. Each becomes at most one step, so that one
/// evaluation takes a tenth of a millisecond at most. More: the selector is refused.
pub const SELECTOR_WORDS_MAX: usize = 8192;

/// Operators and parentheses of a selector that wait for each other. More: the selector is refused.
pub const SELECTOR_NESTING_MAX: usize = 64;

/// Values that one evaluation of a selector has at hand: two for each operator that waits for another, and the last
/// one. More: the selector is refused.
pub const SELECTOR_SLOTS_MAX: usize = 2 * SELECTOR_NESTING_MAX + 1;

/// Characters between two `%` of a pattern with `_` among them, which are tried at each place of a text. More: the
/// selector is refused.
pub const SELECTOR_WILD_PIECE_MAX: usize = 64;

/// Messages that came back to places which a consumer with a selector has passed, and which it has still to look at,
/// about 30 bytes each. More: it looks through the queue again.
pub const RETURNED_MAX: usize = 4096;

/// Messages that the consumers of a queue with selectors look at under one lock of it, about a millisecond. More: they go
/// on after others had the queue.
pub const SEEK_AT_ONCE: usize = 8192;

/// Pages that are read at once for a consumer that looks through a queue: the one that it needs, and those behind it.
pub const SEEK_PAGES: usize = 4;

/// Messages that one consumer refused and that wait for another, about 30 bytes each. More: the message is dead-lettered
/// as a rejected one.
pub const REFUSED_MAX: usize = 10_000;

/// Groups of messages that one queue tells apart, about 40 bytes each where a consumer has them. Of more, some go
/// together to one consumer.
pub const GROUPS_MAX: u16 = 4096;
