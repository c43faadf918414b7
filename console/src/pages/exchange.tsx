// One exchange with its bindings, and where a subject would go.

import { useState } from "preact/hooks";
import { call, Failure } from "../api/client.ts";
import { readAll, readBindings, type Listed } from "../api/pages.ts";
import type { Binding, Exchange } from "../api/types.ts";
import { useLoad } from "../load.ts";
import { useLocale } from "../locale.ts";
import { Badge } from "../parts/badge.tsx";
import { Facts } from "../parts/facts.tsx";
import { Field } from "../parts/field.tsx";
import { Link } from "../parts/link.tsx";
import { Loaded } from "../parts/loaded.tsx";
import { Name } from "../parts/name.tsx";
import { Page, Section } from "../parts/page.tsx";
import { Table, type Column } from "../parts/table.tsx";
import { Values } from "../parts/values.tsx";
import { addressOf } from "../route.ts";
import { routeOf } from "../routing.ts";

/** The name of the default exchange in paths of the API. */
const DEFAULT_IN_PATHS = "amq.default";

type Topology = { readonly exchange: Exchange; readonly exchanges: readonly Exchange[]; readonly bindings: Listed<Binding> };

export function ExchangePage({ query }: { query: URLSearchParams }) {
  const { words } = useLocale();
  const vhost = query.get("vhost") ?? "/";
  const name = query.get("name") ?? "";
  const topology = useLoad("topology", async (signal): Promise<Topology> => {
    const [exchange, exchanges, bindings] = await Promise.all([
      call("get", "/v1/exchanges/{vhost}/{name}", { at: { vhost, name: name === "" ? DEFAULT_IN_PATHS : name }, signal }),
      readAll((page) => call("get", "/v1/exchanges/{vhost}", { at: { vhost }, query: page, signal })),
      readBindings(vhost),
    ]);
    return { exchange, exchanges: exchanges.items, bindings };
  });

  return (
    <Page
      title={name === "" ? words.exchanges.defaultName : name}
      heading={
        <>
          <Link to={addressOf("exchanges")} class="above">
            {words.exchange.back}
          </Link>
          {name === "" ? words.exchanges.defaultName : <Name text={name} />}
        </>
      }
      actions={
        <button type="button" class="button" onClick={topology.reload}>
          {words.refresh}
        </button>
      }
    >
      <Loaded data={topology}>
        {(value) => (
          <>
            <Section title={words.exchange.facts}>
              <ExchangeFacts exchange={value.exchange} />
            </Section>
            <Section title={words.exchange.where}>
              {name === "" ? <DefaultRoute vhost={vhost} /> : <RouteTester topology={value} />}
            </Section>
            {name !== "" && <Bindings topology={value} />}
          </>
        )}
      </Loaded>
    </Page>
  );
}

function ExchangeFacts({ exchange }: { exchange: Exchange }) {
  const { words } = useLocale();
  const w = words.exchanges;
  return (
    <div class="stack">
      <Facts
        facts={[
          [w.vhost, <Name text={exchange.vhost} />],
          [w.type, <Name text={exchange.type} />],
          [w.durable, exchange.durable ? words.yes : words.no],
          [w.autoDelete, exchange.auto_delete ? words.yes : words.no],
          [w.internal, exchange.internal ? words.yes : words.no],
        ]}
      />
      {Object.keys(exchange.arguments).length > 0 && (
        <div>
          <h3>{w.arguments}</h3>
          <Values values={exchange.arguments} label={w.arguments} />
        </div>
      )}
    </div>
  );
}

