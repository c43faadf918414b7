// The frame of every page: its heading, which takes the focus when the page opens, and its content.

import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

type Props = { title: string; heading?: ComponentChildren; actions?: ComponentChildren; children: ComponentChildren };

export function Page({ title, heading, actions, children }: Props) {
  const ref = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = `${title} · Imori`;
  }, [title]);
  useEffect(() => {
    ref.current?.focus({ preventScroll: true });
  }, []);
  return (
    <>
      <header class="page-head">
        <h1 tabIndex={-1} ref={ref}>
          {heading ?? title}
        </h1>
        {actions !== undefined && <div class="actions">{actions}</div>}
      </header>
      {children}
    </>
  );
}

/** A part of a page under a heading of its own. */
export function Section({ title, aside, children }: { title: string; aside?: ComponentChildren; children: ComponentChildren }) {
  return (
    <section class="card" aria-label={title}>
      <div class="card-head">
        <h2>{title}</h2>
        {aside}
      </div>
      {children}
    </section>
  );
}
