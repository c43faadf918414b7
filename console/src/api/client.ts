// Calls of the admin API, typed by its OpenAPI document. The session's cookie is the login; this code never sees it.

import type { paths } from "./schema.d.ts";
import type { Problem } from "./types.ts";

/** The path at which a session begins and ends. */
export const SESSION_PATH = "/v1/session";

type Method = "get" | "put" | "post" | "delete";
type Operation<P extends keyof paths, M extends Method> = NonNullable<paths[P][M]>;
type At<O> = O extends { parameters: { path: infer A } } ? A : Record<string, never>;
type Query<O> = O extends { parameters: { query?: infer Q } } ? NonNullable<Q> : Record<string, never>;
type Body<O> = O extends { requestBody: { content: { "application/json": infer B } } } ? B : undefined;
type Json<R> = R extends { content: { "application/json": infer A } } ? A : undefined;
type Answer<O> = O extends { responses: infer R }
  ? (R extends { 200: infer A } ? Json<A> : never) | (R extends { 201: infer A } ? Json<A> : never) | (R extends { 204: unknown } ? undefined : never)
  : never;

export type Call<O> = {
  /** The names in the path. */
  readonly at?: At<O>;
  readonly query?: Query<O>;
  readonly body?: Body<O>;
  readonly signal?: AbortSignal;
};

/** The reason why a call has no answer. */
export class Failure extends Error {
  /** The status of the answer; 0 if there was no answer at all. */
  readonly status: number;

  constructor(status: number, detail: string) {
    super(detail);
    this.status = status;
  }
}

let onSignedOut: () => void = () => undefined;

/** Calls `listener` whenever an answer says that the session has ended. */
export function whenSignedOut(listener: () => void): void {
  onSignedOut = listener;
}

export async function call<P extends keyof paths & string, M extends Method>(
  method: M,
  path: P,
  options: Call<Operation<P, M>> = {},
): Promise<Answer<Operation<P, M>>> {
  const at: Readonly<Record<string, unknown>> = options.at ?? {};
  const url = fillPath(path, at) + queryText(options.query ?? {});
  const answer = await send(method, url, options.body, options.signal);
  return answer as Answer<Operation<P, M>>;
}

/** Sends a request; the answer is JSON, or undefined if it has no body. */
export async function send(method: string, url: string, body?: unknown, signal?: AbortSignal): Promise<unknown> {
  // A change needs a content type even without a body, so that no form of another site can send it.
  const isChange = method !== "get";
  const response = await fetch(url, {
    method: method.toUpperCase(),
    headers: isChange ? { "content-type": "application/json" } : {},
    credentials: "same-origin",
    ...(isChange && body !== undefined ? { body: JSON.stringify(body) } : {}),
    ...(signal === undefined ? {} : { signal }),
  }).catch((error: unknown) => {
    if (signal?.aborted === true) throw error;
    throw new Failure(0, "");
  });
  if (response.status === 401 && url !== SESSION_PATH) onSignedOut();
  if (!response.ok) throw await failureOf(response);
  const text = await response.text();
  return text === "" ? undefined : parseJson(text);
}

type Reviver = (key: string, value: unknown, context?: { readonly source: string }) => unknown;

/** Integers that JavaScript would round, such as ids in headers, become their text. */
export function parseJson(text: string): unknown {
  if (!/\d{16}/.test(text)) return JSON.parse(text);
  const keepDigits: Reviver = (_, value, context) =>
    typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value) ? (context?.source ?? value) : value;
  return JSON.parse(text, keepDigits);
}

async function failureOf(response: Response): Promise<Failure> {
  const text = await response.text();
  try {
    // StackStorm's API has the reason in `faultstring`.
    const problem = JSON.parse(text) as Partial<Problem> & { faultstring?: string };
    return new Failure(response.status, problem.detail ?? problem.faultstring ?? problem.title ?? "");
  } catch {
    return new Failure(response.status, text.slice(0, 500));
  }
}

/** Puts names into a path's braces. */
export function fillPath(path: string, at: Readonly<Record<string, unknown>>): string {
  return path.replace(/\{(\w+)\}/g, (_, key: string) => encodeName(String(at[key])));
}

/** A name as a segment of a path. */
export function encodeName(name: string): string {
  // Browsers resolve these two as steps in a path, also when they are escaped.
  if (name === "." || name === "..") throw new Failure(0, `a browser cannot ask for the name \`${name}\`; use the command line`);
  return encodeURIComponent(name);
}

/** The query part of an address, without fields that are absent or empty. */
export function queryText(query: Readonly<Record<string, unknown>>): string {
  const fields = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  if (fields.length === 0) return "";
  return "?" + new URLSearchParams(fields.map(([key, value]) => [key, String(value)])).toString();
}
