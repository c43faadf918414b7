import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { address, addressOfQueue, api, bind, declareExchange, declareQueue, login, publish, signIn, vhost, world } from "./world.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

const here = world({ seed });

async function seed() {
  await declareQueue("access");
  await declareQueue("access.stream", { "x-queue-type": "stream" });
  await publish("access", '{"a":1}', { headers: { h: "v" } });
  await publish("access.stream", "x");
  await declareExchange("access.topic", "topic");
  await bind("access.topic", "access", "a.#");
}

const ROUTES = [
  ["overview", () => address("")],
  ["queues", () => address("queues")],
  ["queue", () => addressOfQueue("access")],
  ["streams", () => address("streams")],
  ["stream", () => address("stream", { vhost, name: "access.stream" })],
  ["exchanges", () => address("exchanges")],
  ["exchange", () => address("exchange", { vhost, name: "access.topic" })],
  ["connections", () => address("connections")],
  ["rpc", () => address("rpc")],
  ["trace", () => address("trace", { vhost })],
  ["gateway", () => address("gateway")],
  ...["executions", "rules", "packs", "sensors", "datastore"].map((part) => [part, () => address("automation", { part })]),
  ["users", () => address("users")],
  ["user", () => address("users", { name: login.user })],
  ["policies", () => address("policies")],
  ["configuration", () => address("configuration")],
  ["getting started", () => address("start")],
];

async function violations(page) {
  await page.evaluate(axe);
  const found = await page.evaluate(() => globalThis.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }));
  return found.violations.map((each) => `${each.id}: ${each.nodes.map((node) => node.html.slice(0, 160)).join(" | ")}`);
}

async function settle(page) {
  await page.locator("#content h1").waitFor();
  await page.locator(".loading").first().waitFor({ state: "hidden" });
}

for (const theme of ["light", "dark"]) {
  test(`axe finds nothing on any page, ${theme}`, async () => {
    await here.page.emulateMedia({ colorScheme: theme });
    for (const [name, addressOfRoute] of ROUTES) {
      await here.page.goto(addressOfRoute());
      await settle(here.page);
      assert.deepEqual(await violations(here.page), [], name);
    }
  });
}

test("axe finds nothing in the form, a dialog and an open message", async () => {
  await here.page.goto(addressOfQueue("access"));
  await settle(here.page);
  await here.page.getByRole("button", { name: /^Peek/ }).click();
  await here.page.locator(".message summary").click();
  assert.deepEqual(await violations(here.page), [], "message");
  await here.page.getByRole("button", { name: "Purge" }).click();
  await here.page.getByRole("button", { name: /^Drop/ }).waitFor();
  assert.deepEqual(await violations(here.page), [], "dialog");
  await here.context.clearCookies();
  await here.page.goto(address(""));
  await here.page.getByRole("heading", { name: "Sign in" }).waitFor();
  assert.deepEqual(await violations(here.page), [], "form");
});

test("a queue is reached and purged with keys alone", async () => {
  await declareQueue("keys");
  await publish("keys", "x");
  await here.page.goto(address("queues"));
  await here.page.getByRole("grid", { name: "Queues" }).waitFor();
  await here.page.keyboard.press("/");
  await here.page.keyboard.type("keys");
  await here.page.getByRole("link", { name: "keys", exact: true }).waitFor();
  for (let step = 0; step < 20; step += 1) {
    await here.page.keyboard.press("Tab");
    if (await here.page.evaluate(() => document.activeElement.classList.contains("virtual-grid"))) break;
  }
  await here.page.keyboard.press("End");
  await here.page.keyboard.press("Home");
  await here.page.keyboard.press("Enter");
  await here.page.getByRole("heading", { name: "keys", level: 1 }).waitFor();
  await settle(here.page);
  await here.page.getByRole("button", { name: "Purge" }).waitFor();
  for (let step = 0; step < 20; step += 1) {
    await here.page.keyboard.press("Tab");
    if ((await here.page.evaluate(() => document.activeElement.textContent)) === "Purge") break;
  }
  await here.page.keyboard.press("Enter");
  await here.page.getByRole("button", { name: "Drop 1 message" }).waitFor();
  for (let step = 0; step < 5; step += 1) {
    await here.page.keyboard.press("Tab");
    if ((await here.page.evaluate(() => document.activeElement.textContent)) === "Drop 1 message") break;
  }
  await here.page.keyboard.press("Enter");
  await here.page.getByText("Dropped 1 message.").waitFor();
  assert.equal(await here.page.evaluate(() => document.activeElement.textContent), "Purge", "the focus returns to the button");
});

