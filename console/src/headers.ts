// Headers as a reader types them: one a line, `name: value`.

export type ParsedHeaders =
  | { readonly kind: "ready"; readonly headers: Readonly<Record<string, string>> }
  | { readonly kind: "wrong"; readonly line: string };

export function parseHeaders(text: string): ParsedHeaders {
  const headers: [string, string][] = [];
  for (const line of text.split("\n")) {
    if (line.trim() === "") continue;
    const colon = line.indexOf(":");
    const name = line.slice(0, Math.max(0, colon)).trim();
    if (name === "") return { kind: "wrong", line: line.trim() };
    headers.push([name, line.slice(colon + 1).trim()]);
  }
  // Unlike an assignment this takes `__proto__` for a name too.
  return { kind: "ready", headers: Object.fromEntries(headers) };
}
