// Checks how much a browser loads: the first page, and all pages together, in gzip.

import { readdirSync, readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

const KIB = 1024;
const FIRST_LOAD_BYTES_MAX = 90 * KIB;
const ALL_BYTES_MAX = 220 * KIB;

const dist = new URL("../dist/", import.meta.url);
const sizes = new Map(readdirSync(new URL("assets/", dist)).map((name) => [name, gzipSync(readFileSync(new URL(`assets/${name}`, dist)), { level: 9 }).length]));
const index = readFileSync(new URL("index.html", dist), "utf8");

/** The files that a page needs: those that `names` mention, and those that these import. */
function withImports(names) {
  const needed = new Set();
  const waiting = [...names];
  for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
    if (needed.has(name) || !sizes.has(name)) continue;
    needed.add(name);
    if (!name.endsWith(".js")) continue;
    const text = readFileSync(new URL(`assets/${name}`, dist), "utf8");
    for (const found of text.matchAll(/(?:from|import)\s*["'`]\.\/([^"'`]+)["'`]/g)) waiting.push(found[1]);
  }
  return needed;
}

const mentioned = [...index.matchAll(/assets\/([^"]+)/g)].map((found) => found[1]);
// The overview is the first page after signing in; its files belong to the first load.
const overview = [...sizes.keys()].filter((name) => /^(overview|chart)-/.test(name));
const first = [...withImports([...mentioned, ...overview])];
const sum = (names) => names.reduce((total, name) => total + sizes.get(name), gzipSync(index).length);

const rows = [
  ["first load", sum(first), FIRST_LOAD_BYTES_MAX],
  ["all pages", sum([...sizes.keys()]), ALL_BYTES_MAX],
];
for (const [label, bytes, max] of rows) {
  console.log(`${label}: ${(bytes / KIB).toFixed(1)} KiB of at most ${max / KIB} KiB`);
  if (bytes > max) process.exitCode = 1;
}
