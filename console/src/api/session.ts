// Signing in and out, and the history of the overview.

import type { History, Topic } from "../feed/protocol.ts";
import { call, send, SESSION_PATH } from "./client.ts";
import type { Whoami } from "./types.ts";

export async function signIn(user: string, password: string): Promise<Whoami> {
  await send("post", SESSION_PATH, { user, password });
  return call("get", "/v1/whoami");
}

export async function signOut(): Promise<void> {
  await send("delete", SESSION_PATH);
}

export function readHistory(window: "10m" | "24h", signal?: AbortSignal): Promise<History> {
  return send("get", `/v1/history?window=${window}`, undefined, signal) as Promise<History>;
}

export function openFeed(topics: readonly Topic[], signal: AbortSignal): Promise<Response> {
  return fetch(`/v1/feed?topics=${topics.join(",")}`, { signal, credentials: "same-origin" });
}
