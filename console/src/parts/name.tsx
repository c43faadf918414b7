// A name that clients chose: any length, any direction of writing, and never markup.

import { visibleName } from "../format.ts";

/** Characters above which the whole name is shown as a tool tip. */
const TOOLTIP_LENGTH_MIN = 24;

export function Name({ text, empty }: { text: string; empty?: string }) {
  if (text === "") return <span class="quiet">{empty ?? "–"}</span>;
  const visible = visibleName(text);
  return (
    <bdi class="name" title={visible.length >= TOOLTIP_LENGTH_MIN ? visible : undefined}>
      {visible}
    </bdi>
  );
}
