import assert from "node:assert/strict";
import { test } from "node:test";
import { DeltaTable } from "../src/feed/delta-table.ts";
import { chunk, type Item } from "./check.ts";

function table(): DeltaTable<Item> {
  return new DeltaTable<Item>((row) => row.name.toLowerCase());
}

function names(of: DeltaTable<Item>): string[] {
  return [...of.rows.values()].map((row) => row.value.name);
}

test("a table is complete with its last chunk, and not before", () => {
  const queues = table();
  queues.apply(chunk([[1, "a", 0]], { reset: true, last: false }));
  assert.equal(queues.isComplete, false);
  assert.equal(queues.arriving, 1);
  queues.apply(chunk([[2, "b", 0]]));
  assert.equal(queues.isComplete, true);
  assert.deepEqual(names(queues), ["a", "b"]);
});

test("old rows stay until a new table is whole", () => {
  const queues = table();
  queues.apply(chunk([[1, "a", 0]], { reset: true }));
  queues.apply(chunk([[2, "b", 0]], { reset: true, last: false }));
  assert.deepEqual(names(queues), ["a"]);
  queues.apply(chunk([], { last: true }));
  assert.deepEqual(names(queues), ["b"]);
});

test("changed rows replace, removed ids disappear, unknown ids do no harm", () => {
  const queues = table();
  queues.apply(chunk([[1, "a", 0], [2, "b", 0]], { reset: true }));
  queues.apply(chunk([[2, "b", 7], [3, "c", 1]], { removed: [1, 99] }));
  assert.deepEqual([...queues.rows.values()].map((row) => row.value), [
    { id: 2, name: "b", ready: 7 },
    { id: 3, name: "c", ready: 1 },
  ]);
});

test("columns are found by name, in any order and with unknown ones", () => {
  const queues = table();
  queues.apply({ ...chunk([["new", "a", 5, 1]], { reset: true }), columns: ["later", "name", "ready", "id"] });
  assert.equal(queues.rows.get(1)?.value.ready, 5);
});

test("a reader gets each change once", () => {
  const queues = table();
  queues.apply(chunk([[1, "a", 0], [2, "b", 0]], { reset: true }));
  const reader = queues.reader();
  assert.equal(reader.take().isReset, true);
  queues.apply(chunk([[1, "a", 1]], { removed: [2] }));
  const changes = reader.take();
  assert.deepEqual([changes.isReset, changes.changed.size, changes.hasRemoved], [false, 1, true]);
  assert.equal(reader.take().changed.size, 0);
});
