import assert from "node:assert/strict";
import { test } from "node:test";
import { EventParser } from "../src/feed/event-parser.ts";
import { Feed } from "../src/feed/feed.ts";
import { RETRY_MS_MAX, SILENCE_MS_MAX } from "../src/feed/limits.ts";
import type { Topic } from "../src/feed/protocol.ts";
import { Samples } from "../src/feed/samples.ts";
import { advance, retryDelayMs, type FeedInput, type FeedStatus } from "../src/feed/status.ts";

test("events are found however their text is cut", () => {
  const text = "event: hello\r\ndata: {\"a\":1}\r\n\r\n:\n\nevent: queues\ndata: 1\ndata: 2\n\ndata: x\n\n";
  const whole = [
    { event: "hello", data: '{"a":1}' },
    { event: "queues", data: "1\n2" },
    { event: "message", data: "x" },
  ];
  for (let size = 1; size <= text.length; size += 1) {
    const parser = new EventParser();
    const events = [];
    for (let from = 0; from < text.length; from += size) events.push(...parser.push(text.slice(from, from + size)));
    assert.deepEqual(events, whole, `pieces of ${size}`);
  }
});

test("the state of the feed follows its inputs", () => {
  const live: FeedStatus = { kind: "live" };
  const rows: readonly [FeedStatus, FeedInput, FeedStatus][] = [
    [{ kind: "connecting" }, { kind: "hello" }, live],
    [live, { kind: "silence", since: 7 }, { kind: "stalled", since: 7 }],
    [{ kind: "stalled", since: 7 }, { kind: "lost" }, { kind: "stalled", since: 7 }],
    [{ kind: "stalled", since: 7 }, { kind: "hello" }, live],
    [live, { kind: "lost" }, { kind: "reconnecting", attempts: 1 }],
    [{ kind: "reconnecting", attempts: 1 }, { kind: "lost" }, { kind: "reconnecting", attempts: 2 }],
    [live, { kind: "hidden" }, { kind: "paused" }],
    [live, { kind: "refused", reason: "no" }, { kind: "refused", reason: "no" }],
    [live, { kind: "signed_out" }, { kind: "signed_out" }],
  ];
  for (const [status, input, expected] of rows) assert.deepEqual(advance(status, input), expected, `${status.kind} and ${input.kind}`);
});

test("pauses between attempts grow to a limit", () => {
  assert.ok(retryDelayMs(1, 0) >= 250);
  assert.ok(retryDelayMs(3, 0.5) > retryDelayMs(1, 0.5));
  assert.equal(retryDelayMs(1_000, 1), RETRY_MS_MAX);
});

function answer(events: readonly (readonly [string, unknown])[]): Response {
  const text = events.map(([event, data]) => `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`).join("");
  return new Response(text, { status: 200 });
}

const HELLO = { version: "1", node: "n", started: 1_000, now: Date.now() + 86_400_000, interval_ms: 1_000 };

async function settled(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

test("a topic that is refused is left out, and the rest goes on", async () => {
  const asked: (readonly Topic[])[] = [];
  const feed = new Feed((topics) => {
    asked.push(topics);
    const refusal = new Response('{"detail":"you may not see `connections`"}', { status: 403 });
    return Promise.resolve(topics.includes("connections") ? refusal : answer([["hello", HELLO]]));
  });
  feed.want("connections");
  await settled();
  assert.deepEqual(asked.at(-1), ["overview"]);
  assert.equal(feed.isForbidden("connections"), true);
  feed.stop();
});

test("an ended session is told, and no attempt follows", async () => {
  const feed = new Feed(() => Promise.resolve(new Response("", { status: 401 })));
  feed.start();
  await settled();
  assert.equal(feed.status.kind, "signed_out");
  feed.stop();
});

test("time is the broker's, with a browser a day behind", async () => {
  const feed = new Feed(() => Promise.resolve(answer([["hello", HELLO]])));
  feed.start();
  await settled();
  assert.ok(Math.abs(feed.now() - HELLO.now) < 5_000);
  feed.stop();
});

test("another start of the broker is noticed", async () => {
  const hellos = [HELLO, HELLO, { ...HELLO, started: 2_000 }];
  const feed = new Feed(() => Promise.resolve(answer([["hello", hellos.shift()]])));
  feed.start();
  await settled();
  feed.want("queues");
  await settled();
  assert.equal(feed.restartedAt, null);
  feed.want("connections");
  await settled();
  assert.equal(feed.restartedAt, 2_000);
  feed.stop();
});

test("a silent feed is stalled since its last sign of life, and asked again", async (context) => {
  context.mock.timers.enable({ apis: ["setInterval", "setTimeout", "Date"], now: 1_000_000 });
  let opened = 0;
  const feed = new Feed(() => {
    opened += 1;
    const hello = new TextEncoder().encode(`event: hello\ndata: ${JSON.stringify({ ...HELLO, now: 1_000_000 })}\n\n`);
    return Promise.resolve(new Response(new ReadableStream({ start: (stream) => (opened === 1 ? stream.enqueue(hello) : undefined) })));
  });
  feed.start();
  await settled();
  assert.equal(feed.status.kind, "live");
  context.mock.timers.tick(SILENCE_MS_MAX);
  await settled();
  assert.deepEqual(feed.status, { kind: "stalled", since: 1_000_000 });
  assert.equal(opened, 2);
  feed.stop();
});

test("an event that this console does not know is passed over", async () => {
  const feed = new Feed(() => Promise.resolve(answer([["hello", HELLO], ["later", {}], ["stall", { began: 1, what: "cell" }]])));
  feed.start();
  await settled();
  assert.equal(feed.stalls.length, 1);
  feed.stop();
});

test("a stall that ends replaces the one that began", () => {
  const feed = new Feed(() => Promise.reject(new Error("offline")));
  const stall = { what: "cell", began: 5, lasted_ms: 1, over: false, cause: "cpu", text: "", queued_bytes: 0, unsynced_records: 0, cell: 1 };
  feed.addStalls([stall]);
  feed.addStalls([{ ...stall, over: true, lasted_ms: 90 }]);
  assert.deepEqual(feed.stalls.map((each) => each.lasted_ms), [90]);
});

test("history comes before live samples, and none of them twice", () => {
  const samples = new Samples(5);
  samples.push(4_000, { a: 4 });
  samples.push(5_000, { a: 5, b: 1 });
  samples.load({ step_ms: 1_000, until: 4_000, samples: { a: [1, null, 3, 40] } });
  assert.deepEqual(samples.times, [1_000, 2_000, 3_000, 4_000, 5_000]);
  assert.deepEqual(samples.values("a"), [1, null, 3, 40, 5]);
  assert.deepEqual(samples.values("b"), [null, null, null, null, 1]);
  samples.push(5_000, { a: 9 });
  samples.push(6_000, { a: 6 });
  assert.deepEqual(samples.values("a"), [null, 3, 40, 5, 6]);
  assert.equal(samples.latest("b"), null);
});
