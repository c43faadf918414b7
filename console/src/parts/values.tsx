// A map of values that a client chose, such as headers and arguments, as text.

import { visibleText } from "../format.ts";
import { useLocale } from "../locale.ts";
import { Name } from "./name.tsx";

/** Characters of one value that a page shows. */
const VALUE_LENGTH_MAX = 2_000;

export function Values({ values, label }: { values: Readonly<Record<string, unknown>>; label: string }) {
  const entries = Object.entries(values);
  if (entries.length === 0) return <span class="quiet">–</span>;
  return (
    <dl class="values" aria-label={label}>
      {entries.map(([name, value]) => (
        <div key={name}>
          <dt>
            <Name text={name} />
          </dt>
          <dd>
            <Value value={value} />
          </dd>
        </div>
      ))}
    </dl>
  );
}

/** The values below their title; nothing if there are none. */
export function TitledValues({ title, values }: { title: string; values: Readonly<Record<string, unknown>> }) {
  if (Object.keys(values).length === 0) return null;
  return (
    <div>
      <h3>{title}</h3>
      <Values values={values} label={title} />
    </div>
  );
}

export function Value({ value }: { value: unknown }) {
  const { words } = useLocale();
  if (value === null || value === undefined) return <span class="quiet">–</span>;
  return value === "" ? <span class="quiet">{words.emptyValue}</span> : <bdi>{valueText(value)}</bdi>;
}

export function valueText(value: unknown): string {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return visibleText(text.length > VALUE_LENGTH_MAX ? text.slice(0, VALUE_LENGTH_MAX) + "…" : text);
}
