// One connection with its sessions, links and consumers.

import { useState } from "preact/hooks";
import { call } from "../api/client.ts";
import { readAll, readConsumersOfConnection } from "../api/pages.ts";
import type { Connection, Consumer, LinkedSession, Session } from "../api/types.ts";
import { useFeed } from "../feed/hooks.ts";
import { useLoad, type Loaded as LoadedData } from "../load.ts";
import { useLocale } from "../locale.ts";
import { Dialog } from "../parts/dialog.tsx";
import { Facts, type Fact } from "../parts/facts.tsx";
import { Field } from "../parts/field.tsx";
import { Link } from "../parts/link.tsx";
import { Loaded } from "../parts/loaded.tsx";
import { Name } from "../parts/name.tsx";
import { Page, Section } from "../parts/page.tsx";
import { Table, type Column } from "../parts/table.tsx";
import { Values } from "../parts/values.tsx";
import { addressOf, navigate } from "../route.ts";
import type { Words } from "../words/en.ts";

const INTERVAL_MS = 2_000;
const LISTS_INTERVAL_MS = 5_000;

export function ConnectionPage({ query }: { query: URLSearchParams }) {
  const { words } = useLocale();
  const name = query.get("name") ?? "";
  const [isClosing, setClosing] = useState(false);
  const connection = useLoad("connection", (signal) => call("get", "/v1/connections/{name}", { at: { name }, signal }), INTERVAL_MS);
  const sessions = useLoad(
    "sessions",
    async (signal) => {
      const all = await readAll((page) => call("get", "/v1/sessions", { query: { ...page, name }, signal }));
      return all.items.filter((session) => session.connection === name);
    },
    LISTS_INTERVAL_MS,
  );
  const isAmqp10 = connection.view.kind === "ready" && /1[.-]0/.test(connection.view.value.protocol) && /amqp/i.test(connection.view.value.protocol);
  const unsettled = sessions.view.kind === "ready" ? sessions.view.value.reduce((sum, session) => sum + session.unsettled, 0) : 0;

  return (
    <Page
      title={name}
      heading={
        <>
          <Link to={addressOf("connections")} class="above">
            {words.connection.back}
          </Link>
          <Name text={name} />
        </>
      }
      actions={
        connection.view.kind === "ready" && (
          <button type="button" class="button danger-outline" onClick={() => setClosing(true)}>
            {words.connection.closeAction}
          </button>
        )
      }
    >
      {isClosing && <CloseDialog name={name} unsettled={unsettled} onClose={() => setClosing(false)} />}
      <Loaded data={connection}>
        {(value) => (
          <>
            <Section title={words.connection.facts}>
              <ConnectionFacts connection={value} />
            </Section>
            <Section title={words.connection.sessions}>
              <Sessions sessions={sessions} />
            </Section>
            {isAmqp10 && <Links name={name} />}
            <Section title={words.connection.consumers}>
              <Consumers name={name} />
            </Section>
          </>
        )}
      </Loaded>
    </Page>
  );
}

/** The state, and what the client's next publish waits for. */
function stateText(connection: Connection, words: Words): string {
  const state = words.connections.states[connection.state] ?? connection.state;
  if (connection.waits_for == null) return state;
  return words.connection.waitsFor(words.connection.waits[connection.waits_for] ?? connection.waits_for);
}

function ConnectionFacts({ connection }: { connection: Connection }) {
  const { words, format } = useLocale();
  const feed = useFeed();
  const w = words.connection;
  const facts: Fact[] = [
    [words.connections.user, <Name text={connection.user} />],
    [words.connections.vhost, <Name text={connection.vhost ?? ""} />],
    [words.connections.protocol, <Name text={connection.protocol} />],
    [words.connections.state, stateText(connection, words)],
    [words.connections.peer, <Name text={connection.peer} />],
    [w.local, <Name text={connection.local} />],
    [w.connectedAt, `${format.dateTime(connection.connected_at)} (${format.ago(connection.connected_at, feed.now())})`],
    [w.received, format.bytes(connection.received_bytes)],
    [w.sent, format.bytes(connection.sent_bytes)],
    [w.unsent, format.bytes(connection.unsent_bytes)],
  ];
  if (typeof connection.heartbeat_s === "number") facts.push([w.heartbeat, format.duration(connection.heartbeat_s * 1_000)]);
  if (typeof connection.client_name === "string") facts.push([w.clientName, <Name text={connection.client_name} />]);
  if (typeof connection.container_id === "string") facts.push([w.containerId, <Name text={connection.container_id} />]);
  return (
    <div class="stack">
      <Facts facts={facts} />
      {Object.keys(connection.client_properties).length > 0 && (
        <div>
          <h3>{w.clientProperties}</h3>
          <Values values={connection.client_properties} label={w.clientProperties} />
        </div>
      )}
    </div>
  );
}

