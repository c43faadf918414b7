// A body as text, as indented JSON and as hexadecimal.

/** Bytes that a view shows; a longer body would freeze the page. */
export const SHOWN_BYTES_MAX = 64 * 1024;

const HEX_BYTES_MAX = 4 * 1024;
const HEX_ROW_BYTES = 16;

export function decodeBase64(text: string): Uint8Array<ArrayBuffer> {
  const binary = atob(text);
  return Uint8Array.from(binary, (character) => character.charCodeAt(0));
}

export function bodyBytes(payload: string, encoding: "string" | "base64"): Uint8Array<ArrayBuffer> {
  return encoding === "base64" ? decodeBase64(payload) : new TextEncoder().encode(payload);
}

/** The bytes as text, or null if they are not UTF-8. A character that truncation has cut is left out. */
export function asText(bytes: Uint8Array<ArrayBuffer>, isTruncated: boolean): string | null {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: isTruncated });
  } catch {
    return null;
  }
}

/** Indents JSON without reading its values, so that long numbers and doubled keys stay as they were sent. Null if it is not JSON. */
export function indentJson(text: string): string | null {
  try {
    JSON.parse(text);
  } catch {
    return null;
  }
  const tokens = text.match(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g) ?? [];
  let out = "";
  let depth = 0;
  tokens.forEach((token, index) => {
    const isEmpty = (token === "{" || token === "[") && (tokens[index + 1] === "}" || tokens[index + 1] === "]");
    const closesEmpty = (token === "}" || token === "]") && (tokens[index - 1] === "{" || tokens[index - 1] === "[");
    if ((token === "}" || token === "]") && !closesEmpty) {
      depth -= 1;
      out += lineOf(depth);
    }
    out += token === ":" ? ": " : token;
    if ((token === "{" || token === "[") && !isEmpty) {
      depth += 1;
      out += lineOf(depth);
    }
    if (token === ",") out += lineOf(depth);
  });
  return out;
}

function lineOf(depth: number): string {
  return "\n" + "  ".repeat(Math.max(0, depth));
}

/** Rows of 16 bytes with their offset and their printable characters. */
export function hexDump(bytes: Uint8Array): { readonly text: string; readonly isCut: boolean } {
  const shown = bytes.subarray(0, HEX_BYTES_MAX);
  const rows: string[] = [];
  for (let offset = 0; offset < shown.length; offset += HEX_ROW_BYTES) {
    const row = [...shown.subarray(offset, offset + HEX_ROW_BYTES)];
    const hex = row.map((byte) => byte.toString(16).padStart(2, "0")).join(" ");
    const characters = row.map((byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : ".")).join("");
    rows.push(`${offset.toString(16).padStart(6, "0")}  ${hex.padEnd(HEX_ROW_BYTES * 3 - 1)}  ${characters}`);
  }
  return { text: rows.join("\n"), isCut: shown.length < bytes.length };
}
