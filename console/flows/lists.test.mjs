import assert from "node:assert/strict";
import { test } from "node:test";
import { address, api, bind, declareExchange, declareQueue, eventually, publish, stompClient, vhost, world } from "./world.mjs";

const here = world({ seed });

async function seed() {
  for (const name of ["list.alpha", "list.beta", "list.gamma"]) await declareQueue(name);
  for (let count = 0; count < 5; count += 1) await publish("list.beta", "x");
  await publish("list.gamma", "x");
  await declareExchange("shop", "topic");
  await bind("shop", "list.alpha", "order.#");
  await bind("shop", "list.beta", "*.eu");
}

async function names() {
  return here.page.locator(".virtual-space .name").allTextContents().then((all) => all.filter((name) => name.startsWith("list.")));
}

async function openQueues(search) {
  await here.page.goto(address("queues", search === undefined ? {} : { search }));
  await here.page.getByRole("grid", { name: "Queues" }).waitFor();
}

test("the overview shows traffic as it comes", async () => {
  await here.page.goto(address(""));
  await here.page.locator(".feed-live").waitFor();
  const client = await stompClient();
  const timer = setInterval(() => client.send("/topic/flow", "x"), 5);
  const tile = here.page.locator(".tile", { hasText: "Published" }).locator("dd");
  await eventually(async () => /^[1-9]/.test(await tile.textContent()), "the tile counts messages");
  clearInterval(timer);
  client.close();
});

test("the overview has its numbers as a table too", async () => {
  await here.page.goto(address(""));
  await here.page.getByText("Show as a table").first().click();
  await here.page.getByRole("group", { name: "Message rates by protocol" }).getByRole("columnheader", { name: "NATS" }).waitFor();
});

test("queues are searched", async () => {
  await openQueues();
  await here.page.getByRole("searchbox").fill("LIST.B");
  await eventually(async () => (await names()).join() === "list.beta", "one queue matches");
  assert.match(here.page.url(), /search=LIST\.B/);
  await here.page.getByRole("searchbox").fill(`${vhost} nothing`);
  await here.page.getByText("No queue matches this search.").waitFor();
});

test("queues are sorted by any column, in both directions", async () => {
  await openQueues(vhost);
  await here.page.getByRole("button", { name: "Ready" }).click();
  await eventually(async () => (await names()).join() === "list.beta,list.gamma,list.alpha", "most messages first");
  await here.page.getByRole("button", { name: "Ready" }).click();
  await eventually(async () => (await names()).join() === "list.alpha,list.gamma,list.beta", "fewest messages first");
  assert.equal(await here.page.getByRole("columnheader", { name: "Ready" }).getAttribute("aria-sort"), "ascending");
});

test("a new queue appears without a reload, and a deleted one goes", async () => {
  await openQueues("flow.new");
  await here.page.getByText("No queue matches").waitFor();
  await declareQueue("flow.new");
  await here.page.getByRole("link", { name: "flow.new" }).waitFor();
  await api("DELETE", `/v1/queues/${vhost}/flow.new`);
  await here.page.getByText("No queue matches").waitFor();
});

test("a connection is found, shown with its consumer, and closed", async () => {
  const client = await stompClient();
  client.subscribe("/queue/list.alpha");
  await here.page.goto(address("connections", { search: vhost }));
  await here.page.locator(".virtual-space a").first().click();
  await here.page.getByRole("heading", { name: "Sessions", exact: true }).waitFor();
  await here.page.getByRole("link", { name: "list.alpha" }).waitFor();
  await here.page.getByRole("button", { name: "Close connection" }).click();
  const dialog = here.page.getByRole("dialog");
  await dialog.getByText("Returned to their queues").waitFor();
  await dialog.getByRole("button", { name: "Close connection" }).click();
  await client.closed;
  await here.page.getByRole("heading", { name: "Connections", exact: true }).waitFor();
});

test("an exchange says where a subject would go", async () => {
  await here.page.goto(address("exchange", { vhost, name: "shop" }));
  const status = here.page.locator("section", { hasText: "Where would this subject go?" }).getByRole("status");
  await here.page.getByRole("textbox", { name: "Subject" }).fill("order.eu");
  await status.getByText("Queues that would receive it: 2").waitFor();
  await here.page.getByRole("textbox", { name: "Subject" }).fill("mail");
  await status.getByText("No binding matches").waitFor();
});

test("the first message lights the lamp", async () => {
  await here.page.goto(address("start"));
  await here.page.getByText("Waiting for your first message").waitFor();
  await here.page.locator(".feed-live").waitFor();
  await here.page.waitForTimeout(1_500);
  await publish("list.gamma", "hello");
  await here.page.getByText("A message has arrived.").waitFor();
});

test("programs name the listeners' ports", async () => {
  const { listeners } = await api("GET", "/v1/overview");
  const port = /:(\d+)$/.exec(listeners.find((each) => each.name === "stomp").address)[1];
  await here.page.goto(address("start"));
  await here.page.getByRole("button", { name: "Ruby" }).click();
  await here.page.getByText(`port: ${port}`).waitFor();
});

test("what a user may do is asked without doing it", async () => {
  const user = `${vhost}-limited`;
  await api("PUT", `/v1/users/${user}`, { password: "x", tags: [] });
  await api("PUT", `/v1/users/${user}/permissions/${vhost}`, { configure: "^$", write: "^list[.]", read: "^list[.]alpha$" });
  await here.page.goto(address("users", { name: user }));
  await here.page.getByLabel("Action", { exact: true }).selectOption("consume from a queue");
  await here.page.getByLabel("Queue", { exact: true }).fill("list.alpha");
  await here.page.getByText("The user's permissions allow it.").waitFor();
  await here.page.getByLabel("Queue", { exact: true }).fill("list.beta");
  await here.page.getByText(/may not consume from queue `list.beta`; ask for the right to read it/).waitFor();
  await here.page.getByLabel("Action", { exact: true }).selectOption("declare a queue");
  await here.page.getByText(/ask for the right to configure it/).waitFor();
  await api("DELETE", `/v1/users/${user}`);
});

test("the configuration is searched", async () => {
  await here.page.goto(address("configuration"));
  await here.page.getByRole("searchbox").fill("listeners.stomp");
  await here.page.getByRole("cell", { name: "listeners.stomp", exact: true }).waitFor();
  await here.page.getByRole("cell", { name: "option `--listen`" }).first().waitFor();
});

const greeting = (started) => `event: hello\ndata: ${JSON.stringify({ version: "0", node: "n", started, now: Date.now(), interval_ms: 1000 })}\n\n`;

test("a broker that cannot be reached is told, and the feed comes back", async () => {
  await here.page.goto(address("exchanges"));
  await here.page.locator(".feed-live").waitFor();
  await here.page.route("**/v1/feed*", (route) => route.abort());
  await here.page.getByRole("link", { name: "Connections" }).click();
  await here.page.locator(".feed-reconnecting").waitFor();
  await here.page.unroute("**/v1/feed*");
  await here.page.locator(".feed-live").waitFor();
});

test("a restart of the broker is told until it is dismissed", async () => {
  let started = 1_000;
  await here.page.route("**/v1/feed*", (route) => route.fulfill({ contentType: "text/event-stream", body: greeting(started++) }));
  await here.page.goto(address("exchanges"));
  await here.page.getByText("The broker restarted at").waitFor();
  await here.page.unroute("**/v1/feed*");
  await here.page.getByRole("button", { name: "Dismiss" }).click();
  await here.page.getByText("The broker restarted at").waitFor({ state: "hidden" });
});
