// The datastore: keys of the system and of users. Values that are kept encrypted are never shown.

import { useState } from "preact/hooks";
import { change, path, read, type Key } from "../../api/automation.ts";
import { failureOf, useLoad } from "../../load.ts";
import type { Failure } from "../../api/client.ts";
import { useLocale } from "../../locale.ts";
import { Badge } from "../../parts/badge.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { FailureNote } from "../../parts/failure.tsx";
import { Field } from "../../parts/field.tsx";
import { Loaded } from "../../parts/loaded.tsx";
import { Name } from "../../parts/name.tsx";
import { Section } from "../../parts/page.tsx";
import { Table } from "../../parts/table.tsx";

const SYSTEM = "st2kv.system";

export function Datastore() {
  const { words, format } = useLocale();
  const w = words.automation;
  const [deleted, setDeleted] = useState<Key | null>(null);
  const keys = useLoad("keys", (signal) => read<Key[]>("/keys", { limit: -1, scope: "all" }, signal));
  return (
    <>
      <Section title={w.partNames.datastore}>
        <Loaded data={keys}>
          {(rows) => (
            <Table
              label={w.partNames.datastore}
              rows={rows}
              empty={w.noKeys}
              columns={[
                { label: w.key, cell: (key) => <Name text={key.name} /> },
                { label: w.scope, cell: (key) => <Name text={key.scope} /> },
                { label: w.value, isText: true, cell: (key) => (key.secret === true ? <Badge>{w.secret}</Badge> : <Name text={key.value} />) },
                { label: w.expires, cell: (key) => (key.expire_timestamp == null ? <span class="quiet">{words.none}</span> : format.dateTime(Date.parse(key.expire_timestamp))) },
                {
                  label: w.deletion,
                  cell: (key) => (
                    <button type="button" class="button small danger-outline" aria-label={w.deleteKeyOf(key.name)} onClick={() => setDeleted(key)}>
                      {w.deleteKey}
                    </button>
                  ),
                },
              ]}
            />
          )}
        </Loaded>
      </Section>
      <SetKey onSet={keys.reload} />
      {deleted !== null && (
        <Dialog
          title={w.deleteKeyOf(deleted.name)}
          action={w.deleteKey}
          isDanger
          onAct={async () => {
            await change("delete", "/keys" + path(deleted.name), undefined, { scope: deleted.scope, user: deleted.user });
            setDeleted(null);
            keys.reload();
          }}
          onClose={() => setDeleted(null)}
        >
          <p>{w.deleteKeyText}</p>
        </Dialog>
      )}
    </>
  );
}

function SetKey({ onSet }: { onSet: () => void }) {
  const { words } = useLocale();
  const w = words.automation;
  const [fields, setFields] = useState({ name: "", value: "", isSecret: false });
  const [failure, setFailure] = useState<Failure | null>(null);
  const set = (event: Event): void => {
    event.preventDefault();
    setFailure(null);
    const body = { name: fields.name, value: fields.value, scope: SYSTEM, secret: fields.isSecret };
    change("put", "/keys" + path(fields.name), body).then(
      () => {
        setFields({ name: "", value: "", isSecret: false });
        onSet();
      },
      (error: unknown) => setFailure(failureOf(error)),
    );
  };
  return (
    <Section title={w.setKey}>
      <form class="stack" onSubmit={set}>
        <div class="columns">
          <Field label={w.key} value={fields.name} onInput={(name) => setFields({ ...fields, name })} isRequired />
          <Field label={w.value} type={fields.isSecret ? "password" : "text"} value={fields.value} onInput={(value) => setFields({ ...fields, value })} />
        </div>
        <label>
          <input type="checkbox" checked={fields.isSecret} onChange={(event) => setFields({ ...fields, isSecret: event.currentTarget.checked })} /> {w.keepEncrypted}
        </label>
        {failure !== null && <FailureNote failure={failure} />}
        <div class="actions">
          <button type="submit" class="button primary">
            {w.setKey}
          </button>
        </div>
      </form>
    </Section>
  );
}
