// Conversations of nats.js with a broker, one a scenario.
//
//   node driver.mjs SCENARIO URL NAME
//
// A scenario ends well by returning and badly by throwing; waiting is always for an event.

import assert from "node:assert/strict";
import core from "@nats-io/nats-core";
import services from "@nats-io/services";
import transport from "@nats-io/transport-node";
import { WebSocket } from "ws";

// The packages are CommonJS, of which Node.js finds not every name.
const { errors, headers } = core;
const { Svcm } = services;
const [scenario, url, name] = process.argv.slice(2);
const deadline = 100_000;
const open = url.startsWith("ws:") ? core.wsconnect : transport.connect;

// Not every Node.js has one of its own.
globalThis.WebSocket ??= WebSocket;

/** Opens a connection; what it is told asynchronously ends up in `status` alone. */
function connect(options = {}) {
  return open({ servers: url, timeout: deadline, reconnect: false, ...options });
}

/** Returns a subscription of which `take` gives the next messages, once the broker knows it. */
async function subscribe(connection, subject, options = {}) {
  const subscription = connection.subscribe(subject, options);
  const messages = subscription[Symbol.asyncIterator]();
  subscription.next = async () => {
    const { value, done } = await messages.next();
    assert(!done, "the subscription has ended");
    return value;
  };
  subscription.take = async (count) => {
    const bodies = [];
    for (let number = 0; number < count; number += 1) {
      bodies.push((await subscription.next()).string());
    }
    return bodies;
  };
  await connection.flush();
  return subscription;
}

/** Says how many messages wait that were sent before, which come before the answer here. */
async function pending(connection, subscription) {
  await connection.flush();
  return subscription.getPending();
}

/** Answers n by n + 1. */
async function respond(connection, subject) {
  connection.subscribe(subject, {
    callback: (_, request) => request.respond(String(Number(request.string()) + 1)),
  });
  await connection.flush();
}

/** A promise to be kept by whoever calls `keep`. */
function promise() {
  let keep;
  const kept = new Promise((resolve) => (keep = resolve));
  return { keep, kept };
}

/** Returns the next status of this kind. */
async function status(connection, kind) {
  for await (const event of connection.status()) {
    if (event.type === kind) {
      return event;
    }
  }
  throw new Error(`the connection closed before \`${kind}\``);
}

const numbers = (count) => Array.from({ length: count }, (_, number) => String(number));

async function callMany(connection, options = {}) {
  const calls = numbers(200).map((body) =>
    connection.request(name, body, { timeout: deadline, ...options }),
  );
  const replies = await Promise.all(calls);
  assert.deepEqual(replies.map((reply) => Number(reply.string()) - 1).map(String), numbers(200));
}

async function refused(login) {
  await assert.rejects(connect(login), (error) => error instanceof errors.AuthorizationError);
}

