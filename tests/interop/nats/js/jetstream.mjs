// Streams, buckets and object stores of nats.js with a broker, one scenario a time.
//
//   node jetstream.mjs SCENARIO URL NAME
//
// A scenario ends well by returning and badly by throwing; waiting is always for an event.

import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import core from "@nats-io/nats-core";
import jetstream from "@nats-io/jetstream";
import kv from "@nats-io/kv";
import obj from "@nats-io/obj";
import transport from "@nats-io/transport-node";

// The packages are CommonJS, of which Node.js finds not every name.
const { createInbox, headers, nanos } = core;
const { AckPolicy, DiscardPolicy, jetstreamManager } = jetstream;
const [scenario, url, name] = process.argv.slice(2);
const deadline = 100_000;
const codes = {
  consumerNotFound: 10014,
  wrongLastMessageId: 10070,
  wrongLastSequence: 10071,
  messageNotFound: 10037,
  streamNotFound: 10059,
  nameInUse: 10058,
};

const connection = await transport.connect({ servers: url, timeout: deadline, reconnect: false });
const manager = await jetstreamManager(connection, { timeout: deadline });
const js = manager.jetstream();

/** Creates the stream of all subjects below the name. */
function stream(options = {}) {
  return manager.streams.add({ name, subjects: [`${name}.>`], ...options });
}

/** Creates the stream with messages "0" to count - 1 in one subject. */
async function filled(count, options = {}) {
  await stream(options);
  await Promise.all(numbers(count).map((body) => js.publish(`${name}.a`, body)));
}

/** Gives "0" to count - 1. */
function numbers(count) {
  return Array.from({ length: count }, (_, number) => String(number));
}

/** Creates a durable pull consumer with explicit acknowledgements. */
async function consumer(options = {}) {
  await manager.consumers.add(name, { durable_name: "reader", ack_policy: AckPolicy.Explicit, ...options });
  return js.consumers.get(name, "reader");
}

/** Gives the next `count` elements of an iterator. */
async function take(iterator, count) {
  const taken = [];
  const elements = iterator[Symbol.asyncIterator]();
  while (taken.length < count) {
    const { value, done } = await elements.next();
    assert(!done, "the iterator has ended");
    taken.push(value);
  }
  return taken;
}

/** Gives all elements of an iterator that ends. */
async function all(iterator) {
  const found = [];
  for await (const element of iterator) {
    found.push(element);
  }
  return found;
}

/** Gives the bodies of a fetch, and acknowledges each message. */
async function fetched(reader, options) {
  return (await all(await reader.fetch(options))).map((message) => {
    message.ack();
    return message.string();
  });
}

/** Shows that a call is refused with JetStream's error code. */
async function refused(code, call) {
  await assert.rejects(call, (error) => {
    assert.equal(error.code, code, String(error));
    return true;
  });
}

/** Gives the digest of an object as the store writes it. */
function digest(data) {
  const text = createHash("sha256").update(data).digest("base64");
  return `SHA-256=${text.replaceAll("+", "-").replaceAll("/", "_")}`;
}

function bucket(options = {}) {
  return new kv.Kvm(js).create(name, { history: 5, ...options });
}

