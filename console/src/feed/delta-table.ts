// A table that the feed keeps up to date: whole at first, then only the rows that changed.
// Rows are changed in place, so that a sorted list of them stays a list of the current rows.

import type { Cell, Chunk } from "./protocol.ts";

/** The version of a row that its table no longer has. */
const REMOVED = -1;

/** A row, its text for searches, and a number that is another one whenever the row changes. */
export type Row<T> = { value: T; text: string; version: number };

/** The rows that changed between two calls of `Reader.take`. */
export type Changes<T> = {
  /** All rows are new, and none of the older ones is in the table. */
  readonly isReset: boolean;
  readonly changed: ReadonlySet<Row<T>>;
  readonly hasRemoved: boolean;
};

export class DeltaTable<T extends { readonly id: number }> {
  /** Whether the first complete table has arrived. */
  isComplete = false;
  /** Rises with each chunk that changes what readers see. */
  version = 0;
  #rows = new Map<number, Row<T>>();
  #incoming: Map<number, Row<T>> | null = null;
  #readers = new Set<Reader<T>>();
  readonly #searchText: (value: T) => string;

  constructor(searchText: (value: T) => string) {
    this.#searchText = searchText;
  }

  get rows(): ReadonlyMap<number, Row<T>> {
    return this.#rows;
  }

  /** Number of rows of a table that is still arriving, or null. */
  get arriving(): number | null {
    return this.#incoming?.size ?? null;
  }

  apply(chunk: Chunk): void {
    if (chunk.reset) this.#incoming = new Map();
    if (this.#incoming === null) {
      this.#update(chunk);
    } else {
      for (const cells of chunk.rows) {
        const row = this.#read(chunk.columns, cells);
        this.#incoming.set(row.value.id, row);
      }
      // The old rows stay visible until the new table is whole, so that a reconnect does not empty the page.
      if (chunk.last) this.#replace(this.#incoming);
    }
    this.version += 1;
  }

  /** Returns a reader that collects every later change. */
  reader(): Reader<T> {
    const reader = new Reader<T>(() => this.#readers.delete(reader));
    this.#readers.add(reader);
    return reader;
  }

  #update(chunk: Chunk): void {
    for (const cells of chunk.rows) {
      const fresh = this.#read(chunk.columns, cells);
      const row = this.#rows.get(fresh.value.id) ?? fresh;
      row.value = fresh.value;
      row.text = fresh.text;
      row.version += 1;
      this.#rows.set(fresh.value.id, row);
      for (const reader of this.#readers) reader.note(row);
    }
    for (const id of chunk.removed) {
      const row = this.#rows.get(id);
      if (row === undefined) continue;
      this.#rows.delete(id);
      row.version = REMOVED;
      for (const reader of this.#readers) reader.noteRemoved(row);
    }
  }

  #replace(rows: Map<number, Row<T>>): void {
    this.#rows = rows;
    this.#incoming = null;
    this.isComplete = true;
    for (const reader of this.#readers) reader.noteReset();
  }

  #read(columns: readonly string[], cells: readonly Cell[]): Row<T> {
    const value: Record<string, Cell> = {};
    columns.forEach((column, index) => {
      value[column] = cells[index] ?? null;
    });
    const typed = value as unknown as T;
    return { value: typed, text: this.#searchText(typed), version: 0 };
  }
}

/** Collects the changes of a table for one view of it. */
export class Reader<T> {
  #isReset = true;
  #changed = new Set<Row<T>>();
  #hasRemoved = false;
  readonly #onClose: () => void;

  constructor(onClose: () => void) {
    this.#onClose = onClose;
  }

  note(row: Row<T>): void {
    if (!this.#isReset) this.#changed.add(row);
  }

  noteRemoved(row: Row<T>): void {
    this.#changed.delete(row);
    this.#hasRemoved = true;
  }

  noteReset(): void {
    this.#isReset = true;
    this.#changed = new Set();
    this.#hasRemoved = false;
  }

  /** Returns the changes since the last call. */
  take(): Changes<T> {
    const changes = { isReset: this.#isReset, changed: this.#changed, hasRemoved: this.#hasRemoved };
    this.#isReset = false;
    this.#changed = new Set();
    this.#hasRemoved = false;
    return changes;
  }

  close(): void {
    this.#onClose();
  }
}
