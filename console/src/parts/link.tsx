// A link to another page of the console.

import type { ComponentChildren } from "preact";
import { navigate } from "../route.ts";

type Props = { to: string; children: ComponentChildren; class?: string; current?: boolean; tabIndex?: number };

export function Link({ to, children, class: className, current, tabIndex }: Props) {
  const follow = (event: MouseEvent): void => {
    // With a modifier the browser opens a tab of its own.
    if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    navigate(to);
  };
  return (
    <a href={to} class={className} aria-current={current === true ? "page" : undefined} tabIndex={tabIndex} onClick={follow}>
      {children}
    </a>
  );
}
