// The rows of a delta table in the order and selection that a page shows.
// It is made for 100,000 rows: a change of some rows costs one pass over the list, not a new sort.

import type { DeltaTable, Reader, Row } from "./delta-table.ts";

export type Sort<T> = { readonly column: keyof T & string; readonly isDescending: boolean };

export class SortedView<T extends { readonly id: number }> {
  #sorted: Row<T>[] = [];
  #sort: Sort<T>;
  #needle = "";
  #shown: readonly Row<T>[] | null = null;
  readonly #table: DeltaTable<T>;
  readonly #reader: Reader<T>;

  constructor(table: DeltaTable<T>, sort: Sort<T>) {
    this.#table = table;
    this.#reader = table.reader();
    this.#sort = sort;
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
      this.#shown = lower === "" ? this.#sorted : this.#sorted.filter((row) => row.text.includes(lower));
    }
    return this.#shown;
  }

  #follow(sort: Sort<T>): boolean {
    const compare = compareBy(sort);
    const changes = this.#reader.take();
    const isResorted = sort.column !== this.#sort.column || sort.isDescending !== this.#sort.isDescending;
    this.#sort = sort;
    if (changes.isReset || isResorted) {
      this.#sorted = [...this.#table.rows.values()].sort(compare);
      return true;
    }
    if (changes.changed.size === 0 && changes.removed.size === 0) return false;
    const kept = this.#sorted.filter((row) => !changes.changed.has(row) && !changes.removed.has(row));
    this.#sorted = merge(kept, [...changes.changed].sort(compare), compare);
    return true;
  }
}

type Compare<T> = (a: Row<T>, b: Row<T>) => number;

function compareBy<T extends { readonly id: number }>(sort: Sort<T>): Compare<T> {
  const sign = sort.isDescending ? -1 : 1;
  return (a, b) => {
    const left = a.value[sort.column];
    const right = b.value[sort.column];
    // Rows without a value stand last in either order.
    if (left === null || left === undefined || right === null || right === undefined) {
      if (left !== right) return left === null || left === undefined ? 1 : -1;
    } else if (left < right) {
      return -sign;
    } else if (left > right) {
      return sign;
    }
    return a.value.id - b.value.id;
  };
}

function merge<T>(left: readonly Row<T>[], right: readonly Row<T>[], compare: Compare<T>): Row<T>[] {
  const merged: Row<T>[] = [];
  let next = 0;
  for (const row of left) {
    for (let other = right[next]; other !== undefined && compare(other, row) < 0; other = right[next]) {
      merged.push(other);
      next += 1;
    }
    merged.push(row);
  }
  for (; next < right.length; next += 1) merged.push(right[next] as Row<T>);
  return merged;
}
