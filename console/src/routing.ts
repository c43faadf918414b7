// The route of a message, computed from bindings by the rules of direct, fanout and topic exchanges.
// Exchanges that route by headers cannot be followed with a subject alone; the answer says so.

import type { Binding, Exchange } from "./api/types.ts";

export type Destination = { readonly queue: string; readonly path: readonly Binding[] };

export type Route = {
  readonly destinations: readonly Destination[];
  /** Exchanges on the way that go by headers. */
  readonly byHeaders: readonly string[];
  /** The exchange that took over because no binding matched. */
  readonly alternate: string | null;
};

/** Exchanges that one message may pass. */
const EXCHANGES_MAX = 100;

export function routeOf(exchange: Exchange, subject: string, exchanges: readonly Exchange[], bindings: readonly Binding[]): Route {
  const byName = new Map(exchanges.map((each) => [each.name, each]));
  const found = follow(exchange, subject, byName, bindings);
  const alternate = exchange.arguments["alternate-exchange"];
  if (found.destinations.length > 0 || found.byHeaders.length > 0 || typeof alternate !== "string") {
    return { ...found, alternate: null };
  }
  const next = byName.get(alternate);
  return next === undefined ? { ...found, alternate: null } : { ...follow(next, subject, byName, bindings), alternate };
}

function follow(
  first: Exchange,
  subject: string,
  exchanges: ReadonlyMap<string, Exchange>,
  bindings: readonly Binding[],
): Pick<Route, "destinations" | "byHeaders"> {
  const destinations = new Map<string, Destination>();
  const byHeaders: string[] = [];
  const visited = new Set<string>();
  const waiting: { exchange: Exchange; path: readonly Binding[] }[] = [{ exchange: first, path: [] }];
  for (let step = waiting.shift(); step !== undefined && visited.size < EXCHANGES_MAX; step = waiting.shift()) {
    const { exchange, path } = step;
    if (visited.has(exchange.name)) continue;
    visited.add(exchange.name);
    if (typeOf(exchange) === "headers") byHeaders.push(exchange.name);
    for (const binding of bindings) {
      if (binding.source !== exchange.name || !isMatch(typeOf(exchange), binding.routing_key ?? "", subject)) continue;
      const next = exchanges.get(binding.destination);
      if (binding.destination_type === "queue") {
        if (!destinations.has(binding.destination)) {
          destinations.set(binding.destination, { queue: binding.destination, path: [...path, binding] });
        }
      } else if (next !== undefined) {
        waiting.push({ exchange: next, path: [...path, binding] });
      }
    }
  }
  return { destinations: [...destinations.values()], byHeaders };
}

function typeOf(exchange: Exchange): string {
  const delayed = exchange.arguments["x-delayed-type"];
  return exchange.type === "x-delayed-message" && typeof delayed === "string" ? delayed : exchange.type;
}

function isMatch(type: string, key: string, subject: string): boolean {
  switch (type) {
    case "fanout":
      return true;
    case "direct":
      return key === subject;
    case "topic":
      return isTopicMatch(key, subject);
    default:
      return false;
  }
}

/** Whether a pattern with `*` for one token and `#` for any number of tokens matches the subject. */
export function isTopicMatch(pattern: string, subject: string): boolean {
  const steps = pattern === "" ? [] : pattern.split(".");
  const tokens = subject === "" ? [] : subject.split(".");
  // `reached[n]`: the steps so far match the first n tokens.
  let reached = tokens.map(() => false);
  reached.unshift(true);
  for (const step of steps) {
    const next = new Array<boolean>(tokens.length + 1).fill(false);
    if (step === "#") {
      const first = reached.indexOf(true);
      if (first !== -1) next.fill(true, first);
    } else {
      tokens.forEach((token, index) => {
        if (reached[index] === true && (step === "*" || step === token)) next[index + 1] = true;
      });
    }
    reached = next;
  }
  return reached[tokens.length] === true;
}