const scenarios = {
  async create_and_delete() {
    const created = await stream({ max_msgs: 100, description: "of a test", metadata: { of: "tests" } });
    assert.deepEqual(created.config.subjects, [`${name}.>`]);
    assert.equal(created.config.metadata.of, "tests");
    await refused(codes.nameInUse, stream({ max_msgs: 7 }));
    await Promise.all(numbers(10).map((body) => js.publish(`${name}.a`, body)));
    let info = await manager.streams.info(name, { subjects_filter: ">" });
    assert.deepEqual(info.state.subjects, { [`${name}.a`]: 10 });
    const updated = await manager.streams.update(name, { max_msgs: 5 });
    assert.equal(updated.config.max_msgs, 5);
    info = await manager.streams.info(name);
    assert.deepEqual([info.state.messages, info.state.first_seq, info.state.last_seq], [5, 6, 10]);
    assert.equal(await manager.streams.deleteMessage(name, 7), true);
    info = await manager.streams.info(name, { deleted_details: true });
    assert.deepEqual(info.state.deleted, [7]);
    assert.equal(await manager.streams.getMessage(name, { seq: 7 }), null);
    assert.equal((await manager.streams.getMessage(name, { seq: 8 })).string(), "7");
    assert.equal((await manager.streams.getMessage(name, { last_by_subj: `${name}.a` })).string(), "9");
    assert.equal((await manager.streams.purge(name, { keep: 2 })).purged, 2);
    assert.equal((await manager.streams.purge(name, { filter: `${name}.x` })).purged, 0);
    assert.equal((await manager.streams.purge(name, { seq: 10 })).purged, 1);
    assert.equal((await manager.streams.info(name)).state.messages, 1);
    assert((await all(manager.streams.names())).includes(name));
    assert((await all(manager.streams.list())).some((each) => each.config.name === name));
    assert.equal(await manager.streams.find(`${name}.x`), name);
    assert.equal(await manager.streams.delete(name), true);
    await refused(codes.streamNotFound, manager.streams.info(name));
  },

  async publish() {
    await stream({ allow_atomic: true });
    const first = await js.publish(`${name}.a`, "1", { msgID: "id" });
    assert.deepEqual([first.stream, first.seq, first.duplicate ?? false], [name, 1, false]);
    const again = await js.publish(`${name}.a`, "1", { msgID: "id" });
    assert.deepEqual([again.seq, again.duplicate], [1, true]);
    const expecting = (expect) => js.publish(`${name}.a`, "2", { expect });
    await refused(codes.wrongLastSequence, expecting({ lastSequence: 5 }));
    await refused(codes.wrongLastSequence, expecting({ lastSubjectSequence: 5 }));
    await refused(codes.wrongLastMessageId, expecting({ lastMsgID: "other" }));
    await refused(10060, expecting({ streamName: "other" }));
    assert.equal((await expecting({ lastSequence: 1, lastSubjectSequence: 1, lastMsgID: "id" })).seq, 2);
    const several = headers();
    several.append("Several", "one");
    several.append("Several", "two");
    assert.equal((await js.publish(`${name}.b`, "3", { headers: several })).seq, 3);
    const stored = await manager.streams.getMessage(name, { seq: 3 });
    assert.deepEqual(stored.header.values("Several"), ["one", "two"]);
    const batch = await js.startBatch(`${name}.a`, "4");
    batch.add(`${name}.a`, "5");
    const ack = await batch.commit(`${name}.a`, "6");
    assert.deepEqual([ack.count, ack.seq], [3, 6]);
    await manager.streams.delete(name);
    await assert.rejects(js.publish(`${name}.a`, "x", { retries: 1 }));
  },

  async limits() {
    await stream({ max_msgs: 2, discard: DiscardPolicy.New, max_msg_size: 100 });
    await js.publish(`${name}.a`, "1");
    await js.publish(`${name}.a`, "2");
    await refused(10077, js.publish(`${name}.a`, "3"));
    await refused(10054, js.publish(`${name}.a`, "x".repeat(200)));
  },

  async direct_get() {
    await filled(5, { allow_direct: true });
    await js.publish(`${name}.b`, "5");
    assert.equal((await manager.direct.getMessage(name, { seq: 2 })).string(), "1");
    assert.equal((await manager.direct.getMessage(name, { last_by_subj: `${name}.b` })).seq, 6);
    assert.equal((await manager.direct.getMessage(name, { seq: 2, next_by_subj: `${name}.b` })).seq, 6);
    assert.equal(await manager.direct.getMessage(name, { seq: 99 }), null);
    const some = await all(await manager.direct.getBatch(name, { seq: 2, batch: 3 }));
    assert.deepEqual(some.map((message) => message.string()), ["1", "2", "3"]);
    const last = await all(await manager.direct.getLastMessagesFor(name, { multi_last: [`${name}.>`] }));
    assert.deepEqual(last.map((message) => message.seq), [5, 6]);
  },

  async consume() {
    await filled(1000);
    const reader = await consumer();
    const messages = await reader.consume({ max_messages: 100 });
    const bodies = (await take(messages, 1000)).map((message) => {
      message.ack();
      return message.string();
    });
    assert.deepEqual(bodies, numbers(1000));
    messages.stop();
    await connection.flush();
    const info = await reader.info();
    assert.deepEqual([info.num_pending, info.num_ack_pending], [0, 0]);
  },

  async fetch() {
    await filled(6);
    const reader = await consumer();
    assert.deepEqual(await fetched(reader, { max_messages: 3 }), ["0", "1", "2"]);
    assert.deepEqual(await fetched(reader, { max_messages: 5, expires: 1000 }), ["3", "4", "5"]);
    assert.equal(await reader.next({ expires: 1000 }), null);
    await js.publish(`${name}.a`, "6");
    assert.deepEqual(await fetched(reader, { max_bytes: 4000, expires: 1000 }), ["6"]);
  },

  async acknowledgements() {
    await filled(4);
    const reader = await consumer({ ack_wait: nanos(deadline) });
    const messages = await all(await reader.fetch({ max_messages: 4 }));
    assert.equal(await messages[0].ackAck(), true);
    messages[1].nak();
    messages[2].term("no use");
    const again = await reader.next();
    assert.deepEqual([again.string(), again.redelivered, again.info.deliveryCount], ["1", true, 2]);
    again.working();
    assert.equal(await again.ackAck(), true);
    messages[3].nak(50);
    const delayed = await reader.next();
    assert.equal(delayed.string(), "3");
    assert.equal(await delayed.ackAck(), true);
    const info = await reader.info();
    assert.deepEqual([info.num_pending, info.num_ack_pending, info.ack_floor.stream_seq], [0, 0, 4]);
  },

  async working_extends_the_wait() {
    await filled(1);
    const reader = await consumer({ ack_wait: nanos(700) });
    const message = await reader.next();
    const other = reader.next({ expires: 2000 });
    const extending = setInterval(() => message.working(), 200);
    assert.equal(await other, null);
    clearInterval(extending);
    assert.equal((await reader.next({ expires: 5000 })).info.deliveryCount, 2);
  },

  async next_and_ack_in_one() {
    await filled(2);
    const reader = await consumer();
    const first = await reader.next();
    const inbox = createInbox();
    const replies = connection.subscribe(inbox, { max: 1 });
    first.next(inbox, { batch: 1, expires: nanos(deadline) });
    assert.equal((await take(replies, 1))[0].string(), "1");
    assert.equal((await reader.info()).ack_floor.consumer_seq, 1);
  },

  async ordered_consumer() {
    await filled(500);
    const ordered = await js.consumers.get(name);
    const messages = await ordered.consume();
    const bodies = (await take(messages, 500)).map((message) => message.string());
    assert.deepEqual(bodies, numbers(500));
    messages.stop();
    const filtered = await js.consumers.get(name, { filter_subjects: `${name}.a`, opt_start_seq: 499, deliver_policy: "by_start_sequence" });
    assert.deepEqual((await all(await filtered.fetch({ max_messages: 2 }))).map((message) => message.seq), [499, 500]);
  },

  async push_consumer() {
    await filled(100);
    await manager.consumers.add(name, {
      durable_name: "pushed",
      ack_policy: AckPolicy.Explicit,
      deliver_subject: createInbox(),
      idle_heartbeat: nanos(1000),
      flow_control: true,
    });
    const pushed = await js.consumers.getPushConsumer(name, "pushed");
    const messages = await pushed.consume();
    for (const message of await take(messages, 100)) {
      assert.equal(await message.ackAck(), true);
    }
    const notified = messages.status()[Symbol.asyncIterator]();
    for (;;) {
      const { value } = await notified.next();
      if (value.type === "heartbeat") {
        assert.equal(value.lastStreamSequence, 100);
        break;
      }
    }
    messages.stop();
    assert.equal((await pushed.info()).num_ack_pending, 0);
  },

  async ordered_push_consumer() {
    await filled(200);
    const pushed = await js.consumers.getPushConsumer(name);
    const messages = await pushed.consume();
    const sequences = (await take(messages, 200)).map((message) => message.seq);
    assert.deepEqual(sequences, numbers(200).map((number) => Number(number) + 1));
    messages.stop();
  },

  async consumers_of_a_stream() {
    await filled(3);
    await consumer({ metadata: { of: "tests" } });
    const updated = await manager.consumers.update(name, "reader", { description: "updated", max_ack_pending: 7 });
    assert.deepEqual([updated.config.description, updated.config.max_ack_pending], ["updated", 7]);
    assert.equal((await manager.consumers.info(name, "reader")).num_pending, 3);
    assert.deepEqual((await all(manager.consumers.list(name))).map((info) => info.name), ["reader"]);
    const until = new Date(Date.now() + 3_600_000);
    assert.equal((await manager.consumers.pause(name, "reader", until)).paused, true);
    assert.equal((await manager.consumers.info(name, "reader")).paused, true);
    assert.equal((await manager.consumers.resume(name, "reader")).paused, false);
    assert.equal(await manager.consumers.delete(name, "reader"), true);
    await refused(codes.consumerNotFound, manager.consumers.info(name, "reader"));
  },

  async consumer_reset() {
    await filled(3);
    const reader = await consumer();
    assert.equal(await (await reader.next()).ackAck(), true);
    assert.equal((await reader.next()).seq, 2);
    await manager.consumers.reset(name, "reader");
    assert.equal((await reader.next()).seq, 2);
  },

  async consumer_deleted_while_consumed() {
    await filled(0);
    const reader = await consumer();
    const messages = await reader.consume({ abort_on_missing_resource: true });
    const ended = assert.rejects(take(messages, 1));
    await connection.flush();
    await manager.consumers.delete(name, "reader");
    await ended;
  },

  async message_ttl() {
    await stream({ allow_msg_ttl: true });
    await js.publish(`${name}.a`, "1", { ttl: "1s" });
    await js.publish(`${name}.a`, "2");
    const reader = await consumer({ filter_subject: `${name}.gone` });
    while ((await manager.streams.info(name)).state.messages !== 1) {
      await reader.next({ expires: 1000 });
    }
    assert.equal((await manager.streams.info(name)).state.first_seq, 2);
  },

  async key_value() {
    const store = await bucket();
    assert.equal(await store.create("key", "1"), 1);
    await refused(codes.wrongLastSequence, store.create("key", "x"));
    assert.equal(await store.update("key", "2", 1), 2);
    await refused(codes.wrongLastSequence, store.update("key", "x", 1));
    const entry = await store.get("key");
    assert.deepEqual([entry.string(), entry.revision, entry.operation], ["2", 2, "PUT"]);
    assert.equal((await store.get("key", { revision: 1 })).string(), "1");
    assert.equal(await store.get("absent"), null);
    await store.put("other.x", "3");
    assert.deepEqual((await all(await store.keys())).sort(), ["key", "other.x"]);
    assert.deepEqual(await all(await store.keys("other.*")), ["other.x"]);
    const history = await all(await store.history({ key: "key" }));
    assert.deepEqual(history.map((each) => each.string()), ["1", "2"]);
    await refused(codes.wrongLastSequence, store.delete("key", { previousSeq: 1 }));
    await store.delete("key", { previousSeq: 2 });
    assert.equal((await store.get("key")).operation, "DEL");
    assert.equal(await store.create("key", "4"), 5);
    await store.purge("key");
    assert.deepEqual((await all(await store.history({ key: "key" }))).map((each) => each.operation), ["PURGE"]);
    const status = await store.status();
    assert.deepEqual([status.bucket, status.history, status.values], [name, 5, 2]);
    const names = (await all(new kv.Kvm(js).list())).map((each) => each.bucket);
    assert(names.includes(name));
    assert.equal(await store.destroy(), true);
    await refused(codes.streamNotFound, new kv.Kvm(js).open(name).then((opened) => opened.status()));
  },

  async key_value_history_is_limited() {
    const store = await bucket({ history: 3 });
    for (const body of numbers(10)) {
      await store.put("key", body);
    }
    const history = await all(await store.history({ key: "key" }));
    assert.deepEqual(history.map((each) => each.string()), ["7", "8", "9"]);
  },

  async key_value_watch() {
    const store = await bucket();
    await store.put("a.x", "1");
    const changes = await store.watch({ key: "a.*" });
    const watched = changes[Symbol.asyncIterator]();
    // Each change is seen before the next one, which may remove it from the bucket.
    const seen = async (...expected) => {
      const { value } = await watched.next();
      assert.deepEqual([value.key, value.operation, value.string()], expected);
    };
    await seen("a.x", "PUT", "1");
    await store.put("b.x", "2");
    await store.put("a.y", "3");
    await seen("a.y", "PUT", "3");
    await store.delete("a.x");
    await seen("a.x", "DEL", "");
    await store.purge("a.y");
    await seen("a.y", "PURGE", "");
    const updates = await store.watch({ key: "b.>", include: kv.KvWatchInclude.UpdatesOnly });
    const revision = await store.put("b.z", "4");
    assert.deepEqual((await take(updates, 1)).map((each) => [each.key, each.revision]), [["b.z", revision]]);
    const resumed = await store.watch({ resumeFromRevision: revision });
    assert.deepEqual((await take(resumed, 1)).map((each) => each.key), ["b.z"]);
  },

  async key_value_markers() {
    const store = await bucket({ markerTTL: 2000 });
    assert.equal((await store.status()).markerTTL, 2000);
    const changes = await store.watch();
    await store.create("short", "1", "1s");
    await store.put("purged", "2");
    await store.purge("purged", { ttl: "1s" });
    const seen = (await take(changes, 4)).map((each) => [each.key, each.operation]);
    assert.deepEqual(seen, [["short", "PUT"], ["purged", "PUT"], ["purged", "PURGE"], ["short", "PURGE"]]);
    while ((await store.status()).values > 0) {
      await connection.flush();
    }
    assert.deepEqual(await all(await store.keys()), []);
  },

  async object_store() {
    const store = await new obj.Objm(js).create(name, { description: "of a test" });
    const data = new Uint8Array(randomBytes(3 << 20));
    const meta = { name: "large", description: "random", metadata: { of: "tests" }, options: { max_chunk_size: 65_536 } };
    const info = await store.putBlob(meta, data);
    assert.deepEqual([info.size, info.chunks, info.digest], [3 << 20, 48, digest(data)]);
    assert.deepEqual(await store.getBlob("large"), data);
    const read = await store.get("large");
    const parts = await all(read.data);
    assert(!(await read.error));
    assert.equal(digest(Buffer.concat(parts)), info.digest);
    const found = await store.info("large");
    assert.deepEqual([found.description, found.metadata, found.digest], ["random", { of: "tests" }, info.digest]);
    await store.putBlob({ name: "small" }, new TextEncoder().encode("a newt"));
    await store.putBlob({ name: "empty" }, new Uint8Array());
    assert.equal((await store.getBlob("empty")).length, 0);
    assert.deepEqual((await store.list()).map((each) => each.name).sort(), ["empty", "large", "small"]);
    await store.update("small", { name: "renamed", description: "another" });
    assert.equal(await store.info("small"), null);
    assert.equal(new TextDecoder().decode(await store.getBlob("renamed")), "a newt");
    const replaced = await store.putBlob({ name: "large" }, new TextEncoder().encode("less"));
    assert.deepEqual([replaced.size, replaced.chunks], [4, 1]);
    assert.equal((await store.delete("large")).success, true);
    assert.equal(await store.getBlob("large"), null);
    assert.equal((await store.info("large")).deleted, true);
    assert.deepEqual((await store.list()).map((each) => each.name).sort(), ["empty", "renamed"]);
    const status = await store.status();
    assert.deepEqual([status.bucket, status.description, status.sealed], [name, "of a test", false]);
    assert.equal((await store.seal()).sealed, true);
    await assert.rejects(store.putBlob({ name: "late" }, new Uint8Array(1)));
    assert.equal(await store.destroy(), true);
    await assert.rejects(new obj.Objm(js).open(name));
  },

  async object_links() {
    const objects = new obj.Objm(js);
    const store = await objects.create(name);
    const other = await objects.create(`${name}_other`);
    const target = await other.putBlob({ name: "target" }, new TextEncoder().encode("a newt"));
    const link = await store.link("link", target);
    assert.deepEqual(link.options.link, { bucket: `${name}_other`, name: "target" });
    assert.equal(new TextDecoder().decode(await store.getBlob("link")), "a newt");
    await assert.rejects(store.link("of a link", await store.info("link")));
    const whole = await store.linkStore("whole", other);
    assert.deepEqual(whole.options.link, { bucket: `${name}_other` });
    await assert.rejects(store.getBlob("whole"));
    await other.delete("target");
    assert.equal(await store.getBlob("link"), null);
    assert((await all(objects.list())).some((each) => each.bucket === name));
  },

  async object_watch() {
    const store = await new obj.Objm(js).create(name);
    await store.putBlob({ name: "one" }, new Uint8Array(1));
    const changes = await store.watch({ includeHistory: true });
    const watched = changes[Symbol.asyncIterator]();
    // Each change is seen before the next one, which may replace it.
    const seen = async (...expected) => {
      const { value } = await watched.next();
      assert.deepEqual([value.name, value.size, value.deleted ?? false], expected);
    };
    await seen("one", 1, false);
    await store.putBlob({ name: "two" }, new Uint8Array(2));
    await seen("two", 2, false);
    await store.delete("one");
    await seen("one", 0, true);
  },
};

assert(scenarios[scenario] !== undefined, `unknown scenario \`${scenario}\``);
await scenarios[scenario]();
await connection.close();
process.exit(0);
