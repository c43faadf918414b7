// Values that several tests need.

import type { Cell, Chunk } from "../src/feed/protocol.ts";

export type Item = { readonly id: number; readonly name: string; readonly ready: number | null };

export function chunk(rows: readonly (readonly Cell[])[], options: Partial<Chunk> = {}): Chunk {
  return { at: 0, reset: false, last: true, columns: ["id", "name", "ready"], rows, removed: [], ...options };
}
