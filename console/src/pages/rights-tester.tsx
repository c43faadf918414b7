// "May this user do that?": the broker's own decision, without doing anything.

import { useState } from "preact/hooks";
import { call } from "../api/client.ts";
import { useLoad } from "../load.ts";
import { useLocale } from "../locale.ts";
import { Badge } from "../parts/badge.tsx";
import { Choice, Field } from "../parts/field.tsx";
import { Loaded } from "../parts/loaded.tsx";

/** What a user may be asked to do, with the fields that say to what. */
const DEEDS = {
  publish: ["exchange", "key"],
  subscribe: ["exchange", "key"],
  send: ["queue"],
  consume: ["queue"],
  purge: ["queue"],
  declareQueue: ["queue"],
  deleteQueue: ["queue"],
  declareExchange: ["exchange"],
  deleteExchange: ["exchange"],
  enter: [],
} as const;

type Deed = keyof typeof DEEDS;
type Names = { readonly queue: string; readonly exchange: string; readonly key: string };

/** The verbs of the API whose names differ from those here. */
const VERBS: Partial<Record<Deed, string>> = {
  send: "publish",
  declareQueue: "declare",
  deleteQueue: "delete",
  declareExchange: "declare",
  deleteExchange: "delete",
};

export function RightsTester({ user, vhosts }: { user: string; vhosts: readonly string[] }) {
  const { words } = useLocale();
  const w = words.rights;
  const [deed, setDeed] = useState<Deed>("publish");
  const [vhost, setVhost] = useState(vhosts[0] ?? "/");
  const [names, setNames] = useState<Names>({ queue: "", exchange: "amq.topic", key: "" });
  const fields: readonly (keyof Names)[] = DEEDS[deed];
  const isComplete = vhost !== "" && fields.every((field) => field === "key" || names[field] !== "");
  const asked = Object.fromEntries(fields.map((field) => [field, names[field]]));
  const decision = useLoad(JSON.stringify([user, deed, vhost, asked]), async (signal) => {
    if (!isComplete) return null;
    const query = { verb: VERBS[deed] ?? deed, ...asked };
    return await call("get", "/v1/users/{user}/may/{vhost}", { at: { user, vhost }, query, signal });
  });
  return (
    <div class="stack">
      <div class="columns">
        <Choice label={w.deed} value={deed} onChange={setDeed} options={(Object.keys(DEEDS) as Deed[]).map((value) => ({ value, label: w.deeds[value] }))} />
        <Field label={words.users.vhost} value={vhost} onInput={setVhost} />
        {fields.map((field) => (
          <Field key={field} label={w[field]} value={names[field]} onInput={(value) => setNames({ ...names, [field]: value })} />
        ))}
      </div>
      <div role="status">
        {isComplete && (
          <Loaded data={decision}>
            {(value) =>
              value !== null && (
                <p>
                  <Badge tone={value.allowed ? "good" : "danger"}>{value.allowed ? w.allowed : w.refused}</Badge> <bdi>{value.reason ?? w.because}</bdi>
                </p>
              )
            }
          </Loaded>
        )}
      </div>
    </div>
  );
}
