// Conversations of @stomp/stompjs with a broker, one a scenario: over plain TCP, or over WebSocket as in a
// browser.
//
//   node scenarios.mjs PORT NAME SCENARIO [ws]
//
// A scenario ends well by returning and badly by throwing; waiting is always for a frame.

import assert from "node:assert/strict";
import { Client } from "@stomp/stompjs";
import { TCPWrapper } from "@stomp/tcp-wrapper";
import { WebSocket } from "ws";

const [port, name, scenario] = [Number(process.argv[2]), process.argv[3], process.argv[4]];
const isWebSocket = process.argv[5] === "ws";
const clients = [];

// Not every Node.js has one of its own.
globalThis.WebSocket ??= WebSocket;

/** Returns a logged-in client whose `error` rejects at an ERROR frame. */
function connect(options = {}) {
  return new Promise((resolve, reject) => {
    const client = new Client({
      ...(isWebSocket
        ? { brokerURL: `ws://127.0.0.1:${port}/` }
        : { webSocketFactory: () => new TCPWrapper("127.0.0.1", port) }),
      connectHeaders: { login: "guest", passcode: "guest", host: "/" },
      reconnectDelay: 0,
      heartbeatIncoming: 0,
      heartbeatOutgoing: 0,
      onConnect: () => resolve(client),
      onStompError: reject,
      onWebSocketError: reject,
      ...options,
    });
    clients.push(client);
    client.activate();
  });
}

/** A queue of messages to await: `push` is the callback, `next` the promise of the oldest. */
function mailbox() {
  const messages = [];
  const readers = [];
  return {
    push: (message) => (readers.length ? readers.shift()(message) : messages.push(message)),
    next: () =>
      messages.length
        ? Promise.resolve(messages.shift())
        : new Promise((resolve) => readers.push(resolve)),
  };
}

let receipts = 0;

/** Runs `act` with a receipt header and waits for that receipt. */
function confirmed(client, act) {
  const receipt = `receipt-${receipts++}`;
  return new Promise((resolve) => {
    client.watchForReceipt(receipt, resolve);
    act({ receipt });
  });
}

async function subscribe(client, destination, headers = {}) {
  const box = mailbox();
  await confirmed(client, (receipt) =>
    client.subscribe(destination, box.push, { ...headers, ...receipt }),
  );
  return box;
}

const scenarios = {
  async publish_and_subscribe() {
    const client = await connect();
    assert.equal(client.connectedVersion, "1.2");
    // stompjs undoes escapes one kind after the other, so a backslash before a `c` would not do.
    const headers = { user: "a:b\\slash\nd", "correlation-id": "größe" };
    for (const kind of ["/queue/", "/topic/", "/exchange/amq.direct/"]) {
      const box = await subscribe(client, kind + name);
      client.publish({ destination: kind + name, body: "größe 🦀", headers });
      const message = await box.next();
      assert.equal(message.body, "größe 🦀");
      assert.equal(message.headers.user, headers.user);
      assert.equal(message.headers["correlation-id"], headers["correlation-id"]);
      assert.equal(message.headers.destination, kind + name);
    }
  },

  async unsubscribe() {
    const client = await connect();
    const box = mailbox();
    const subscription = client.subscribe(`/topic/${name}`, box.push);
    await confirmed(client, (receipt) => subscription.unsubscribe(receipt));
    const second = await subscribe(client, `/topic/${name}`);
    client.publish({ destination: `/topic/${name}`, body: "second" });
    assert.equal((await second.next()).body, "second");
  },

  async ack_and_nack() {
    const client = await connect();
    const destination = `/queue/${name}`;
    const box = await subscribe(client, destination, { ack: "client-individual" });
    client.publish({ destination, body: "work" });
    const first = await box.next();
    assert.equal(first.headers.redelivered, "false");
    first.nack();
    const again = await box.next();
    assert.equal(again.body, "work");
    assert.equal(again.headers.redelivered, "true");
    await confirmed(client, (receipt) => again.ack(receipt));
    await client.deactivate();
    const other = await connect();
    const rest = await subscribe(other, destination);
    other.publish({ destination, body: "next" });
    assert.equal((await rest.next()).body, "next");
  },

  async transactions() {
    const client = await connect();
    const destination = `/queue/${name}`;
    const box = await subscribe(client, destination);
    const lost = client.begin();
    client.publish({ destination, body: "lost", headers: { transaction: lost.id } });
    lost.abort();
    const kept = client.begin();
    for (const body of ["one", "two"]) {
      client.publish({ destination, body, headers: { transaction: kept.id } });
    }
    kept.commit();
    assert.equal((await box.next()).body, "one");
    assert.equal((await box.next()).body, "two");
  },

  async rpc() {
    const replies = mailbox();
    const requester = await connect({ onUnhandledMessage: replies.push });
    const responder = await connect();
    await confirmed(responder, (receipt) =>
      responder.subscribe(
        `/queue/${name}`,
        (request) =>
          responder.publish({
            destination: request.headers["reply-to"],
            body: String(Number(request.body) + 1),
            headers: { "correlation-id": request.headers["correlation-id"] },
          }),
        receipt,
      ),
    );
    const count = 500;
    for (let number = 0; number < count; number += 1) {
      requester.publish({
        destination: `/queue/${name}`,
        body: String(number),
        headers: { "reply-to": "/temp-queue/inbox", "correlation-id": `c-${number}` },
      });
    }
    for (let number = 0; number < count; number += 1) {
      const reply = await replies.next();
      assert.equal(reply.body, String(number + 1));
      assert.equal(reply.headers["correlation-id"], `c-${number}`);
      assert.equal(reply.headers.subscription, "/temp-queue/inbox");
    }
  },

  async binary_bodies() {
    const client = await connect();
    const destination = `/queue/${name}`;
    const box = await subscribe(client, destination);
    const everyByte = Uint8Array.from({ length: 4096 }, (_, index) => index % 256);
    for (const binaryBody of [everyByte, new Uint8Array([0]), new Uint8Array(1 << 20)]) {
      client.publish({ destination, binaryBody });
      assert.deepEqual((await box.next()).binaryBody, binaryBody);
    }
  },

  async body_without_content_length() {
    const client = await connect();
    const destination = `/queue/${name}`;
    const box = await subscribe(client, destination);
    client.publish({ destination, body: "bare", skipContentLengthHeader: true });
    assert.equal((await box.next()).body, "bare");
  },

  async heartbeats() {
    const beats = mailbox();
    const client = await connect({
      heartbeatIncoming: 1000,
      heartbeatOutgoing: 1000,
      onHeartbeatReceived: () => beats.push("beat"),
      onHeartbeatLost: () => assert.fail("the broker fell silent"),
    });
    await beats.next();
    await beats.next();
    const box = await subscribe(client, `/queue/${name}`);
    client.publish({ destination: `/queue/${name}`, body: "still here" });
    assert.equal((await box.next()).body, "still here");
  },

  async error_frame() {
    const errors = mailbox();
    const client = await connect({ onStompError: errors.push });
    client.publish({ destination: "/nowhere/x", body: "" });
    const error = await errors.next();
    assert.equal(error.command, "ERROR");
    assert.equal(error.headers.message, "Unknown destination");
    assert.match(error.body, /\/nowhere\/x/);
  },

  async wrong_passcode() {
    const connectHeaders = { login: "guest", passcode: "wrong", host: "/" };
    await assert.rejects(connect({ connectHeaders }), (frame) => frame.command === "ERROR");
  },
};

await scenarios[scenario]();
for (const client of clients) {
  await client.deactivate({ force: true });
}
