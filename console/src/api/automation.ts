// Calls of StackStorm's API, which the admin listener serves below `/automation` for the users that it has signed in.
// Only the parts of its documents that pages show have a type.

import { encodeName, queryText, send } from "./client.ts";

const BASE = "/automation/v1";

export type Execution = {
  readonly id: string;
  readonly status: string;
  readonly start_timestamp: string;
  readonly end_timestamp?: string | null;
  readonly elapsed_seconds?: number | null;
  readonly action: { readonly ref: string };
  readonly context?: { readonly user?: string };
  readonly parameters?: Readonly<Record<string, unknown>>;
  readonly result?: unknown;
  readonly rule?: { readonly ref?: string };
  readonly parent?: string | null;
  readonly children?: readonly string[];
};

export type Rule = {
  readonly ref: string;
  readonly enabled: boolean;
  readonly description?: string | null;
  readonly trigger: { readonly type?: string; readonly ref?: string; readonly parameters?: Readonly<Record<string, unknown>> };
  readonly criteria?: Readonly<Record<string, unknown>>;
  readonly action: { readonly ref: string; readonly parameters?: Readonly<Record<string, unknown>> };
};

export type Enforcement = { readonly id: string; readonly enforced_at: string; readonly execution_id?: string | null; readonly failure_reason?: string | null };
export type Pack = { readonly ref: string; readonly version?: string; readonly description?: string | null; readonly author?: string };
export type Action = { readonly ref: string; readonly runner_type: string | { readonly name: string }; readonly enabled: boolean; readonly description?: string | null };
export type Key = { readonly name: string; readonly value: string; readonly scope: string; readonly user?: string; readonly secret?: boolean; readonly expire_timestamp?: string | null };
export type Sensor = { readonly ref: string; readonly enabled: boolean; readonly description?: string | null; readonly "x-imori"?: Readonly<Record<string, unknown>> };

type Query = Readonly<Record<string, string | number | undefined>>;

export async function read<T>(path: string, query: Query = {}, signal?: AbortSignal): Promise<T> {
  return (await send("get", BASE + path + queryText(query), undefined, signal)) as T;
}

export async function change<T>(method: "put" | "post" | "delete", path: string, body?: unknown, query: Query = {}): Promise<T> {
  return (await send(method, BASE + path + queryText(query), body)) as T;
}

/** A path whose names are encoded, such as `path("rules", ref)`. */
export function path(...names: readonly string[]): string {
  return names.map((name) => "/" + encodeName(name)).join("");
}