const scenarios = {
  async publish_and_subscribe() {
    const [publisher, subscriber] = [await connect(), await connect()];
    const subscription = await subscribe(subscriber, name);
    const text = new TextEncoder();
    const everyByte = Uint8Array.from({ length: 4096 }, (_, index) => index % 256);
    for (const body of [text.encode("größe 🦀"), new Uint8Array(), everyByte, text.encode("\r\nPING\r\n")]) {
      publisher.publish(name, body);
      const message = await subscription.next();
      assert.equal(message.subject, name);
      assert(!message.reply);
      assert.equal(message.headers, undefined);
      assert.deepEqual(new Uint8Array(message.data), body);
    }
  },

  async wildcards() {
    const [publisher, subscriber] = [await connect(), await connect()];
    const expected = {
      "*": ["a", "end"],
      ">": ["a", "a.b", "a.b.c", "b.b.c", "b.b.d.c", "end"],
      "a.*": ["a.b"],
      "*.b.c": ["a.b.c", "b.b.c"],
      "a.>": ["a.b", "a.b.c"],
      "*.*.>": ["a.b.c", "b.b.c", "b.b.d.c"],
      "a.*.c": ["a.b.c"],
      "b*.b": [],
    };
    const subscriptions = {};
    for (const pattern of Object.keys(expected)) {
      subscriptions[pattern] = await subscribe(subscriber, `${name}.${pattern}`);
    }
    for (const subject of expected[">"]) {
      publisher.publish(`${name}.${subject}`);
    }
    await publisher.flush();
    await subscriber.flush();
    for (const [pattern, subjects] of Object.entries(expected)) {
      const subscription = subscriptions[pattern];
      assert.equal(subscription.getReceived(), subjects.length, pattern);
      for (const subject of subjects) {
        assert.equal((await subscription.next()).subject, `${name}.${subject}`);
      }
    }
  },

  async queue_groups() {
    const [members, count] = [3, 600];
    const [publisher, observer] = [await connect(), await connect()];
    const plain = await subscribe(observer, name);
    const groups = [[], []];
    const connections = [];
    let left = 2 * count;
    const all = promise();
    for (const [group, shares] of groups.entries()) {
      for (let member = 0; member < members; member += 1) {
        const share = [];
        shares.push(share);
        const connection = await connect();
        const callback = (_, message) => {
          share.push(Number(message.string()));
          left -= 1;
          if (left === 0) all.keep();
        };
        connection.subscribe(name, { queue: `group ${group}`.replace(" ", "-"), callback });
        await connection.flush();
        connections.push(connection);
      }
    }
    numbers(count).forEach((body) => publisher.publish(name, body));
    await all.kept;
    assert.deepEqual(await plain.take(count), numbers(count));
    for (const connection of connections) {
      await connection.flush();
    }
    for (const shares of groups) {
      const taken = shares.flat().sort((one, other) => one - other);
      assert.deepEqual(taken.map(String), numbers(count));
      assert(shares.every((share) => share.length > count / members / 4));
    }
  },

  async request_and_reply() {
    await respond(await connect(), name);
    await callMany(await connect());
  },

  async old_style_requests() {
    await respond(await connect(), name);
    await callMany(await connect(), { noMux: true });
  },

  async no_responders() {
    for (const noMux of [false, true]) {
      const [connection, subject] = [await connect(), `${name}.${noMux}`];
      const options = { timeout: deadline, noMux };
      await assert.rejects(connection.request(subject, "", options), (error) =>
        [error, error.cause].some((each) => each instanceof errors.NoRespondersError),
      );
      await respond(connection, subject);
      assert.equal((await connection.request(subject, "1", options)).string(), "2");
    }
  },

  async many_replies() {
    const [requester, responders] = [await connect(), 5];
    for (const body of numbers(responders)) {
      const connection = await connect();
      connection.subscribe(name, { callback: (_, request) => request.respond(body) });
      await connection.flush();
    }
    for (const noMux of [false, true]) {
      const strategy = "count";
      const options = { strategy, maxMessages: responders, maxWait: deadline, noMux };
      const bodies = [];
      for await (const reply of await requester.requestMany(name, "who is there?", options)) {
        bodies.push(reply.string());
      }
      assert.deepEqual(bodies.sort(), numbers(responders));
    }
  },

  async service() {
    const [instances, subject] = [3, `${name}.double`];
    for (let number = 0; number < instances; number += 1) {
      const connection = await connect();
      const service = await new Svcm(connection).add({ name, version: "1.2.3" });
      service.addEndpoint("double", {
        subject,
        handler: (error, request) => {
          assert.equal(error, null);
          const value = Number(request.string());
          if (Number.isNaN(value)) {
            request.respondError(400, "not a number");
          } else {
            request.respond(String(2 * value));
          }
        },
      });
      await connection.flush();
    }
    const client = await connect();
    for (const body of numbers(30)) {
      const reply = await client.request(subject, body, { timeout: deadline });
      assert.equal(Number(reply.string()), 2 * Number(body));
    }
    const wrong = await client.request(subject, "x", { timeout: deadline });
    assert.equal(wrong.headers.get("Nats-Service-Error-Code"), "400");
    assert.equal(wrong.headers.get("Nats-Service-Error"), "not a number");
    const options = { strategy: "count", maxMessages: instances, maxWait: deadline };
    const monitor = new Svcm(client).client(options);
    let requests = 0;
    for (const verb of ["ping", "info", "stats"]) {
      const ids = new Set();
      for await (const answer of await monitor[verb](name)) {
        assert.equal(answer.name, name);
        assert.equal(answer.version, "1.2.3");
        ids.add(answer.id);
        for (const endpoint of answer.endpoints ?? []) {
          requests += endpoint.num_requests ?? 0;
        }
      }
      assert.equal(ids.size, instances);
    }
    assert.equal(requests, 31);
  },

  async headers() {
    const [publisher, subscriber] = [await connect(), await connect()];
    const subscription = await subscribe(subscriber, name);
    const expected = {
      Several: ["one", "two", "one"],
      "lower-case": ["kept"],
      "LOWER-case": ["another"],
      "Odd!#$%&'*+.^_": ['a:b::c; d="e" \\ \t f'],
      Text: ["größe 🦀"],
      Long: ["x".repeat(8192)],
    };
    const sent = headers();
    for (const [key, values] of Object.entries(expected)) {
      values.forEach((value) => sent.append(key, value));
    }
    for (const body of ["body", ""]) {
      publisher.publish(name, body, { headers: sent });
      const message = await subscription.next();
      assert.deepEqual(Object.fromEntries(message.headers), expected);
      assert.equal(message.string(), body);
    }
  },

  async unsubscribe() {
    const [publisher, subscriber] = [await connect(), await connect()];
    const left = await subscribe(subscriber, name);
    const stays = await subscribe(subscriber, name);
    left.unsubscribe();
    await subscriber.flush();
    publisher.publish(name, "after");
    assert.deepEqual(await stays.take(1), ["after"]);
    assert.equal(left.getReceived(), 0);
    assert.equal(subscriber.stats().inMsgs, 1);
  },

  async unsubscribe_after_a_number() {
    const connection = await connect();
    const early = await subscribe(connection, `${name}.early`, { max: 5 });
    const late = await subscribe(connection, `${name}.late`);
    const over = await subscribe(connection, `${name}.over`);
    for (const [subscription, limit] of [[late, 5], [over, 2]]) {
      for (const body of ["1", "2", "3"]) connection.publish(subscription.getSubject(), body);
      assert.deepEqual(await subscription.take(3), ["1", "2", "3"]);
      subscription.unsubscribe(limit);
    }
    for (const way of ["early", "late", "over"]) {
      for (let number = 4; number <= 10; number += 1) {
        connection.publish(`${name}.${way}`, String(number));
      }
    }
    await connection.flush();
    assert.deepEqual(await early.take(5), ["4", "5", "6", "7", "8"]);
    assert.deepEqual(await late.take(2), ["4", "5"]);
    // The client drops what is over the number; what counts is what the broker sent.
    assert.equal(connection.stats().inMsgs, 3 + 3 + 5 + 2);
  },

  async drain_a_subscription() {
    const [publisher, subscriber, count] = [await connect(), await connect(), 500];
    const drained = await subscribe(subscriber, name);
    const other = await subscribe(subscriber, name);
    numbers(count).forEach((body) => publisher.publish(name, body));
    await publisher.flush();
    const done = drained.drain();
    await subscriber.flush();
    publisher.publish(name, "too late");
    assert.deepEqual(await drained.take(count), numbers(count));
    await done;
    assert.deepEqual(await other.take(count + 1), [...numbers(count), "too late"]);
    assert.equal(drained.getReceived(), count);
  },

  async drain_a_connection() {
    const [observer, publisher, worker] = [await connect(), await connect(), await connect()];
    const count = 500;
    const answers = await subscribe(observer, `${name}.out`);
    const work = await subscribe(worker, `${name}.in`);
    numbers(count).forEach((body) => publisher.publish(`${name}.in`, body));
    await publisher.flush();
    await worker.flush();
    const done = worker.drain();
    for await (const message of work) {
      worker.publish(`${name}.out`, message.data);
    }
    assert.deepEqual(await answers.take(count), numbers(count));
    await done;
    assert(worker.isClosed());
    assert.equal(await worker.closed(), undefined);
  },

  async flush_and_round_trip() {
    const connection = await connect();
    await connection.flush();
    assert((await connection.rtt()) >= 0);
  },

  async max_payload() {
    const connection = await connect();
    const subscription = await subscribe(connection, name);
    const size = connection.info.max_payload;
    assert.throws(() => connection.publish(name, new Uint8Array(size + 1)), /max_payload/);
    connection.publish(name, new Uint8Array(size));
    assert.equal((await subscription.next()).data.length, size);
  },

  async no_echo() {
    const [silent, other] = [await connect({ noEcho: true }), await connect()];
    const [own, others] = [await subscribe(silent, name), await subscribe(other, name)];
    silent.publish(name, "from the one");
    await silent.flush();
    other.publish(name, "from the other");
    assert.deepEqual(await others.take(2), ["from the one", "from the other"]);
    assert.deepEqual(await own.take(1), ["from the other"]);
    assert.equal(await pending(silent, own), 0);
  },

  async verbose_and_pedantic() {
    const connection = await connect({ verbose: true, pedantic: true });
    const subscription = await subscribe(connection, name);
    numbers(3).forEach((body) => connection.publish(name, body));
    assert.deepEqual(await subscription.take(3), numbers(3));
    subscription.unsubscribe();
    await respond(connection, `${name}.service`);
    assert.equal((await connection.request(`${name}.service`, "1")).string(), "2");
  },

  async invalid_subjects() {
    const connection = await connect();
    for (const subject of ["", "a b", "a\r\nb"]) {
      assert.throws(() => connection.publish(subject), errors.InvalidSubjectError);
      assert.throws(() => connection.subscribe(subject), errors.InvalidSubjectError);
    }
    // What this client does not see is for the broker to refuse; the connection lives on.
    for (const subject of ["a..b", ".a", "a.", "a.>.b"]) {
      const told = status(connection, "error");
      connection.subscribe(subject);
      assert.match((await told).error.message, /invalid subject/i);
    }
    const subscription = await subscribe(connection, name);
    connection.publish(name, "still here");
    assert.deepEqual(await subscription.take(1), ["still here"]);
  },

  async large_messages() {
    const [publisher, subscriber] = [await connect(), await connect()];
    const subscription = await subscribe(subscriber, name);
    assert(publisher.info.max_payload >= 1 << 20);
    const bodies = numbers(5).map((number) => new Uint8Array(1 << 20).fill(Number(number)));
    bodies.forEach((body) => publisher.publish(name, body));
    for (const body of bodies) {
      assert.equal(Buffer.compare((await subscription.next()).data, body), 0);
    }
  },

  async ten_thousand_in_order() {
    const [publisher, subscriber] = [await connect(), await connect()];
    const subscription = await subscribe(subscriber, name);
    numbers(10000).forEach((body) => publisher.publish(name, body));
    assert.deepEqual(await subscription.take(10000), numbers(10000));
  },

  async what_info_says() {
    const connection = await connect({ name: 'a name of "odd" characters: größe' });
    const { info } = connection;
    for (const key of ["server_id", "server_name", "version"]) {
      assert.equal(typeof info[key], "string", key);
      assert.notEqual(info[key], "", key);
    }
    assert.equal(info.headers, true);
    assert(!info.tls_required);
    assert.equal(info.client_ip, "127.0.0.1");
    assert(info.max_payload > 0);
    assert.equal(info.proto, 1);
    assert.notEqual(info.client_id, (await connect()).info.client_id);
  },

  async many_connections() {
    const connections = await Promise.all(
      numbers(20).map((number) => connect({ name: `connection ${number}` })),
    );
    const subscriptions = [];
    for (const connection of connections) {
      subscriptions.push(await subscribe(connection, name));
    }
    for (const connection of connections) {
      connection.publish(name, "hello");
      await connection.flush();
    }
    for (const [index, subscription] of subscriptions.entries()) {
      assert.deepEqual(await subscription.take(20), Array(20).fill("hello"));
      assert.equal(await pending(connections[index], subscription), 0);
    }
  },

  async right_password() {
    const connection = await connect({ user: "guest", pass: "guest" });
    await connection.flush();
  },

  async wrong_password() {
    await refused({ user: "guest", pass: "wrong" });
    await refused({ user: "nobody", pass: "guest" });
    await refused({ user: "guest", pass: "" });
  },

  async right_token() {
    const connection = await connect({ token: "secret" });
    await connection.flush();
  },

  async wrong_token() {
    await refused({ token: "wrong" });
  },

  async reconnect() {
    const eager = { reconnect: true, maxReconnectAttempts: -1, reconnectTimeWait: 20, reconnectJitter: 0 };
    const [subscriber, publisher] = [await connect(eager), await connect(eager)];
    const plain = await subscribe(subscriber, name);
    const group = await subscribe(subscriber, name, { queue: "group" });
    const limited = await subscribe(subscriber, name, { max: 3 });
    const subject = `${name}.service`;
    subscriber.subscribe(subject, { callback: (_, request) => request.respond() });
    await subscriber.flush();
    publisher.publish(name, "before");
    for (const subscription of [plain, group, limited]) {
      assert.deepEqual(await subscription.take(1), ["before"]);
    }
    await publisher.request(subject, "", { timeout: deadline });
    const back = [subscriber, publisher].map((each) => status(each, "reconnect"));
    console.log("ready");
    await Promise.all(back);
    await subscriber.flush();
    numbers(3).forEach((body) => publisher.publish(name, body));
    for (const subscription of [plain, group]) {
      assert.deepEqual(await subscription.take(3), numbers(3));
    }
    assert.deepEqual(await limited.take(2), numbers(2));
    await publisher.request(subject, "", { timeout: deadline });
  },

  async lame_duck() {
    const connection = await connect({ reconnect: true });
    const told = status(connection, "ldm");
    console.log("ready");
    await told;
  },
};

const late = setTimeout(() => {
  console.error(`\`${scenario}\` waits for an event that does not come`);
  process.exit(1);
}, deadline);
await scenarios[scenario]();
clearTimeout(late);
process.exit(0);
