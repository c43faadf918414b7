// Packs: what is installed, the actions of one, and the installation of another.

import { useState } from "preact/hooks";
import { change, read, type Action, type Pack } from "../../api/automation.ts";
import type { Failure } from "../../api/client.ts";
import { failureOf, useLoad } from "../../load.ts";
import { useLocale } from "../../locale.ts";
import { FailureNote } from "../../parts/failure.tsx";
import { Field } from "../../parts/field.tsx";
import { Loaded } from "../../parts/loaded.tsx";
import { Name } from "../../parts/name.tsx";
import { Section } from "../../parts/page.tsx";
import { Table } from "../../parts/table.tsx";
import { addressOf, navigate } from "../../route.ts";

export function Packs() {
  const { words } = useLocale();
  const w = words.automation;
  const [open, setOpen] = useState<string | null>(null);
  const packs = useLoad("packs", (signal) => read<Pack[]>("/packs", { limit: -1 }, signal));
  return (
    <>
      <Section title={w.partNames.packs}>
        <Loaded data={packs}>
          {(rows) => (
            <Table
              label={w.partNames.packs}
              rows={rows}
              empty={w.noPacks}
              columns={[
                {
                  label: w.pack,
                  cell: (pack) => (
                    <button type="button" class="button small" aria-expanded={open === pack.ref} onClick={() => setOpen(open === pack.ref ? null : pack.ref)}>
                      <Name text={pack.ref} />
                    </button>
                  ),
                },
                { label: w.version, cell: (pack) => <Name text={pack.version ?? ""} /> },
                { label: w.description, isText: true, cell: (pack) => <Name text={pack.description ?? ""} /> },
                { label: w.author, cell: (pack) => <Name text={pack.author ?? ""} /> },
              ]}
            />
          )}
        </Loaded>
        {open !== null && <Actions pack={open} />}
      </Section>
      <Install />
    </>
  );
}

function Actions({ pack }: { pack: string }) {
  const { words } = useLocale();
  const w = words.automation;
  const actions = useLoad(`actions ${pack}`, (signal) => read<Action[]>("/actions", { pack, limit: -1 }, signal));
  return (
    <>
      <h3>{w.actionsOf(pack)}</h3>
      <Loaded data={actions}>
        {(rows) => (
          <Table
            label={w.actionsOf(pack)}
            rows={rows}
            empty={w.noActions}
            columns={[
              { label: w.action, cell: (action) => <Name text={action.ref} /> },
              { label: w.runner, cell: (action) => <Name text={typeof action.runner_type === "string" ? action.runner_type : action.runner_type.name} /> },
              { label: w.enabled, cell: (action) => (action.enabled ? words.yes : words.no) },
              { label: w.description, isText: true, cell: (action) => <Name text={action.description ?? ""} /> },
            ]}
          />
        )}
      </Loaded>
    </>
  );
}

function Install() {
  const { words } = useLocale();
  const w = words.automation;
  const [source, setSource] = useState("");
  const [failure, setFailure] = useState<Failure | null>(null);
  const install = async (event: Event): Promise<void> => {
    event.preventDefault();
    setFailure(null);
    try {
      const begun = await change<{ execution_id: string }>("post", "/packs/install", { packs: [source.trim()] });
      navigate(addressOf("automation", { part: "executions", execution: begun.execution_id }));
    } catch (error) {
      setFailure(failureOf(error));
    }
  };
  return (
    <Section title={w.install}>
      <form class="stack" onSubmit={(event) => void install(event)}>
        <Field label={w.source} hint={w.sourceHint} value={source} onInput={setSource} isRequired />
        {failure !== null && <FailureNote failure={failure} />}
        <div class="actions">
          <button type="submit" class="button primary">
            {w.installAction}
          </button>
        </div>
      </form>
    </Section>
  );
}
