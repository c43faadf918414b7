// Checks what the compiler does not: forms that the console does without, each with its reason.

import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../", import.meta.url));

const ANY = /:\s*any\b|\bas any\b|<any>/;

const RULES = [
  [/dangerouslySetInnerHTML|\.innerHTML|insertAdjacentHTML|document\.write/, "puts text into the page as markup"],
  [/\bstyle="/, "is a style attribute, which the content security policy refuses"],
  [ANY, "says `any`; name the type, or use `unknown`"],
  [/^\s*(?:export )?(?:const )?enum\s/, "is an enum; use a union"],
  [/export default/, "is a default export; name it"],
  [/@ts-(?:ignore|nocheck)/, "silences the compiler"],
  [/\b(?:localStorage|sessionStorage)\b/, "keeps something in the browser; only `settings.ts` does", "src/settings.ts"],
  [/[^\u0000-\u007f\u2013\u2026\u2190-\u2193\u00b5\u00d7\u00b7\u2500-\u257f\u25b6]/, "has words of a language; they belong in `src/words`", "src/words/ja.ts", "src/parts/preferences.tsx", "src/theme.css"],
];

const files = ["src", "tests", "flows"].flatMap((folder) =>
  readdirSync(root + folder, { recursive: true })
    .map((name) => `${folder}/${name}`)
    .filter((name) => /\.(?:ts|tsx|mjs)$/.test(name) && name !== "src/api/schema.d.ts"),
);

let complaints = 0;
for (const file of files) {
  const lines = readFileSync(root + file, "utf8").split("\n");
  for (const [pattern, reason, ...exceptions] of RULES) {
    // Tests write names in every script, and look for what must not be there.
    if (exceptions.includes(file) || (!file.startsWith("src/") && exceptions.length > 0)) continue;
    lines.forEach((line, index) => {
      if (!pattern.test(line) || (pattern === ANY && /^\s*(?:\/\/|\*|\/\*\*)/.test(line))) return;
      complaints += 1;
      console.error(`${file}:${index + 1}: \`${line.trim()}\` ${reason}`);
    });
  }
}
process.exitCode = complaints === 0 ? 0 : 1;