function Sessions({ sessions }: { sessions: LoadedData<readonly Session[]> }) {
  const { words, format } = useLocale();
  const w = words.connection;
  const columns: readonly Column<Session>[] = [
    { label: w.number, cell: (session) => session.number, isNumber: true },
    { label: w.consumers, cell: (session) => format.count(session.consumers), isNumber: true },
    { label: w.delivered, cell: (session) => format.count(session.delivered), isNumber: true },
    { label: words.connections.unsettled, cell: (session) => format.count(session.unsettled), isNumber: true },
    { label: w.unsettledMax, cell: (session) => format.count(session.unsettled_max), isNumber: true },
  ];
  return <Loaded data={sessions}>{(rows) => <Table label={w.sessions} columns={columns} rows={rows} empty={w.noSessions} />}</Loaded>;
}

type LinkRow = LinkedSession["links"][number] & { readonly channel: number };

function Links({ name }: { name: string }) {
  const { words, format } = useLocale();
  const w = words.connection;
  const links = useLoad(
    "links",
    async (signal) => {
      const sessions = await call("get", "/v1/connections/{name}/sessions", { at: { name }, signal });
      return sessions.flatMap((session) => session.links.map((link): LinkRow => ({ ...link, channel: session.channel })));
    },
    LISTS_INTERVAL_MS,
  );
  const columns: readonly Column<LinkRow>[] = [
    { label: w.number, cell: (link) => link.channel, isNumber: true },
    { label: w.link, cell: (link) => <Name text={link.name} /> },
    { label: w.direction, cell: (link) => (link.direction === "incoming" ? w.incoming : w.outgoing) },
    { label: w.address, cell: (link) => <Name text={link.address ?? ""} /> },
    { label: w.credit, cell: (link) => format.count(link.credit), isNumber: true },
    { label: words.connections.unsettled, cell: (link) => format.count(link.unsettled), isNumber: true },
    { label: w.delivered, cell: (link) => format.count(link.delivery_count), isNumber: true },
  ];
  return (
    <Section title={w.links}>
      <Loaded data={links}>{(rows) => <Table label={w.links} columns={columns} rows={rows} empty={w.noLinks} />}</Loaded>
    </Section>
  );
}

function Consumers({ name }: { name: string }) {
  const { words } = useLocale();
  const w = words.connection;
  const consumers = useLoad("consumers", () => readConsumersOfConnection(name), LISTS_INTERVAL_MS);
  const columns: readonly Column<Consumer>[] = [
    {
      label: w.queue,
      cell: (consumer) => (
        <Link to={addressOf("queue", { vhost: consumer.vhost, name: consumer.queue })}>
          <Name text={consumer.queue} />
        </Link>
      ),
    },
    { label: words.queue.consumer, cell: (consumer) => <Name text={consumer.id} /> },
    { label: words.queue.session, cell: (consumer) => consumer.session, isNumber: true },
    { label: words.queue.settles, cell: (consumer) => (consumer.settles ? words.yes : words.no) },
  ];
  return <Loaded data={consumers}>{(list) => <Table label={w.consumers} columns={columns} rows={list.items} empty={w.noConsumers} />}</Loaded>;
}

function CloseDialog({ name, unsettled, onClose }: { name: string; unsettled: number; onClose: () => void }) {
  const { words, format } = useLocale();
  const [reason, setReason] = useState(words.connection.defaultReason);
  const close = async (): Promise<void> => {
    await call("delete", "/v1/connections/{name}", { at: { name }, query: { reason } });
    navigate(addressOf("connections"));
  };
  return (
    <Dialog title={words.connection.closeTitle} action={words.connection.closeAction} isDanger onAct={close} onClose={onClose}>
      <Name text={name} />
      <p>{words.connection.closeText(format.count(unsettled))}</p>
      <Field label={words.connection.reason} value={reason} onInput={setReason} />
    </Dialog>
  );
}
