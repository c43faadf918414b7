// Conversations of rhea with a broker, one a scenario.
//
//     node driver.mjs SCENARIO URL NAME
//
// A scenario ends well by returning and badly by throwing; waiting is always for an event.

import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { setImmediate } from "node:timers/promises";
import rhea from "rhea";

const DEADLINE_MS = 100_000;

const [scenario, address, name] = process.argv.slice(2);
const url = new URL(address);

function connect(options = {}) {
  return rhea.create_container({ id: name }).connect({
    host: url.hostname,
    port: url.port,
    username: url.username,
    password: url.password,
    reconnect: false,
    ...options,
  });
}

// A link that sends, and tells what became of each message.
class Sender {
  constructor(connection, target, options = {}) {
    this.link = connection.open_sender({ target, ...options });
  }

  // Gives the delivery, once the broker has settled it. Before the broker has told its limit, rhea keeps to none.
  async outcome(message) {
    if (!this.link.is_remote_open()) {
      await once(this.link, "sender_open");
    }
    const delivery = this.link.send(typeof message === "object" ? message : { body: message });
    while (!delivery.remote_settled) {
      await once(this.link, "settled");
    }
    return delivery;
  }

  async send(message) {
    const delivery = await this.outcome(message);
    assert.equal(delivery.remote_state.constructor.composite_type, "accepted");
  }
}

// A link that receives; it settles, and asks for messages, only when it is told to.
class Receiver {
  #came = [];
  #waiting = [];

  constructor(connection, source, options = {}) {
    this.link = connection.open_receiver({ source, autoaccept: false, credit_window: 0, ...options });
    this.link.on("message", (context) => {
      if (this.#waiting.length) {
        this.#waiting.shift()(context);
      } else {
        this.#came.push(context);
      }
    });
  }

  opened = async () => {
    await once(this.link, "receiver_open");
    return this;
  };

