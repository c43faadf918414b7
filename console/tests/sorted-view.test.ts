import assert from "node:assert/strict";
import { test } from "node:test";
import { DeltaTable } from "../src/feed/delta-table.ts";
import { SortedView, type Sort } from "../src/feed/sorted-view.ts";
import { chunk, type Item } from "./check.ts";

const BY_NAME: Sort<Item> = { column: "name", isDescending: false };
const BY_READY: Sort<Item> = { column: "ready", isDescending: true };

function filled(): { table: DeltaTable<Item>; view: SortedView<Item> } {
  const table = new DeltaTable<Item>((row) => row.name.toLowerCase());
  table.apply(chunk([[1, "Orders", 5], [2, "mail", null], [3, "audit", 9]], { reset: true }));
  return { table, view: new SortedView(table) };
}

function names(view: SortedView<Item>, sort: Sort<Item>, needle = ""): string[] {
  return view.rows(sort, needle).map((row) => row.value.name);
}

test("rows are sorted by any column, unknown values last", () => {
  const { view } = filled();
  assert.deepEqual(names(view, BY_READY), ["audit", "Orders", "mail"]);
  assert.deepEqual(names(view, { ...BY_READY, isDescending: false }), ["Orders", "audit", "mail"]);
});

test("a search ignores case and spaces around it", () => {
  const { view } = filled();
  assert.deepEqual(names(view, BY_NAME, " ORD "), ["Orders"]);
  assert.deepEqual(names(view, BY_NAME, "nothing"), []);
  assert.equal(names(view, BY_NAME).length, 3);
});

test("changes keep the order without a new sort", () => {
  const { table, view } = filled();
  names(view, BY_READY);
  table.apply(chunk([[1, "Orders", 20], [4, "new", 10]], { removed: [2] }));
  assert.deepEqual(names(view, BY_READY), ["Orders", "new", "audit"]);
});

test("merged changes give the order of a whole sort", () => {
  const table = new DeltaTable<Item>((row) => row.name);
  const rows = Array.from({ length: 500 }, (_, id) => [id, `q${(id * 7919) % 500}`, (id * 31) % 97] as const);
  table.apply(chunk(rows, { reset: true }));
  const view = new SortedView(table);
  view.rows(BY_READY, "");
  for (let round = 1; round < 20; round += 1) {
    const changed = Array.from({ length: 50 }, (_, index) => {
      const id = (index * 13 + round * 7) % 500;
      return [id, `q${id}`, (id * round) % 89] as const;
    });
    table.apply(chunk(changed, { removed: [round * 3] }));
    const merged = view.rows(BY_READY, "").map((row) => row.value.id);
    assert.deepEqual(merged, new SortedView(table).rows(BY_READY, "").map((row) => row.value.id), `round ${round}`);
  }
});
