import assert from "node:assert/strict";
import { test } from "node:test";
import { address, addressOfQueue, api, declareQueue, eventually, publish, stompClient, vhost, world } from "./world.mjs";

const here = world();

test("a message is followed from its publish to its outcome", async () => {
  await declareQueue("traced");
  await here.page.goto(addressOfQueue("traced"));
  await here.page.getByRole("link", { name: "Trace", exact: true }).click();
  await here.page.getByRole("heading", { name: "Message trace" }).waitFor();
  assert.equal(await here.page.getByLabel("Queue").inputValue(), "traced");
  await here.page.getByRole("button", { name: "Start", exact: true }).click();
  await here.page.getByText("0 of at most 100 messages").waitFor();
  const client = await stompClient();
  client.send("/queue/traced", "hello");
  await here.page.getByText("1 of at most 100 messages").waitFor();
  await here.page.getByText("waiting", { exact: true }).waitFor();
  await api("POST", `/v1/queues/${encodeURIComponent(vhost)}/traced/take`, { count: 1, outcome: "accept" });
  await here.page.locator(".traced summary").click();
  for (const text of ["put into the queue", "routed to 1 receiver", "STOMP 1.2"]) await here.page.getByText(text).first().waitFor();
  client.close();
});

test("names of messages stay text in a trace", async () => {
  await declareQueue("<img src=x onerror=alert(1)>");
  await here.page.goto(address("trace", { vhost }));
  await here.page.getByRole("button", { name: "Start", exact: true }).click();
  await here.page.getByText("0 of at most 100 messages").waitFor();
  await publish("<img src=x onerror=alert(1)>", "x");
  await here.page.getByText("<img src=x onerror=alert(1)>").first().waitFor();
  assert.equal(await here.page.locator("#content img").count(), 0);
});

test("a trace is ended and forgotten", async () => {
  await here.page.goto(address("trace", { vhost }));
  await here.page.getByRole("button", { name: "Start", exact: true }).click();
  await here.page.getByRole("button", { name: "End and forget" }).click();
  await here.page.getByText("No trace has been started.").waitFor();
});

test("a trace of no vhost is refused with the reason", async () => {
  await here.page.goto(address("trace", { vhost: "absent" }));
  await here.page.getByRole("button", { name: "Start", exact: true }).click();
  await here.page.getByRole("alert").getByText("there is no vhost `absent`").waitFor();
});

test("calls appear with their service, and those without a reply wait", async () => {
  await declareQueue("service");
  await declareQueue("answers");
  await here.page.goto(address("rpc"));
  await here.page.getByText("No request has been published").waitFor();
  const properties = (id) => ({ properties: { reply_to: "answers", correlation_id: id } });
  await publish("service", "1", properties("a"));
  await publish("service", "2", properties("b"));
  const row = here.page.getByRole("row").filter({ hasText: "service" }).filter({ hasText: "the oldest" });
  await row.getByText(/^2, the oldest for/).waitFor();
  await publish("answers", "1", { properties: { correlation_id: "a" } });
  await row.getByText(/^1, the oldest for/).waitFor();
  await eventually(async () => (await here.page.locator(".heat-map rect").count()) > 0, "the heat map has a cell");
  await here.page.getByText("Show as a table").click();
  await here.page.getByRole("columnheader", { name: /^up to / }).first().waitFor();
});