  // Asks for a message if none is here, and gives it with its delivery.
  next(credit = 1) {
    if (this.#came.length) {
      return Promise.resolve(this.#came.shift());
    }
    this.link.add_credit(credit);
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  body = async () => {
    const { message, delivery } = await this.next();
    delivery.accept();
    return message.body;
  };

  // Asks the broker for all that it has.
  rest = async () => {
    this.link.add_credit(100);
    this.link.drain_credit();
    await once(this.link, "receiver_drained");
    this.link.drain = false;
    const bodies = [];
    for (const { message, delivery } of this.#came.splice(0)) {
      bodies.push(message.body);
      delivery.accept();
    }
    return bodies;
  };

  // Tells whether nothing comes for so long.
  isSilent(ms) {
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(this.#came.length === 0), ms);
      this.link.once("message", () => clearTimeout(timer) ?? resolve(false));
    });
  }

  close = async () => {
    this.link.close();
    await once(this.link, "receiver_close");
  };

  detach = async () => {
    this.link.detach();
    await once(this.link, "receiver_close");
  };
}

function pattern(size) {
  return Buffer.from(Array.from({ length: size }, (_, index) => index % 251));
}

const SCENARIOS = {
  async settlement() {
    const connection = connect();
    const settled = new Sender(connection, name, { snd_settle_mode: 1 });
    const unsettled = new Sender(connection, name);
    await once(settled.link, "sendable");
    assert.ok(settled.link.send({ body: "settled" }).settled);
    await unsettled.send("unsettled");
    const receiver = new Receiver(connection, name);
    for (const body of ["settled", "unsettled"]) {
      const { message, delivery } = await receiver.next();
      assert.equal(message.body, body);
      assert.equal(delivery.remote_settled, false);
      delivery.accept();
    }
    await receiver.close();
    await unsettled.send("for one who does not answer");
    const forgetful = new Receiver(connection, name, { snd_settle_mode: 1 });
    assert.equal((await forgetful.next()).delivery.remote_settled, true);
    await forgetful.close();
    assert.deepEqual(await new Receiver(connection, name).rest(), []);
  },

  async outcomes() {
    const connection = connect();
    const sender = new Sender(connection, name);
    for (const body of ["released", "modified", "rejected"]) {
      await sender.send(body);
    }
    const receiver = new Receiver(connection, name);
    const deliveries = [(await receiver.next(3)).delivery];
    while (deliveries.length < 3) {
      deliveries.push((await receiver.next(0)).delivery);
    }
    // rhea tells two outcomes of one turn as if they were the same.
    deliveries[0].release();
    await setImmediate();
    deliveries[1].modified({ delivery_failed: true });
    await setImmediate();
    deliveries[2].reject({ condition: "amqp:not-allowed", description: "as planned" });
    for (const [index, body] of ["released", "modified"].entries()) {
      const { message, delivery } = await receiver.next();
      assert.equal(message.body, body);
      assert.equal(message.delivery_count ?? 0, index);
      delivery.accept();
    }
    assert.deepEqual(await receiver.rest(), []);
  },

  async refusal() {
    const sender = new Sender(connect(), name);
    await sender.send("the only one");
    const { remote_state: state } = await sender.outcome("too much");
    assert.equal(state.constructor.composite_type, "rejected");
    assert.equal(state.error.condition, "amqp:resource-limit-exceeded");
  },

  async credit_and_drain() {
    const connection = connect();
    const sender = new Sender(connection, name);
    for (let number = 1; number <= 5; number++) {
      await sender.send(number);
    }
    const receiver = new Receiver(connection, name);
    for (let number = 1; number <= 3; number++) {
      const { message, delivery } = await receiver.next(number === 1 ? 3 : 0);
      assert.equal(message.body, number);
      delivery.accept();
    }
    assert.deepEqual(await receiver.rest(), [4, 5]);
    await sender.send(6);
    assert.equal(await new Receiver(connection, name).body(), 6);
  },

  async large_message() {
    const connection = connect();
    const body = pattern(3 << 20);
    await new Sender(connection, name).send({ body: rhea.message.data_section(body) });
    assert.ok((await new Receiver(connection, name).body()).content.equals(body));
  },

  async small_frames() {
    const connection = connect({ max_frame_size: 512 });
    const body = pattern(200_000);
    await new Sender(connection, name).send({ body: rhea.message.data_section(body) });
    assert.ok((await new Receiver(connection, name).body()).content.equals(body));
  },

  async dynamic_node() {
    const asking = connect();
    const answering = connect();
    const replies = await new Receiver(asking, { dynamic: true }).opened();
    const request = { body: "request", reply_to: replies.link.source.address, message_id: "id" };
    await new Sender(asking, name).send(request);
    const { message, delivery } = await new Receiver(answering, name).next();
    delivery.accept();
    const reply = { to: message.reply_to, correlation_id: message.message_id, body: `${message.body} answered` };
    await new Sender(answering, {}).send(reply);
    const { message: came } = await replies.next();
    assert.equal(came.body, "request answered");
    assert.equal(came.correlation_id, "id");
  },

  async anonymous_relay() {
    const connection = connect();
    const sender = new Sender(connection, {});
    const queues = [`${name}.a`, `${name}.b`];
    for (const queue of queues) {
      await sender.send({ to: queue, body: queue });
    }
    for (const queue of queues) {
      assert.equal(await new Receiver(connection, queue).body(), queue);
    }
  },

  async selector() {
    const connection = connect();
    const sender = new Sender(connection, name);
    for (const size of [5, 50, 500]) {
      for (const colour of ["red", "blue"]) {
        await sender.send({ body: `${colour} ${size}`, application_properties: { colour, size } });
      }
    }
    const filter = rhea.filter.selector("colour = 'red' AND size > 10");
    assert.deepEqual(await new Receiver(connection, { address: name, filter }).rest(), ["red 50", "red 500"]);
    const others = ["red 5", "blue 5", "blue 50", "blue 500"];
    assert.deepEqual(await new Receiver(connection, name).rest(), others);
  },

  async browse() {
    const connection = connect();
    const sender = new Sender(connection, name);
    for (const number of [1, 2, 3]) {
      await sender.send(number);
    }
    for (const source of [{ address: name, distribution_mode: "copy" }, { address: name, distribution_mode: "copy" }, name]) {
      assert.deepEqual(await new Receiver(connection, source).rest(), [1, 2, 3]);
    }
  },

  async durable_subscription() {
    const topic = `topic://${name}`;
    const source = { address: topic, durable: 2, expiry_policy: "never" };
    const subscribe = () => new Receiver(connect(), source, { name: "subscription" });
    await (await subscribe().opened()).detach();
    const sender = new Sender(connect(), topic);
    await sender.send("missed");
    const receiver = subscribe();
    assert.equal(await receiver.body(), "missed");
    await sender.send("live");
    assert.equal(await receiver.body(), "live");
    await receiver.close();
    await sender.send("for nobody");
    assert.deepEqual(await subscribe().rest(), []);
  },

  async shared_subscription() {
    const topic = `topic://${name}`;
    const source = { address: topic, capabilities: ["shared", "global"] };
    const receivers = [];
    for (const number of [0, 1]) {
      receivers.push(await new Receiver(connect(), source, { name: `${name}|${number}` }).opened());
    }
    const firsts = receivers.map((receiver) => receiver.next(5));
    const sender = new Sender(connect(), topic);
    const sent = Array.from({ length: 10 }, (_, index) => index);
    for (const number of sent) {
      await sender.send(number);
    }
    const came = (await Promise.all(firsts)).map(({ message }) => message.body);
    while (came.length < 10) {
      came.push((await receivers[came.length % 2].next(0)).message.body);
    }
    assert.deepEqual(came.sort(), sent);
  },

  async delay() {
    const connection = connect();
    const sender = new Sender(connection, name);
    const delay = rhea.types.wrap_long(500);
    await sender.send({ body: "delayed", message_annotations: { "x-opt-delivery-delay": delay } });
    await sender.send("at once");
    const receiver = new Receiver(connection, name);
    assert.equal(await receiver.body(), "at once");
    assert.equal(await receiver.body(), "delayed");
  },

  async expiry() {
    const connection = connect();
    const sender = new Sender(connection, name);
    await sender.send({ body: "expired", absolute_expiry_time: 1000 });
    await sender.send({ body: "fresh", ttl: 600_000 });
    assert.deepEqual(await new Receiver(connection, name).rest(), ["fresh"]);
  },

  async priorities() {
    const connection = connect();
    const sender = new Sender(connection, name);
    for (let priority = 0; priority <= 9; priority++) {
      await sender.send({ body: priority, priority });
    }
    assert.deepEqual(await new Receiver(connection, name).rest(), [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]);
  },

  async types() {
    const connection = connect();
    const uuid = pattern(16);
    const properties = { boolean: true, long: -(2 ** 40), double: 0.1, string: "Größe 🐟", null: null };
    const sender = new Sender(connection, name);
    const receiver = new Receiver(connection, name);
    for (const body of ["text", -7, pattern(100), [1, "two", null, { k: [true] }], { ...properties }]) {
      const sent = { ...properties, uuid: rhea.types.wrap_uuid(uuid) };
      await sender.send({ body, application_properties: sent });
      const { message, delivery } = await receiver.next();
      delivery.accept();
      assert.deepEqual(message.body, body);
      assert.deepEqual(message.application_properties, { ...properties, uuid });
    }
  },

  async idle_time_out() {
    const connection = connect({ idle_time_out: 1000 });
    const receiver = await new Receiver(connection, name).opened();
    assert.ok(await receiver.isSilent(2500));
    await new Sender(connection, name).send("m");
    assert.equal(await receiver.body(), "m");
  },

  async not_found() {
    const session = connect().create_session();
    session.open();
    const refused = new Sender(session, `/exchanges/${name}/key`);
    await once(refused.link, "sender_error");
    assert.equal(refused.link.error.condition, "amqp:not-found");
    await new Sender(session, name).send("m");
  },

  async tls() {
    const connection = connect({ transport: "tls", ca: readFileSync(process.env.SSL_CERT_FILE) });
    await new Sender(connection, name).send("m");
    assert.equal(await new Receiver(connection, name).body(), "m");
  },
};

setTimeout(() => {
  throw new Error("it hangs");
}, DEADLINE_MS).unref();
await SCENARIOS[scenario]();
process.exit(0);
