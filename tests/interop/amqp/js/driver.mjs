// Conversations of amqplib with a broker, one a scenario.
//
//     node driver.mjs SCENARIO URL NAME
//
// A scenario ends well by returning and badly by throwing; waiting is always for an event.

import assert from "node:assert/strict";
import { once } from "node:events";
import amqp from "amqplib";

const DEADLINE_MS = 100_000;

const [scenario, url, name] = process.argv.slice(2);

// What comes in, for whoever awaits it.
class Arrived {
  #came = [];
  #waiting = [];

  put = (item) => (this.#waiting.length ? this.#waiting.shift()(item) : this.#came.push(item));

  next = () =>
    new Promise((resolve) => (this.#came.length ? resolve(this.#came.shift()) : this.#waiting.push(resolve)));
}

// Opens a channel on a connection of its own.
async function channel(confirmed = false) {
  const connection = await amqp.connect(url);
  return confirmed ? connection.createConfirmChannel() : connection.createChannel();
}

async function consume(channel, queue, options) {
  const arrived = new Arrived();
  await channel.consume(queue, arrived.put, options);
  return arrived;
}

async function ready(channel, queue) {
  return (await channel.checkQueue(queue)).messageCount;
}

// Gives the code of the error with which the broker ends a channel.
async function refused(channel, act) {
  const ended = once(channel, "error");
  await assert.rejects(act());
  return (await ended)[0].code;
}

const SCENARIOS = {
  async confirms() {
    const confirmed = await channel(true);
    await confirmed.assertExchange(name, "topic", { durable: true });
    await confirmed.assertQueue(name, { durable: true });
    await confirmed.bindQueue(name, name, "number.*");
    for (let number = 0; number < 100; number++) {
      confirmed.publish(name, `number.${number}`, Buffer.from(`${number}`), { persistent: true });
    }
    await confirmed.waitForConfirms();
    const arrived = await consume(confirmed, name);
    for (let number = 0; number < 100; number++) {
      const message = await arrived.next();
      assert.equal(message.content.toString(), `${number}`);
      assert.equal(message.fields.redelivered, false);
      confirmed.ack(message);
    }
    assert.equal(await ready(confirmed, name), 0);
  },

  async mandatory_return() {
    const confirmed = await channel(true);
    const returned = [];
    confirmed.on("return", (message) => returned.push(message));
    confirmed.publish("", name, Buffer.from("back"), { mandatory: true });
    await confirmed.waitForConfirms();
    assert.equal(returned.length, 1);
    assert.equal(returned[0].fields.replyCode, 312);
    assert.equal(returned[0].fields.replyText, "NO_ROUTE");
    assert.equal(returned[0].content.toString(), "back");
  },

  async prefetch_and_requeue() {
    const opened = await channel();
    await opened.prefetch(2);
    await opened.assertQueue(name, { durable: false });
    for (let number = 0; number < 4; number++) opened.sendToQueue(name, Buffer.from(`${number}`));
    const arrived = await consume(opened, name);
    const [first, second] = [await arrived.next(), await arrived.next()];
    assert.equal(await ready(opened, name), 2);
    opened.nack(first, false, true);
    const again = await arrived.next();
    assert.equal(again.content.toString(), "0");
    assert.equal(again.fields.redelivered, true);
    opened.ack(second);
    opened.ack(again);
    assert.equal((await arrived.next()).content.toString(), "2");
    assert.equal((await arrived.next()).content.toString(), "3");
  },

  async direct_reply_to() {
    const [requester, responder] = [await channel(), await channel()];
    await responder.assertQueue(name, { durable: false });
    await responder.consume(
      name,
      ({ content, properties: { replyTo, correlationId } }) =>
        responder.sendToQueue(replyTo, Buffer.concat([content, content]), { correlationId }),
      { noAck: true },
    );
    const replies = await consume(requester, "amq.rabbitmq.reply-to", { noAck: true });
    for (let number = 0; number < 10; number++) {
      const correlationId = `${number}`;
      requester.sendToQueue(name, Buffer.from(correlationId), { replyTo: "amq.rabbitmq.reply-to", correlationId });
      const reply = await replies.next();
      assert.equal(reply.content.toString(), correlationId + correlationId);
      assert.equal(reply.properties.correlationId, correlationId);
    }
  },

  async dead_letters() {
    const opened = await channel();
    const { queue: dead } = await opened.assertQueue(`${name}.dead`, { durable: false });
    const limits = { deadLetterExchange: "", deadLetterRoutingKey: dead, maxLength: 10 };
    await opened.assertQueue(name, { durable: false, ...limits });
    opened.sendToQueue(name, Buffer.from("bad"));
    opened.reject(await (await consume(opened, name)).next(), false);
    const { headers } = (await (await consume(opened, dead)).next()).properties;
    const [death] = headers["x-death"];
    assert.equal(death.queue, name);
    assert.equal(death.reason, "rejected");
    assert.equal(death.count, 1);
    assert.equal(death.exchange, "");
    assert.deepEqual(death["routing-keys"], [name]);
    assert.equal(headers["x-first-death-queue"], name);
  },

  async headers() {
    const opened = await channel();
    await opened.assertQueue(name, { durable: false });
    const plain = {
      text: "é",
      true: true,
      small: -5,
      large: 2 ** 40,
      real: 2.5,
      bytes: Buffer.from([0, 255]),
      nothing: null,
      table: { a: { b: [1, "c"] } },
      list: [1, "a", { b: null }],
    };
    const typed = {
      time: { "!": "timestamp", value: 1714979289 },
      decimal: { "!": "decimal", value: { digits: 125, places: 2 } },
    };
    opened.sendToQueue(name, Buffer.alloc(0), {
      headers: { ...plain, ...typed, float: { "!": "float", value: 2.5 }, short: { "!": "int16", value: -5 } },
    });
    const { headers } = (await (await consume(opened, name)).next()).properties;
    assert.deepEqual(headers, { ...plain, ...typed, float: 2.5, short: -5 });
  },

  async exclusive_queue() {
    const [owner, other] = [await channel(), await channel()];
    await owner.assertQueue(name, { exclusive: true });
    assert.equal(await refused(other, () => other.checkQueue(name)), 405);
    await owner.assertQueue(`${name}.auto`, { durable: false, autoDelete: true });
    const { consumerTag } = await owner.consume(`${name}.auto`, () => {});
    await owner.cancel(consumerTag);
    assert.equal(await refused(owner, () => owner.checkQueue(`${name}.auto`)), 404);
  },

  async large_body() {
    const opened = await channel();
    await opened.assertQueue(name, { durable: false });
    const body = Buffer.from(Uint8Array.from({ length: 1_000_000 }, (_, at) => at % 251));
    opened.sendToQueue(name, body);
    assert.ok(body.equals((await (await consume(opened, name)).next()).content));
  },

  async cancelled() {
    const [opened, other] = [await channel(), await channel()];
    await opened.assertQueue(name, { durable: false });
    const arrived = await consume(opened, name);
    await other.deleteQueue(name);
    assert.equal(await arrived.next(), null);
  },

  async restart() {
    const arrived = new Arrived();
    const channels = new Arrived();
    await amqp.connect(url, {
      recovery: {
        async setup(connection) {
          const opened = await connection.createConfirmChannel();
          await opened.assertQueue(name, { durable: true });
          await opened.consume(name, arrived.put);
          channels.put(opened);
        },
      },
    });
    const before = await channels.next();
    before.sendToQueue(name, Buffer.from("before"), { persistent: true });
    await before.waitForConfirms();
    await arrived.next();
    console.log("ready");
    const after = await channels.next();
    const again = await arrived.next();
    assert.equal(again.content.toString(), "before");
    assert.equal(again.fields.redelivered, true);
    after.ack(again);
    after.sendToQueue(name, Buffer.from("after"));
    assert.equal((await arrived.next()).content.toString(), "after");
  },
};

setTimeout(() => assert.fail("it hangs"), DEADLINE_MS);
await SCENARIOS[scenario]();
process.exit(0);
