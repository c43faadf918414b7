import assert from "node:assert/strict";
import { test } from "node:test";
import type { Binding, Exchange } from "../src/api/types.ts";
import { isTopicMatch, routeOf } from "../src/routing.ts";

test("patterns of topic exchanges", () => {
  const rows: readonly [string, string, boolean][] = [
    ["a.b", "a.b", true],
    ["a.*", "a.b", true],
    ["a.*", "a", false],
    ["a.*", "a.b.c", false],
    ["a.#", "a", true],
    ["a.#", "a.b.c", true],
    ["#", "", true],
    ["#", "a.b", true],
    ["*", "", false],
    ["#.b", "a.b", true],
    ["#.b", "b.a", false],
    ["a.#.d", "a.d", true],
    ["a.#.d", "a.b.c.d", true],
    ["#.#", "a", true],
    ["*.#.*", "a", false],
  ];
  for (const [pattern, subject, expected] of rows) assert.equal(isTopicMatch(pattern, subject), expected, `${pattern} against ${subject}`);
});

function exchange(name: string, type: string, args: Record<string, unknown> = {}): Exchange {
  return { name, type, vhost: "/", durable: true, auto_delete: false, internal: false, arguments: args };
}

function binding(source: string, destination: string, key: string, kind: "queue" | "exchange" = "queue"): Binding {
  return { source, destination, destination_type: kind, routing_key: key, arguments: {}, vhost: "/" };
}

const EXCHANGES = [
  exchange("topic", "topic"),
  exchange("fanout", "fanout"),
  exchange("direct", "direct", { "alternate-exchange": "fanout" }),
  exchange("headers", "headers"),
  exchange("delayed", "x-delayed-message", { "x-delayed-type": "direct" }),
];
const BINDINGS = [
  binding("topic", "orders", "order.#"),
  binding("topic", "fanout", "order.eu.*", "exchange"),
  binding("topic", "headers", "mail.#", "exchange"),
  binding("fanout", "all", "ignored"),
  binding("fanout", "topic", "", "exchange"),
  binding("direct", "exact", "key"),
  binding("headers", "mail", ""),
  binding("delayed", "later", "key"),
];

test("a subject goes where the bindings say, through exchanges and in circles", () => {
  const rows: readonly [string, string, readonly string[], readonly string[], string | null][] = [
    ["topic", "order.us", ["orders"], [], null],
    ["topic", "order.eu.1", ["orders", "all"], [], null],
    ["topic", "mail.x", [], ["headers"], null],
    ["topic", "none", [], [], null],
    ["fanout", "anything", ["all"], [], null],
    ["direct", "key", ["exact"], [], null],
    ["direct", "other", ["all"], [], "fanout"],
    ["delayed", "key", ["later"], [], null],
  ];
  for (const [from, subject, queues, byHeaders, alternate] of rows) {
    const first = EXCHANGES.find((each) => each.name === from);
    assert.ok(first !== undefined);
    const route = routeOf(first, subject, EXCHANGES, BINDINGS);
    assert.deepEqual(route.destinations.map((destination) => destination.queue), queues, `${from} ${subject}`);
    assert.deepEqual(route.byHeaders, byHeaders, `${from} ${subject}`);
    assert.equal(route.alternate, alternate, `${from} ${subject}`);
  }
});
