import assert from "node:assert/strict";
import { test } from "node:test";
import type { Calls } from "../src/api/types.ts";
import { CallHistory, COLUMNS_MAX, quantile, rowsInUse } from "../src/pages/traffic/call-history.ts";
import { outcomeOf } from "../src/pages/traffic/outcome.ts";

function reading(measuredMs: number, replies: number, times: number[]): Calls {
  const service = { vhost: "/", exchange: "", subject: "add", requests: replies, replies, timed_out: 0, unroutable: 0, in_flight: 0, oldest_ms: null, times, longest_us: 0, responders: [] };
  return { measured_ms: measuredMs, orphan_replies: 0, not_followed: 0, bounds_us: [100, 200], services: [service] };
}

test("columns and rates are the differences of two readings", () => {
  const history = new CallHistory();
  history.add(reading(0, 5, [5, 0, 0]), 1_000);
  assert.deepEqual(history.columns, []);
  history.add(reading(2_000, 11, [6, 4, 1]), 3_000);
  assert.deepEqual(history.columns, [{ time: 3_000, counts: [1, 4, 1] }]);
  assert.deepEqual([...history.rates.values()], [{ requests: 3, replies: 3 }]);
});

test("a measurement that began anew forgets the old one", () => {
  const history = new CallHistory();
  history.add(reading(0, 5, [5, 0, 0]), 0);
  history.add(reading(1_000, 6, [6, 0, 0]), 1_000);
  history.add(reading(0, 1, [1, 0, 0]), 2_000);
  assert.deepEqual(history.columns, []);
});

test("a minute of columns is kept", () => {
  const history = new CallHistory();
  for (let second = 0; second < 2 * COLUMNS_MAX; second += 1) history.add(reading(second * 1_000, second, [second, 0, 0]), second * 1_000);
  assert.equal(history.columns.length, COLUMNS_MAX);
});

test("a quantile lies within its bucket", () => {
  assert.equal(quantile([100, 200], [0, 0, 0], 0.5), null);
  assert.equal(quantile([100, 200], [0, 10, 0], 0.5), 150);
  assert.equal(quantile([100, 200], [0, 0, 10], 0.5), 200, "the last bucket has no upper bound");
});

test("rows without a call at either end are left out", () => {
  assert.equal(rowsInUse([{ time: 0, counts: [0, 0, 0] }], 3), null);
  assert.deepEqual(rowsInUse([{ time: 0, counts: [0, 1, 0] }, { time: 1, counts: [0, 0, 1] }], 3), { first: 1, last: 2 });
});

test("the outcome of a message is its last step", () => {
  const step = (name: string, queue: string | null = "q") => ({ after_us: 0, step: name, queue, connection: null, receivers: null, reason: null, exchange: null, subject: null });
  assert.equal(outcomeOf({ steps: [] }).word, "unroutable");
  assert.equal(outcomeOf({ steps: [step("queued"), step("routed")] }).word, "waiting");
  assert.equal(outcomeOf({ steps: [step("queued"), step("delivered"), step("routed"), step("accepted")] }).word, "accepted");
  assert.deepEqual(outcomeOf({ steps: [step("delivered", null), step("routed")] }), { word: "delivered", tone: "good" });
});