function DefaultRoute({ vhost }: { vhost: string }) {
  const { words } = useLocale();
  const [subject, setSubject] = useState("");
  const found = useLoad(subject, async (signal) => {
    if (subject === "") return null;
    try {
      return await call("get", "/v1/queues/{vhost}/{name}", { at: { vhost, name: subject }, signal });
    } catch (error) {
      if (error instanceof Failure && error.status === 404) return null;
      throw error;
    }
  });
  return (
    <div class="stack">
      <p class="hint">{words.exchange.isDefault}</p>
      <Field label={words.exchange.subject} value={subject} onInput={setSubject} />
      {subject !== "" && (
        <Loaded data={found}>
          {(queue) =>
            queue === null ? (
              <p role="status">{words.exchange.isNoQueue}</p>
            ) : (
              <p role="status">
                {words.exchange.isQueue} <Destination kind="queue" vhost={vhost} name={queue.name} />
              </p>
            )
          }
        </Loaded>
      )}
    </div>
  );
}

function RouteTester({ topology }: { topology: Topology }) {
  const { words, format } = useLocale();
  const [subject, setSubject] = useState("");
  const route = routeOf(topology.exchange, subject, topology.exchanges, topology.bindings.items);
  return (
    <div class="stack">
      <Field label={words.exchange.subject} value={subject} onInput={setSubject} hint={words.exchange.computed} />
      {topology.bindings.isCut && <p class="note note-warn">{words.cutList(format.count(topology.bindings.items.length))}</p>}
      <div role="status" class="stack">
        {route.byHeaders.map((exchange) => (
          <p key={exchange} class="note">
            <bdi>{words.exchange.headersRoute(exchange)}</bdi>
          </p>
        ))}
        {route.alternate !== null && (
          <p class="note">
            <bdi>{words.exchange.alternate(route.alternate)}</bdi>
          </p>
        )}
        {route.destinations.length === 0 && route.byHeaders.length === 0 && <p>{words.exchange.nowhere}</p>}
        {route.destinations.length > 0 && <p>{words.exchange.goes(format.count(route.destinations.length))}</p>}
        <ul class="stack">
          {route.destinations.map((destination) => (
            <li key={destination.queue}>
              <Destination kind="queue" vhost={topology.exchange.vhost} name={destination.queue} />{" "}
              <span class="quiet">
                {words.exchange.through}{" "}
                {destination.path.map((binding, index) => (
                  <span key={index}>
                    {index > 0 && " → "}
                    <bdi class="mono">{binding.source}</bdi> <Badge>{binding.routing_key ?? ""}</Badge>
                  </span>
                ))}
              </span>
            </li>
          ))}
        </ul>
      </div>
    </div>
  );
}

function Bindings({ topology }: { topology: Topology }) {
  const { words } = useLocale();
  const w = words.exchange;
  const { exchange, bindings } = topology;
  const key: Column<Binding> = { label: w.pattern, cell: (binding) => <Name text={binding.routing_key ?? ""} /> };
  const extra: Column<Binding> = { label: words.exchanges.arguments, cell: (binding) => <Values values={binding.arguments ?? {}} label={words.exchanges.arguments} /> };
  const to: Column<Binding> = {
    label: w.destination,
    cell: (binding) => (
      <>
        <Destination kind={binding.destination_type} vhost={exchange.vhost} name={binding.destination} />{" "}
        <span class="quiet">{binding.destination_type === "queue" ? w.queue : w.exchange}</span>
      </>
    ),
  };
  const from: Column<Binding> = { label: w.source, cell: (binding) => <Destination kind="exchange" vhost={exchange.vhost} name={binding.source} /> };
  const incoming = bindings.items.filter((binding) => binding.destination_type === "exchange" && binding.destination === exchange.name);
  return (
    <>
      <Section title={w.bindings}>
        <Table label={w.bindings} columns={[key, to, extra]} rows={bindings.items.filter((binding) => binding.source === exchange.name)} empty={w.noBindings} />
      </Section>
      {incoming.length > 0 && (
        <Section title={w.bindingsTo}>
          <Table label={w.bindingsTo} columns={[from, key, extra]} rows={incoming} empty={w.noBindings} />
        </Section>
      )}
    </>
  );
}

function Destination({ kind, vhost, name }: { kind: "queue" | "exchange"; vhost: string; name: string }) {
  return (
    <Link to={addressOf(kind, { vhost, name })}>
      <Name text={name} />
    </Link>
  );
}
