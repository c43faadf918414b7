// The state of the feed's connection, as a machine of (status, input).
//
//   connecting ──hello──▶ live ──silence──▶ stalled ──hello──▶ live
//        │                  └────lost────▶ reconnecting ──hello──▶ live
//        └──refused──▶ refused          any ──signed out──▶ signed_out

import { RETRY_MS_MAX, RETRY_MS_MIN } from "./limits.ts";

export type FeedStatus =
  | { readonly kind: "connecting" }
  | { readonly kind: "live" }
  | { readonly kind: "stalled"; readonly since: number }
  | { readonly kind: "reconnecting"; readonly attempts: number }
  | { readonly kind: "paused" }
  | { readonly kind: "refused"; readonly reason: string }
  | { readonly kind: "signed_out" };

export type FeedInput =
  | { readonly kind: "hello" }
  | { readonly kind: "silence"; readonly since: number }
  | { readonly kind: "lost" }
  | { readonly kind: "hidden" }
  | { readonly kind: "refused"; readonly reason: string }
  | { readonly kind: "signed_out" };

export function advance(status: FeedStatus, input: FeedInput): FeedStatus {
  switch (input.kind) {
    case "hello":
      return { kind: "live" };
    case "silence":
      return { kind: "stalled", since: input.since };
    case "lost":
      // A stalled feed stays one until the broker answers: how long it has been silent matters more than the attempts.
      if (status.kind === "stalled") return status;
      return { kind: "reconnecting", attempts: status.kind === "reconnecting" ? status.attempts + 1 : 1 };
    case "hidden":
      return { kind: "paused" };
    case "refused":
      return { kind: "refused", reason: input.reason };
    case "signed_out":
      return { kind: "signed_out" };
  }
}

/** The pause before attempt number `attempts`; `random` in 0..1 spreads the consoles of a broker that restarts. */
export function retryDelayMs(attempts: number, random: number): number {
  const longest = Math.min(RETRY_MS_MAX, RETRY_MS_MIN * 2 ** Math.min(attempts, 10));
  return longest / 2 + (longest / 2) * random;
}