test("the theme is switched and kept", async () => {
  await here.page.goto(address(""));
  const background = () => here.page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await background();
  await here.page.getByLabel("Theme").selectOption("dark");
  const dark = await background();
  assert.notEqual(light, dark);
  await here.page.reload();
  await settle(here.page);
  assert.equal(await background(), dark);
});

test("the language is switched and kept", async () => {
  await here.page.goto(address("queues"));
  await here.page.getByLabel("Language").selectOption("ja");
  await here.page.getByRole("heading", { name: "キュー" }).waitFor();
  await here.page.reload();
  await here.page.getByRole("heading", { name: "キュー" }).waitFor();
  assert.equal(await here.page.evaluate(() => document.documentElement.lang), "ja");
});

test("every page fits 400 pixels and 4K", async () => {
  for (const [width, height] of [[400, 800], [3840, 2160]]) {
    await here.page.setViewportSize({ width, height });
    for (const [name, addressOfRoute] of ROUTES) {
      await here.page.goto(addressOfRoute());
      await settle(here.page);
      const [inner, outer] = await here.page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
      assert.ok(inner <= outer, `${name}: ${inner} pixels in ${outer}`);
    }
  }
});

test("the menu of a narrow window opens and leads on", async () => {
  await here.page.setViewportSize({ width: 400, height: 800 });
  await here.page.goto(address(""));
  await here.page.getByRole("button", { name: "Menu" }).click();
  await here.page.getByRole("link", { name: "Exchanges" }).click();
  await here.page.getByRole("heading", { name: "Exchanges", exact: true }).waitFor();
  assert.equal(await here.page.getByRole("link", { name: "Exchanges" }).isVisible(), false);
});

test("a user without rights is told what is missing", async () => {
  const reader = { user: `reader-${vhost}`, password: "a-reader-of-nothing" };
  await api("PUT", `/v1/users/${reader.user}`, { password: reader.password, tags: ["management"] });
  await api("PUT", `/v1/users/${reader.user}/permissions/${vhost}`, { configure: "", write: "", read: "" });
  try {
    await here.context.clearCookies();
    await signIn(here.context, reader);
    await here.page.goto(addressOfQueue("access"));
    await here.page.getByRole("button", { name: /^Peek/ }).click();
    await here.page.getByRole("alert").getByText("lacks the right").waitFor();
    assert.equal(await here.page.getByRole("link", { name: "Users" }).count(), 0);
    await here.page.goto(address(""));
    await here.page.locator("section", { hasText: "Stalls in the last hour" }).getByRole("alert").waitFor();
  } finally {
    await api("DELETE", `/v1/users/${reader.user}`);
  }
});

test("an unknown page says so", async () => {
  await here.page.goto(address("nowhere"));
  await here.page.getByRole("heading", { name: "There is no such page" }).waitFor();
});

test("a page whose file the broker no longer has asks to be loaded again", async () => {
  await here.page.goto(address("exchanges"));
  await settle(here.page);
  await here.page.route("**/assets/policies-*.js", (route) => route.abort());
  await here.page.getByRole("link", { name: "Policies" }).click();
  await here.page.getByRole("button", { name: "Load again" }).waitFor();
  await here.page.unroute("**/assets/policies-*.js");
  await here.page.getByRole("button", { name: "Load again" }).click();
  await here.page.getByRole("heading", { name: "Policies", exact: true }).waitFor();
});
