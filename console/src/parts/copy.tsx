// A button that copies a text, and says that it did.

import { useState } from "preact/hooks";
import { useLocale } from "../locale.ts";

const SAID_MS = 2_000;

export function CopyButton({ text, label }: { text: string; label?: string }) {
  const { words } = useLocale();
  const [state, setState] = useState<"idle" | "copied" | "failed">("idle");
  const copy = async (): Promise<void> => {
    const isCopied = await copyText(text);
    setState(isCopied ? "copied" : "failed");
    setTimeout(() => setState("idle"), SAID_MS);
  };
  const said = { idle: label ?? words.copy, copied: words.copied, failed: words.copyFailed }[state];
  return (
    <button type="button" class="button small" aria-live="polite" onClick={() => void copy()}>
      {said}
    </button>
  );
}

async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Over plain HTTP from another host the browser has no clipboard for pages.
    return copyBySelection(text);
  }
}

function copyBySelection(text: string): boolean {
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "off-screen";
  document.body.append(area);
  area.select();
  const isCopied = document.execCommand("copy");
  area.remove();
  return isCopied;
}
