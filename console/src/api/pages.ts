// Lists of the admin API that are longer than one page.

import type { Consumer, Binding } from "./types.ts";
import { call } from "./client.ts";

const PAGE_SIZE = 500;

/** Pages that one view reads at most, 10,000 rows; a reader looks for a name in a longer list. */
const PAGES_MAX = 20;

export type Listed<T> = { readonly items: readonly T[]; readonly isCut: boolean };

type PageOf<T> = { items: T[]; pages: number };

export async function readAll<T>(page: (query: { page: number; page_size: number }) => Promise<PageOf<T>>): Promise<Listed<T>> {
  const items: T[] = [];
  for (let number = 1; number <= PAGES_MAX; number += 1) {
    const answer = await page({ page: number, page_size: PAGE_SIZE });
    items.push(...answer.items);
    if (number >= answer.pages) return { items, isCut: false };
  }
  return { items, isCut: true };
}

export function readBindings(vhost: string, source?: string, destination?: string): Promise<Listed<Binding>> {
  const filter = { ...(source === undefined ? {} : { source }), ...(destination === undefined ? {} : { destination }) };
  return readAll((query) => call("get", "/v1/bindings/{vhost}", { at: { vhost }, query: { ...query, ...filter } }));
}

export async function readConsumersOfQueue(vhost: string, queue: string): Promise<Listed<Consumer>> {
  const all = await readAll((query) => call("get", "/v1/consumers", { query: { ...query, name: queue } }));
  return { ...all, items: all.items.filter((consumer) => consumer.vhost === vhost && consumer.queue === queue) };
}

export async function readConsumersOfConnection(connection: string): Promise<Listed<Consumer>> {
  const all = await readAll((query) => call("get", "/v1/consumers", { query }));
  return { ...all, items: all.items.filter((consumer) => consumer.connection === connection) };
}
