// Calls of the last minute, from one reading to the next, and what follows from their times.

import type { Calls } from "../../api/types.ts";

export const COLUMNS_MAX = 60;

type Service = Calls["services"][number];
/** Calls of one second, by bucket of times. */
export type Column = { readonly time: number; readonly counts: readonly number[] };
/** Calls a second of one service, between two readings. */
export type Rates = { readonly requests: number; readonly replies: number };

export class CallHistory {
  #before: { readonly at: number; readonly measured: number; readonly services: ReadonlyMap<string, Service> } | null = null;
  columns: Column[] = [];
  rates: ReadonlyMap<string, Rates> = new Map();

  /** Adds a reading that was taken at `now`, in milliseconds. */
  add(calls: Calls, now: number): void {
    const services = new Map(calls.services.map((service) => [keyOf(service), service]));
    const before = this.#before;
    // The broker began to measure anew.
    const isContinued = before !== null && calls.measured_ms > before.measured;
    this.#before = { at: now, measured: calls.measured_ms, services };
    if (!isContinued) {
      this.columns = [];
      this.rates = new Map();
      return;
    }
    const seconds = Math.max(0.001, (now - before.at) / 1_000);
    const counts = new Array<number>(calls.bounds_us.length + 1).fill(0);
    const rates = new Map<string, Rates>();
    for (const [key, service] of services) {
      const old = before.services.get(key);
      service.times.forEach((count, row) => {
        counts[row] = (counts[row] ?? 0) + count - (old?.times[row] ?? 0);
      });
      rates.set(key, { requests: (service.requests - (old?.requests ?? 0)) / seconds, replies: (service.replies - (old?.replies ?? 0)) / seconds });
    }
    this.rates = rates;
    this.columns = [...this.columns, { time: now, counts }].slice(-COLUMNS_MAX);
  }
}

export function keyOf(service: Service): string {
  return JSON.stringify([service.vhost, service.exchange, service.subject]);
}

/** The time in microseconds below which this part of the calls lies, interpolated in its bucket; null without a call. */
export function quantile(bounds: readonly number[], counts: readonly number[], part: number): number | null {
  const all = counts.reduce((sum, count) => sum + count, 0);
  if (all === 0) return null;
  const rank = Math.max(1, part * all);
  let below = 0;
  for (const [row, count] of counts.entries()) {
    if (count > 0 && below + count >= rank) {
      const lower = row === 0 ? 0 : (bounds[row - 1] ?? 0);
      const upper = bounds[row] ?? lower;
      return lower + (upper - lower) * ((rank - below) / count);
    }
    below += count;
  }
  return null;
}

/** The buckets from the lowest to the highest that has a call; null without a call. */
export function rowsInUse(columns: readonly Column[], buckets: number): { first: number; last: number } | null {
  let first = buckets;
  let last = -1;
  for (const { counts } of columns) {
    counts.forEach((count, row) => {
      if (count > 0) {
        first = Math.min(first, row);
        last = Math.max(last, row);
      }
    });
  }
  return last < 0 ? null : { first, last };
}
