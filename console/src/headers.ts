// Headers as a reader types them: one a line, `name: value`.

export type ParsedHeaders =
  | { readonly kind: "ready"; readonly headers: Readonly<Record<string, string>> }
  | { readonly kind: "wrong"; readonly line: string };

export function parseHeaders(text: string): ParsedHeaders {
  const headers: Record<string, string> = {};
  for (const line of text.split("\n")) {
    if (line.trim() === "") continue;
    const colon = line.indexOf(":");
    const name = line.slice(0, Math.max(0, colon)).trim();
    if (name === "") return { kind: "wrong", line: line.trim() };
    headers[name] = line.slice(colon + 1).trim();
  }
  return { kind: "ready", headers };
}
