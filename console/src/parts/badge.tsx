// A word about the state of something; the colour only repeats it.

import type { ComponentChildren } from "preact";

export type Tone = "plain" | "good" | "warn" | "danger";

export function Badge({ tone, children }: { tone?: Tone; children: ComponentChildren }) {
  return <span class={`badge badge-${tone ?? "plain"}`}>{children}</span>;
}
