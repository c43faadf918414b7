// The configuration in force.

import { useState } from "preact/hooks";
import { call } from "../api/client.ts";
import type { Configuration } from "../api/types.ts";
import { useLoad } from "../load.ts";
import { useLocale } from "../locale.ts";
import { Loaded } from "../parts/loaded.tsx";
import { Page } from "../parts/page.tsx";
import { Table, type Column } from "../parts/table.tsx";
import { valueText } from "../parts/values.tsx";

type Key = Configuration["keys"][number];
/** The origin of a value, where the broker tells it. */
type KeyWithOrigin = Key & { readonly origin?: string };

export function ConfigurationPage() {
  const { words, format } = useLocale();
  const w = words.configuration;
  const [needle, setNeedle] = useState("");
  const configuration = useLoad("configuration", (signal) => call("get", "/v1/config", { signal }));
  const key: Column<KeyWithOrigin> = { label: w.key, cell: (each) => <span class="mono">{each.key}</span> };
  const value: Column<KeyWithOrigin> = { label: w.value, cell: (each) => <bdi class="mono name">{valueText(each.value)}</bdi> };
  const origin: Column<KeyWithOrigin> = { label: w.origin, cell: (each) => <bdi>{each.origin ?? "–"}</bdi> };
  const reload: Column<KeyWithOrigin> = { label: w.reload, cell: (each) => w.reloads[each.reload] ?? each.reload };
  return (
    <Page title={w.title}>
      <p class="quiet">{w.intro}</p>
      <Loaded data={configuration}>
        {(loaded) => {
          const keys: readonly KeyWithOrigin[] = loaded.keys;
          const shown = keys.filter((each) => each.key.includes(needle.trim().toLowerCase()));
          const hasOrigin = keys.some((each) => each.origin !== undefined);
          return (
            <>
              <div class="search-line">
                <input
                  type="search"
                  value={needle}
                  placeholder={w.searchHint}
                  aria-label={`${words.search}: ${w.searchHint}`}
                  spellcheck={false}
                  onInput={(event) => setNeedle(event.currentTarget.value)}
                />
                <span class="quiet" role="status">
                  {words.rowsOf(format.count(shown.length), format.count(keys.length))}
                </span>
              </div>
              <div class="card">
                <Table label={w.title} columns={hasOrigin ? [key, value, origin, reload] : [key, value, reload]} rows={shown} empty={w.empty} />
              </div>
            </>
          );
        }}
      </Loaded>
    </Page>
  );
}
