// The policies of a vhost.

import { useState } from "preact/hooks";
import { call } from "../api/client.ts";
import { readAll } from "../api/pages.ts";
import type { Policy } from "../api/types.ts";
import { useLoad } from "../load.ts";
import { useLocale } from "../locale.ts";
import { Choice } from "../parts/field.tsx";
import { Loaded } from "../parts/loaded.tsx";
import { Name } from "../parts/name.tsx";
import { Page } from "../parts/page.tsx";
import { Table, type Column } from "../parts/table.tsx";
import { Values } from "../parts/values.tsx";

export function PoliciesPage() {
  const { words, format } = useLocale();
  const w = words.policies;
  const [chosen, setChosen] = useState<string | null>(null);
  const vhosts = useLoad("vhosts", (signal) => readAll((page) => call("get", "/v1/vhosts", { query: page, signal })));
  const names = vhosts.view.kind === "ready" ? vhosts.view.value.items.map((vhost) => vhost.name) : [];
  const vhost = chosen ?? names[0] ?? "/";
  const policies = useLoad(vhost, (signal) => readAll((page) => call("get", "/v1/policies/{vhost}", { at: { vhost }, query: page, signal })));
  const columns: readonly Column<Policy>[] = [
    { label: w.name, cell: (policy) => <Name text={policy.name} /> },
    { label: w.kind, cell: (policy) => (policy.kind === "policy" ? w.policy : w.operatorPolicy) },
    { label: w.pattern, cell: (policy) => <span class="mono"><Name text={policy.pattern} /></span> },
    { label: w.applyTo, cell: (policy) => policy.apply_to },
    { label: w.priority, cell: (policy) => format.count(policy.priority), isNumber: true },
    { label: w.definition, cell: (policy) => <Values values={policy.definition} label={w.definition} /> },
  ];
  return (
    <Page title={w.title}>
      {names.length > 1 && (
        <div class="search-line">
          <Choice label={w.vhost} value={vhost} options={names.map((name) => ({ value: name, label: name }))} onChange={setChosen} />
        </div>
      )}
      <Loaded data={policies}>
        {(list) => (
          <div class="card">
            <Table label={w.title} columns={columns} rows={list.items} empty={w.empty} />
          </div>
        )}
      </Loaded>
    </Page>
  );
}
