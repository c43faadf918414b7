import assert from "node:assert/strict";
import { test } from "node:test";
import { addressOfQueue, declareQueue, eventually, publish, readQueue, vhost, world } from "./world.mjs";

const here = world();

async function open(name) {
  await here.page.goto(addressOfQueue(name));
  await here.page.getByRole("heading", { name: "Facts" }).waitFor();
}

async function peek() {
  await here.page.getByRole("button", { name: /^Peek/ }).click();
}

test("a message is published from the page and seen in a peek", async () => {
  await declareQueue("publish");
  await open("publish");
  await here.page.getByRole("button", { name: "Publish", exact: true }).click();
  const dialog = here.page.getByRole("dialog");
  await dialog.getByLabel("Body").fill('{"newt":9007199254740993}');
  await dialog.getByLabel("Content type").fill("application/json");
  await dialog.getByLabel("Headers").fill("colour: black and red");
  await dialog.getByRole("button", { name: "Publish", exact: true }).click();
  await here.page.getByText("Published. Receivers: 1.").waitFor();
  await peek();
  await here.page.locator(".message summary").click();
  await here.page.getByText("black and red").waitFor();
  assert.match(await here.page.locator(".message pre").textContent(), /"newt": 9007199254740993/);
});

test("a line that is no header is refused before anything is sent", async () => {
  await declareQueue("header");
  await open("header");
  await here.page.getByRole("button", { name: "Publish", exact: true }).click();
  const dialog = here.page.getByRole("dialog");
  await dialog.getByLabel("Headers").fill("nonsense");
  await dialog.getByRole("button", { name: "Publish", exact: true }).click();
  await dialog.getByRole("alert").getByText("is not a header").waitFor();
  assert.equal((await readQueue("header")).ready, 0);
});

test("a purge asks with the number of messages; Escape keeps them", async () => {
  await declareQueue("purge");
  for (let count = 0; count < 3; count += 1) await publish("purge", "x");
  await open("purge");
  await here.page.getByRole("button", { name: "Purge" }).click();
  await here.page.getByRole("dialog").getByRole("button", { name: "Drop 3 messages" }).waitFor();
  await here.page.keyboard.press("Escape");
  await here.page.getByRole("dialog").waitFor({ state: "hidden" });
  assert.equal((await readQueue("purge")).ready, 3);
  await here.page.getByRole("button", { name: "Purge" }).click();
  await here.page.getByRole("dialog").getByRole("button", { name: "Drop 3 messages" }).click();
  await here.page.getByText("Dropped 3 messages.").waitFor();
  assert.equal((await readQueue("purge")).ready, 0);
});

test("a deletion asks with the number of messages and leads back to the list", async () => {
  await declareQueue("delete");
  await publish("delete", "x");
  await open("delete");
  await here.page.getByRole("button", { name: "Delete" }).click();
  await here.page.getByRole("button", { name: "Delete the queue and 1 message" }).click();
  await here.page.getByRole("heading", { name: "Queues", exact: true }).waitFor();
  await assert.rejects(readQueue("delete"), /404/);
});

test("a move says beforehand how many messages go", async () => {
  await declareQueue("move.from");
  await declareQueue("move.to");
  for (let count = 0; count < 4; count += 1) await publish("move.from", "x");
  await open("move.from");
  await here.page.getByRole("button", { name: "Move" }).click();
  const dialog = here.page.getByRole("dialog");
  assert.equal(await dialog.getByRole("button", { name: "Move" }).isDisabled(), true);
  await dialog.getByLabel("Routing key").fill("move.to");
  await dialog.getByRole("button", { name: "Move 4 messages" }).waitFor();
  await dialog.getByLabel("At most").fill("3");
  await dialog.getByRole("button", { name: "Move 3 messages" }).click();
  await here.page.getByText("Moved 3 messages; left in the queue: 1.").waitFor();
  assert.equal((await readQueue("move.to")).ready, 3);
});

test("dead letters go back where they died", async () => {
  await declareQueue("dead");
  await declareQueue("short", { "x-message-ttl": 1, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead" });
  await publish("short", "x");
  await eventually(async () => (await readQueue("dead")).ready === 1, "the message expires");
  await open("dead");
  await here.page.getByRole("button", { name: "Retry dead letters" }).click();
  await here.page.getByRole("dialog").getByRole("button", { name: "Move 1 message back" }).click();
  await here.page.getByText("Moved 1 message").waitFor();
});

test("bytes that are no text are shown in hexadecimal", async () => {
  await declareQueue("bytes");
  await publish("bytes", Buffer.from([0, 255, 78]).toString("base64"), { payload_encoding: "base64" });
  await open("bytes");
  await peek();
  await here.page.locator(".message summary").click();
  assert.match(await here.page.locator(".message pre").textContent(), /000000 {2}00 ff 4e/);
});

test("a huge body is cut, and the page says so", async () => {
  await declareQueue("huge");
  await publish("huge", "x".repeat(300_000));
  await open("huge");
  await peek();
  await here.page.locator(".message summary").click();
  await here.page.getByText("Only the first 64 KiB of 293 KiB are shown.").waitFor();
});

test("script in names, headers and bodies stays text", async () => {
  const canary = (place) => `<img src=x onerror="window.canary='${place}'"><script>window.canary='${place}'</script>`;
  const name = canary("name");
  await declareQueue(name);
  await publish(name, canary("body"), { headers: { [canary("header")]: canary("value") }, properties: { content_type: canary("type") } });
  await here.page.goto(`${addressOfQueue(name)}`);
  await here.page.getByRole("heading", { name: "Facts" }).waitFor();
  await peek();
  await here.page.locator(".message summary").click();
  for (const place of ["body", "header", "value", "type"]) await here.page.getByText(`window.canary='${place}'`).first().waitFor();
  assert.equal(await here.page.getByRole("heading", { level: 1 }).locator("bdi").textContent(), name);
  await here.page.goto(addressOfQueue(name).replace("/queue?", "/queues?").replace(/name=.*/, `search=${vhost}`));
  await here.page.locator(".virtual-space", { hasText: "window.canary" }).waitFor();
  assert.equal(await here.page.evaluate(() => window.canary), undefined);
  assert.equal(await here.page.locator("#app img, #app script").count(), 0);
});

test("long and right-to-left names keep the page in its width", async () => {
  const long = `long.${"n".repeat(240)}`;
  const hebrew = "תור.שלום\u202egnp";
  for (const name of [long, hebrew]) await declareQueue(name);
  await here.page.setViewportSize({ width: 400, height: 800 });
  for (const name of [long, hebrew]) {
    await open(name);
    const [inner, outer] = await here.page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
    assert.ok(inner <= outer, `${inner} pixels in ${outer}`);
  }
  assert.match(await here.page.getByRole("heading", { level: 1 }).textContent(), /\\u202egnp/);
});
