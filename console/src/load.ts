// Data that a page asks for: loading, ready or failed, and asked again on request.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { Failure } from "./api/client.ts";

export type View<T> =
  | { readonly kind: "loading" }
  | { readonly kind: "ready"; readonly value: T }
  | { readonly kind: "failed"; readonly failure: Failure };

export type Loaded<T> = { readonly view: View<T>; readonly reload: () => void };

/** Calls `read` when `key` changes and at `reload`. With `intervalMs` it asks again and again while the page is visible. */
export function useLoad<T>(key: string, read: (signal: AbortSignal) => Promise<T>, intervalMs?: number): Loaded<T> {
  const [state, setState] = useState<{ key: string; view: View<T> }>({ key, view: { kind: "loading" } });
  const [turn, setTurn] = useState(0);
  const latest = useRef(read);
  latest.current = read;

  useEffect(() => {
    const abort = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const ask = async (): Promise<void> => {
      const view = document.hidden && intervalMs !== undefined ? null : await answer(latest.current, abort.signal);
      if (abort.signal.aborted) return;
      if (view !== null) setState({ key, view });
      if (intervalMs !== undefined) timer = setTimeout(() => void ask(), intervalMs);
    };
    void ask();
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, [key, turn, intervalMs]);

  const reload = useCallback(() => setTurn((before) => before + 1), []);
  // An answer about another object must not be seen under this one's name.
  return { view: state.key === key ? state.view : { kind: "loading" }, reload };
}

async function answer<T>(read: (signal: AbortSignal) => Promise<T>, signal: AbortSignal): Promise<View<T>> {
  try {
    return { kind: "ready", value: await read(signal) };
  } catch (error) {
    return { kind: "failed", failure: failureOf(error) };
  }
}

export function failureOf(error: unknown): Failure {
  return error instanceof Failure ? error : new Failure(-1, error instanceof Error ? error.message : String(error));
}
