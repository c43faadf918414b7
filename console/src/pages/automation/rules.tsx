// Rules: what triggers them, what they run, and their last matches.

import { useState } from "preact/hooks";
import { change, path, read, type Enforcement, type Rule } from "../../api/automation.ts";
import type { Failure } from "../../api/client.ts";
import { failureOf, useLoad } from "../../load.ts";
import { useLocale } from "../../locale.ts";
import { FailureNote } from "../../parts/failure.tsx";
import { Field } from "../../parts/field.tsx";
import { Link } from "../../parts/link.tsx";
import { Loaded } from "../../parts/loaded.tsx";
import { Name } from "../../parts/name.tsx";
import { Section } from "../../parts/page.tsx";
import { Table } from "../../parts/table.tsx";
import { TitledValues } from "../../parts/values.tsx";
import { addressOf } from "../../route.ts";

const ENFORCEMENTS_MAX = 10;

export function Rules() {
  const { words } = useLocale();
  const w = words.automation;
  const [needle, setNeedle] = useState("");
  const [open, setOpen] = useState<string | null>(null);
  const [failure, setFailure] = useState<Failure | null>(null);
  const rules = useLoad("rules", (signal) => read<Rule[]>("/rules", { limit: -1 }, signal));
  const enable = async (rule: Rule): Promise<void> => {
    setFailure(null);
    try {
      const whole = await read<Rule>("/rules" + path(rule.ref));
      await change("put", "/rules" + path(rule.ref), { ...whole, enabled: !rule.enabled });
      rules.reload();
    } catch (error) {
      setFailure(failureOf(error));
    }
  };
  return (
    <Section title={w.partNames.rules}>
      <Field label={words.search} type="search" value={needle} onInput={setNeedle} />
      {failure !== null && <FailureNote failure={failure} />}
      <Loaded data={rules}>
        {(all) => (
          <Table
            label={w.partNames.rules}
            rows={all.filter((rule) => `${rule.ref} ${rule.trigger.type ?? ""} ${rule.action.ref}`.includes(needle.trim()))}
            empty={w.noRules}
            columns={[
              {
                label: w.rule,
                cell: (rule) => (
                  <button type="button" class="button small" aria-expanded={open === rule.ref} onClick={() => setOpen(open === rule.ref ? null : rule.ref)}>
                    <Name text={rule.ref} />
                  </button>
                ),
              },
              { label: w.trigger, cell: (rule) => <Name text={rule.trigger.type ?? rule.trigger.ref ?? ""} /> },
              { label: w.action, cell: (rule) => <Name text={rule.action.ref} /> },
              { label: w.description, isText: true, cell: (rule) => <Name text={rule.description ?? ""} /> },
              {
                label: w.enabled,
                cell: (rule) => <input type="checkbox" checked={rule.enabled} aria-label={w.enabledOf(rule.ref)} onClick={(event) => (event.preventDefault(), void enable(rule))} />,
              },
            ]}
          />
        )}
      </Loaded>
      {open !== null && rules.view.kind === "ready" && <Details rule={rules.view.value.find((rule) => rule.ref === open)} />}
    </Section>
  );
}

function Details({ rule }: { rule: Rule | undefined }) {
  const { words, format } = useLocale();
  const w = words.automation;
  const enforcements = useLoad(`enforcements ${rule?.ref ?? ""}`, (signal) =>
    rule === undefined ? Promise.resolve([]) : read<Enforcement[]>("/ruleenforcements/views", { rule_ref: rule.ref, limit: ENFORCEMENTS_MAX, sort: "-enforced_at" }, signal),
  );
  if (rule === undefined) return null;
  return (
    <div class="stack">
      <h3>
        <Name text={rule.ref} />
      </h3>
      <TitledValues title={w.triggerParameters} values={rule.trigger.parameters ?? {}} />
      <TitledValues title={w.criteria} values={rule.criteria ?? {}} />
      <TitledValues title={w.actionParameters} values={rule.action.parameters ?? {}} />
      <h3>{w.enforcements}</h3>
      <Loaded data={enforcements}>
        {(rows) => (
          <Table
            label={w.enforcements}
            rows={rows}
            empty={w.noEnforcements}
            columns={[
              { label: words.time, cell: (row) => format.dateTime(Date.parse(row.enforced_at)) },
              {
                label: w.execution,
                cell: (row) =>
                  row.execution_id == null ? <span class="quiet">{words.none}</span> : <Link to={addressOf("automation", { part: "executions", execution: row.execution_id })}>{row.execution_id}</Link>,
              },
              { label: w.failure, isText: true, cell: (row) => <Name text={row.failure_reason ?? ""} /> },
            ]}
          />
        )}
      </Loaded>
    </div>
  );
}
