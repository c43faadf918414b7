// The address of the page, and moving between pages without loading them anew.
// Names stand in the query: as part of the path, `/` and `..` in a name would change where it leads.

import { useEffect, useState } from "preact/hooks";

const BASE = "/console/";

export type Route = { readonly page: string; readonly query: URLSearchParams };

const listeners = new Set<() => void>();

export function currentRoute(): Route {
  const path = location.pathname.startsWith(BASE) ? location.pathname.slice(BASE.length) : "";
  return { page: path.replace(/\/+$/, ""), query: new URLSearchParams(location.search) };
}

export function addressOf(page: string, query: Readonly<Record<string, string | undefined>> = {}): string {
  const fields = Object.entries(query).filter((field): field is [string, string] => field[1] !== undefined && field[1] !== "");
  const text = new URLSearchParams(fields).toString();
  return BASE + page + (text === "" ? "" : "?" + text);
}

export function navigate(address: string): void {
  history.pushState(null, "", address);
  scrollTo(0, 0);
  notify();
}

/** Changes the query of this page, such as a search, without a step in the browser's history. */
export function replaceAddress(address: string): void {
  history.replaceState(history.state, "", address);
}

export function useRoute(): Route {
  const [route, setRoute] = useState(currentRoute);
  useEffect(() => {
    const follow = (): void => setRoute(currentRoute());
    listeners.add(follow);
    addEventListener("popstate", follow);
    return () => {
      listeners.delete(follow);
      removeEventListener("popstate", follow);
    };
  }, []);
  return route;
}

function notify(): void {
  for (const listener of listeners) listener();
}
