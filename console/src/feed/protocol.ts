// The events of `/v1/feed` and the answer of `/v1/history`, as the broker sends them.

export type Topic = "overview" | "queues" | "connections";

export type Hello = {
  readonly version: string;
  readonly node: string;
  readonly started: number;
  readonly now: number;
  readonly interval_ms: number;
};

/** One number for each series; null where the broker has none. */
export type Sample = Readonly<Record<string, number | null>>;

export type Alarm = { readonly kind: string; readonly text: string };

/** The totals that `/v1/overview` has too. */
export type Totals = Readonly<Record<string, unknown>>;

export type OverviewEvent = {
  readonly at: number;
  readonly sample: Sample;
  readonly totals: Totals;
  readonly alarms: readonly Alarm[];
};

export type Cell = string | number | boolean | null;

/** A part of a table: all of it after `reset`, afterwards only what changed. */
export type Chunk = {
  readonly at: number;
  readonly reset: boolean;
  readonly last: boolean;
  readonly columns: readonly string[];
  readonly rows: readonly (readonly Cell[])[];
  readonly removed: readonly number[];
};

export type History = {
  readonly step_ms: number;
  readonly until: number;
  readonly samples: Readonly<Record<string, readonly (number | null)[]>>;
};

export type QueueRow = {
  readonly id: number;
  readonly vhost: string;
  readonly name: string;
  readonly kind: string;
  readonly durable: boolean;
  readonly ready: number;
  readonly unsettled: number;
  readonly bytes: number;
  readonly consumers: number;
  readonly in_rate: number;
  readonly out_rate: number;
  readonly oldest_ms: number | null;
  readonly state: string | null;
};

export type ConnectionRow = {
  readonly id: number;
  readonly name: string;
  readonly user: string;
  readonly vhost: string | null;
  readonly protocol: string;
  readonly peer: string;
  readonly tls: boolean;
  readonly sessions: number;
  readonly readers: number;
  readonly in_rate: number;
  readonly out_rate: number;
  readonly unsettled: number;
  readonly state: string | null;
  readonly since: number;
};

export const PROTOCOLS = ["stomp", "nats", "amqp091", "amqp10", "other"] as const;

/** The sum of a rate over all protocols; null if no protocol has a number. */
export function sumOfProtocols(sample: Sample, direction: "published" | "delivered"): number | null {
  const rates = PROTOCOLS.map((protocol) => sample[`${direction}_${protocol}`] ?? null).filter((rate) => rate !== null);
  return rates.length === 0 ? null : rates.reduce((sum, rate) => sum + rate, 0);
}
