// Names and values, side by side.

import type { ComponentChildren } from "preact";

export type Fact = readonly [label: string, value: ComponentChildren];

export function Facts({ facts }: { facts: readonly Fact[] }) {
  return (
    <dl class="facts">
      {facts.map(([label, value]) => (
        <div key={label}>
          <dt>{label}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
