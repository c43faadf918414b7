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

export function ConfigurationPage() {
  const { words, format } = useLocale();
  const w = words.configuration;
  const [needle, setNeedle] = useState("");
  const configuration = useLoad("configuration", (signal) => call("get", "/v1/config", { signal }));
  const key: Column<Key> = { label: w.key, cell: (each) => <span class="mono">{each.key}</span> };
  const value: Column<Key> = { label: w.value, cell: (each) => <bdi class="mono name">{valueText(each.value)}</bdi> };
  const setBy: Column<Key> = { label: w.setBy, cell: (each) => (each.set_by == null ? <span class="quiet">{w.isDefault}</span> : <bdi class="mono">{each.set_by}</bdi>) };
  const reload: Column<Key> = { label: w.reload, cell: (each) => w.reloads[each.reload] ?? each.reload };
  return (
    <Page title={w.title}>
      <p class="quiet">{w.intro}</p>
      <Loaded data={configuration}>
        {(loaded) => {
          const { keys } = loaded;
          const shown = keys.filter((each) => each.key.includes(needle.trim().toLowerCase()));
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
                <Table label={w.title} columns={[key, value, setBy, reload]} rows={shown} empty={w.empty} />
              </div>
            </>
          );
        }}
      </Loaded>
    </Page>
  );
}
