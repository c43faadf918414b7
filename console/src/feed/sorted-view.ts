// The rows of a delta table in the order and selection that a page shows.
// It is made for 100,000 rows: a change of some rows costs one pass over the list, not a new sort.

import type { DeltaTable, Reader, Row } from "./delta-table.ts";

export type Sort<T> = { readonly column: keyof T & string; readonly isDescending: boolean };

/** A row beside its value in the sorted column; reading that value at each comparison would be most of the work. */
type Entry<T, K> = { readonly row: Row<T>; readonly version: number; readonly id: number; readonly key: K };

/** An order of entries, and how a row becomes an entry of it. */
type Order<T, K> = {
  readonly entryOf: (row: Row<T>) => Entry<T, K>;
  readonly compare: (a: Entry<T, K>, b: Entry<T, K>) => number;
};

export class SortedView<T extends { readonly id: number }> {
  #list: SortedList<T> | null = null;
  #sort: Sort<T> | null = null;
  #needle = "";
  #shown: readonly Row<T>[] | null = null;
  readonly #table: DeltaTable<T>;
  readonly #reader: Reader<T>;

  constructor(table: DeltaTable<T>) {
    this.#table = table;
    this.#reader = table.reader();
  }

  close(): void {
    this.#reader.close();
  }

  /** Returns the rows that contain `needle`, in the order of `sort`. */
  rows(sort: Sort<T>, needle: string): readonly Row<T>[] {
    const isFresh = this.#follow(sort);
    const lower = needle.trim().toLowerCase();
    if (isFresh || lower !== this.#needle || this.#shown === null) {
      this.#needle = lower;
      this.#shown = this.#list?.rows(lower) ?? [];
    }
    return this.#shown;
  }

  #follow(sort: Sort<T>): boolean {
    const changes = this.#reader.take();
    const isResorted = sort.column !== this.#sort?.column || sort.isDescending !== this.#sort.isDescending;
    this.#sort = sort;
    if (this.#list === null || changes.isReset || isResorted) {
      this.#list = sortedList(this.#table, sort);
      return true;
    }
    if (changes.changed.size === 0 && !changes.hasRemoved) return false;
    this.#list.update(changes.changed);
    return true;
  }
}

type SortedList<T> = {
  rows(needle: string): readonly Row<T>[];
  /** Puts changed rows in their places, and drops rows that the table no longer has. */
  update(changed: ReadonlySet<Row<T>>): void;
};

function sortedList<T extends { readonly id: number }>(table: DeltaTable<T>, sort: Sort<T>): SortedList<T> {
  const isText = hasText(table, sort.column);
  return isText ? new EntryList(table, orderOfText(sort)) : new EntryList(table, orderOfNumbers(sort));
}

/** Whether a column is of text. Its first value says so; a column may begin with rows that have none. */
function hasText<T extends { readonly id: number }>(table: DeltaTable<T>, column: keyof T): boolean {
  for (const row of table.rows.values()) {
    const value: unknown = row.value[column];
    if (value !== null && value !== undefined) return typeof value === "string";
  }
  return false;
}

class EntryList<T extends { readonly id: number }, K> implements SortedList<T> {
  #entries: Entry<T, K>[];
  readonly #order: Order<T, K>;

  constructor(table: DeltaTable<T>, order: Order<T, K>) {
    this.#order = order;
    this.#entries = Array.from(table.rows.values(), order.entryOf).sort(order.compare);
  }

  rows(needle: string): readonly Row<T>[] {
    const rows: Row<T>[] = [];
    for (const { row } of this.#entries) {
      if (needle === "" || row.text.includes(needle)) rows.push(row);
    }
    return rows;
  }

  update(changed: ReadonlySet<Row<T>>): void {
    const { compare, entryOf } = this.#order;
    const fresh = Array.from(changed, entryOf).sort(compare);
    const merged: Entry<T, K>[] = [];
    let next = 0;
    for (const entry of this.#entries) {
      if (entry.version !== entry.row.version) continue;
      for (let other = fresh[next]; other !== undefined && compare(other, entry) < 0; other = fresh[next]) {
        merged.push(other);
        next += 1;
      }
      merged.push(entry);
    }
    merged.push(...fresh.slice(next));
    this.#entries = merged;
  }
}

/** Numbers and claims; rows without a value stand last in either order, rows with equal ones by their ids. */
function orderOfNumbers<T extends { readonly id: number }>(sort: Sort<T>): Order<T, number> {
  const sign = sort.isDescending ? -1 : 1;
  return {
    entryOf: (row) => {
      const value: unknown = row.value[sort.column];
      return { row, version: row.version, id: row.value.id, key: value === null || value === undefined ? Infinity : sign * Number(value) };
    },
    // The difference of two infinities is not a number, and the ids decide.
    compare: (a, b) => a.key - b.key || a.id - b.id,
  };
}

function orderOfText<T extends { readonly id: number }>(sort: Sort<T>): Order<T, string | null> {
  const sign = sort.isDescending ? -1 : 1;
  return {
    entryOf: (row) => {
      const value: unknown = row.value[sort.column];
      return { row, version: row.version, id: row.value.id, key: typeof value === "string" ? value : null };
    },
    compare: (a, b) => {
      if (a.key === b.key) return a.id - b.id;
      if (a.key === null) return 1;
      if (b.key === null) return -1;
      return a.key < b.key ? -sign : sign;
    },
  };
}
