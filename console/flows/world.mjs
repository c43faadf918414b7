// Everything that a flow needs: a browser, a vhost of its own, and a client that sends messages.
//
// IMORI_ADMIN is the address of the admin listener, IMORI_LOGIN an administrator as `user:password`,
// CHROMIUM the browser to drive.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { connect } from "node:net";
import { after, afterEach, before, beforeEach } from "node:test";
import { chromium } from "playwright-core";

/** Generous, because a shared machine draws a page of 4K slowly. */
const TIMEOUT_MS = 20_000;

export const admin = process.env.IMORI_ADMIN ?? "http://127.0.0.1:15672";
const [user, password] = (process.env.IMORI_LOGIN ?? "").split(/:(.*)/s);
export const login = { user, password };

/** A vhost of this file's flows; deleting it deletes everything that they made. */
export const vhost = `flows-${randomBytes(4).toString("hex")}`;
const inVhost = encodeURIComponent(vhost);

/** Calls the admin API, as the flows' user or another one. */
export async function api(method, path, body, as = login) {
  const headers = {
    authorization: `Basic ${Buffer.from(`${as.user}:${as.password}`).toString("base64")}`,
    "content-type": "application/json",
  };
  const response = await fetch(admin + path, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
  const text = await response.text();
  assert.ok(response.ok, `${method} ${path}: ${response.status} ${text}`);
  return text === "" ? undefined : JSON.parse(text);
}

export const declareQueue = (name, args = {}) => api("PUT", `/v1/queues/${inVhost}/${encodeURIComponent(name)}`, { durable: true, arguments: args });
export const declareExchange = (name, type, args = {}) => api("PUT", `/v1/exchanges/${inVhost}/${encodeURIComponent(name)}`, { type, durable: true, arguments: args });
export const bind = (source, destination, key) =>
  api("POST", `/v1/bindings/${inVhost}`, { source, destination, destination_type: "queue", routing_key: key });
export const readQueue = (name) => api("GET", `/v1/queues/${inVhost}/${encodeURIComponent(name)}`);
export const publish = (queue, payload, more = {}) =>
  api("POST", `/v1/queues/${inVhost}/${encodeURIComponent(queue)}/publish`, { payload, ...more });

/** The address of a page of the console. */
export function address(page, query = {}) {
  return `${admin}/console/${page}${Object.keys(query).length === 0 ? "" : `?${new URLSearchParams(query)}`}`;
}

export const addressOfQueue = (name) => address("queue", { vhost, name });

/** A STOMP client on a plain socket, as a connection to look at. */
export async function stompClient() {
  const overview = await api("GET", "/v1/overview");
  const listener = overview.listeners.find((each) => each.name === "stomp");
  assert.ok(listener, "the flows need a listener for STOMP");
  const port = Number(/:(\d+)$/.exec(listener.address)[1]);
  const socket = connect(port, new URL(admin).hostname);
  const frame = (command, headers, body = "") =>
    socket.write(`${command}\n${Object.entries(headers).map(([name, value]) => `${name}:${value}\n`).join("")}\n${body}\0`);
  frame("CONNECT", { "accept-version": "1.2", host: vhost, login: user, passcode: password });
  await new Promise((resolve, reject) => {
    socket.once("data", (data) => (data.toString().startsWith("CONNECTED") ? resolve() : reject(new Error(data.toString()))));
    socket.once("error", reject);
  });
  socket.on("error", () => undefined);
  return {
    send: (destination, body) => frame("SEND", { destination }, body),
    subscribe: (destination) => frame("SUBSCRIBE", { destination, id: "1", ack: "client-individual" }),
    closed: new Promise((resolve) => socket.once("close", resolve)),
    close: () => socket.destroy(),
  };
}

/**
 * Opens a browser around the flows of a file, after `seed` has made what they look at.
 * After each flow it checks that the page threw nothing, and that its content security policy stopped nothing.
 */
export function world({ isSignedIn = true, seed = async () => undefined } = {}) {
  const here = { page: undefined, context: undefined, browser: undefined };
  let faults = [];

  before(async () => {
    assert.ok(password, "set IMORI_LOGIN to an administrator, as user:password");
    await api("PUT", `/v1/vhosts/${inVhost}`, { description: "flows of the console" });
    await api("PUT", `/v1/users/${encodeURIComponent(user)}/permissions/${inVhost}`, { configure: ".*", write: ".*", read: ".*" });
    await seed();
    here.browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
  });

  beforeEach(async () => {
    faults = [];
    here.context = await here.browser.newContext({ viewport: { width: 1280, height: 900 }, locale: "en-GB" });
    here.context.setDefaultTimeout(TIMEOUT_MS);
    here.page = await here.context.newPage();
    here.page.on("pageerror", (error) => faults.push(error.message));
    here.page.on("console", (message) => {
      if (message.type() === "error" && !/status of (?:400|401|403|404|409)|ERR_FAILED/.test(message.text())) faults.push(message.text());
    });
    if (isSignedIn) await signIn(here.context);
  });

  afterEach(async () => {
    await here.context.close();
    assert.deepEqual(faults, []);
  });

  after(async () => {
    await here.browser?.close();
    await api("DELETE", `/v1/vhosts/${inVhost}`);
  });

  return here;
}

/** Gives the browser a session, as the form does. */
export async function signIn(context, as = login) {
  const response = await context.request.post(`${admin}/v1/session`, { data: as });
  assert.equal(response.status(), 200, await response.text());
}

/** Waits until `check` returns true; the feed brings changes within two seconds. */
export async function eventually(check, what) {
  const end = Date.now() + TIMEOUT_MS;
  while (Date.now() < end) {
    if (await check()) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  assert.fail(`${what}, not within ${TIMEOUT_MS} ms`);
}
