import assert from "node:assert/strict";
import { test } from "node:test";
import { address, api, eventually, world } from "./world.mjs";

const here = world();
const part = (name, more = {}) => address("automation", { part: name, ...more });
const run = (cmd) => api("POST", "/automation/v1/executions", { action: "core.local", parameters: { cmd } });

test("an execution appears, and its page has parameters and result", async () => {
  await here.page.goto(part("executions"));
  const { id } = await run("echo newt");
  await here.page.locator(`a[href*="${id}"]`).click();
  await here.page.getByText("succeeded").first().waitFor();
  await here.page.getByText("echo newt").first().waitFor();
  assert.match(await here.page.locator("pre").textContent(), /"stdout": "newt"/);
});

test("an execution is cancelled from its page, and run again", async () => {
  const { id } = await run("sleep 60");
  await here.page.goto(part("executions", { execution: id }));
  await here.page.getByRole("button", { name: "Cancel the execution" }).click();
  const question = here.page.getByRole("dialog");
  await question.getByText("Cancel the execution of core.local").waitFor();
  assert.equal((await api("GET", `/automation/v1/executions/${id}`)).status, "running");
  await question.getByRole("button", { name: "Cancel the execution" }).click();
  await here.page.getByText("canceled", { exact: true }).waitFor();
  const ended = await run("echo again");
  await here.page.goto(part("executions", { execution: ended.id }));
  await here.page.getByRole("button", { name: "Run again" }).click();
  await eventually(() => !here.page.url().includes(ended.id), "the page is that of the new execution");
  await here.page.getByText("succeeded").first().waitFor();
});

test("executions are filtered by status and action", async () => {
  await run("exit 3");
  await here.page.goto(part("executions"));
  await here.page.getByLabel("Status").selectOption("failed");
  await here.page.getByRole("cell", { name: "failed" }).first().waitFor();
  assert.equal(await here.page.getByRole("cell", { name: "succeeded" }).count(), 0);
  await here.page.getByLabel("Action").fill("core.absent");
  await here.page.getByText("No execution matches.").waitFor();
});

test("a rule is found, disabled and enabled, and shows its criteria", async () => {
  const rule = { name: "flow", pack: "default", enabled: true, trigger: { type: "core.st2.webhook", parameters: { url: "flow" } }, criteria: { "trigger.body.kind": { type: "equals", pattern: "newt" } }, action: { ref: "core.noop" } };
  await api("POST", "/automation/v1/rules", rule);
  await here.page.goto(part("rules"));
  await here.page.getByLabel("Search").fill("default.flow");
  const enabled = here.page.getByLabel("default.flow is enabled");
  await enabled.click();
  await eventually(async () => !(await enabled.isChecked()), "the rule is disabled");
  assert.equal((await api("GET", "/automation/v1/rules/default.flow")).enabled, false);
  await enabled.click();
  await eventually(async () => await enabled.isChecked(), "the rule is enabled");
  await here.page.getByRole("button", { name: "default.flow" }).click();
  await here.page.getByText("trigger.body.kind").waitFor();
  await here.page.getByText("No event has matched.").waitFor();
  await api("DELETE", "/automation/v1/rules/default.flow");
});

test("packs show their actions", async () => {
  await here.page.goto(part("packs"));
  await here.page.getByRole("button", { name: "core", exact: true }).click();
  await here.page.getByRole("cell", { name: "core.local", exact: true }).waitFor();
});

test("a key is set, kept encrypted, and deleted after a question", async () => {
  await here.page.goto(part("datastore"));
  await here.page.getByLabel("Key", { exact: true }).fill("<b>flow</b>");
  await here.page.getByLabel("Keep the value encrypted").check();
  await here.page.getByLabel("Value", { exact: true }).fill("the-secret");
  await here.page.getByRole("button", { name: "Set a key of the system" }).click();
  await here.page.getByRole("cell", { name: "encrypted" }).waitFor();
  assert.equal((await here.page.content()).includes("the-secret"), false);
  await here.page.getByRole("button", { name: "Delete the key <b>flow</b>" }).click();
  await here.page.getByRole("dialog").getByRole("button", { name: "Delete", exact: true }).click();
  await here.page.getByRole("cell", { name: "encrypted" }).waitFor({ state: "detached" });
});

test("the automation answers to the session of the page alone", async () => {
  const response = await here.context.request.get(address("").replace("/console/", "/automation/v1/packs"), { headers: { "sec-fetch-site": "cross-site" } });
  assert.equal(response.status(), 401);
});

test("the gateway's routes are shown with the faults of their scripts", async () => {
  const { listeners } = await api("GET", "/v1/overview");
  const gateway = listeners.find((each) => each.name === "http").address;
  await fetch(`http://${gateway}/hello`);
  await fetch(`http://${gateway}/broken`);
  await here.page.goto(address("gateway"));
  await here.page.getByRole("cell", { name: "/hello" }).first().waitFor();
  await here.page.getByText("a newt is missing (RuntimeError)").waitFor();
  await here.page.getByText(/routes\.toml:\d+/).first().waitFor();
});
