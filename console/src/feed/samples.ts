// The series of the charts: the broker's history first, then the samples of the live feed.

import { SAMPLES_MAX } from "./limits.ts";
import type { History, Sample } from "./protocol.ts";

export class Samples {
  /** Times in milliseconds since the UNIX epoch, rising. */
  readonly times: number[] = [];
  #series = new Map<string, (number | null)[]>();
  readonly #lengthMax: number;

  constructor(lengthMax = SAMPLES_MAX) {
    this.#lengthMax = lengthMax;
  }

  get length(): number {
    return this.times.length;
  }

  values(name: string): readonly (number | null)[] {
    return this.#series.get(name) ?? new Array<null>(this.length).fill(null);
  }

  latest(name: string): number | null {
    return this.#series.get(name)?.at(-1) ?? null;
  }

  /** Replaces everything up to the end of the history; later live samples stay. */
  load(history: History): void {
    const live = this.#since(history.until);
    this.times.length = 0;
    this.#series = new Map();
    const length = Math.max(0, ...Object.values(history.samples).map((values) => values.length));
    for (let index = 0; index < length; index += 1) {
      const at = history.until - (length - 1 - index) * history.step_ms;
      this.push(at, Object.fromEntries(Object.entries(history.samples).map(([name, values]) => [name, values[index] ?? null])));
    }
    for (const [at, sample] of live) this.push(at, sample);
  }

  /** Appends a sample; one that is not newer than the last is left out. */
  push(at: number, sample: Sample): void {
    const last = this.times.at(-1);
    if (last !== undefined && at <= last) return;
    for (const name of Object.keys(sample)) {
      if (!this.#series.has(name)) this.#series.set(name, new Array<null>(this.length).fill(null));
    }
    this.times.push(at);
    for (const [name, values] of this.#series) values.push(sample[name] ?? null);
    if (this.length > this.#lengthMax) {
      this.times.shift();
      for (const values of this.#series.values()) values.shift();
    }
  }

  #since(until: number): [number, Sample][] {
    const entries = [...this.#series];
    return this.times.flatMap((at, index): [number, Sample][] =>
      at <= until ? [] : [[at, Object.fromEntries(entries.map(([name, values]) => [name, values[index] ?? null]))]],
    );
  }
}
