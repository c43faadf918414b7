// One queue: its depth and rates, facts, consumers and messages, and what an operator can do with it.

import { useRef, useState } from "preact/hooks";
import { call } from "../api/client.ts";
import { readBindings, readConsumersOfQueue } from "../api/pages.ts";
import type { Binding, Consumer, Queue } from "../api/types.ts";
import { useFeed } from "../feed/hooks.ts";
import { Samples } from "../feed/samples.ts";
import { useLoad } from "../load.ts";
import { useLocale } from "../locale.ts";
import { Chart } from "../parts/chart.tsx";
import { Facts, type Fact } from "../parts/facts.tsx";
import { Link } from "../parts/link.tsx";
import { Loaded } from "../parts/loaded.tsx";
import { Name } from "../parts/name.tsx";
import { Page, Section } from "../parts/page.tsx";
import { Table, type Column } from "../parts/table.tsx";
import { Value, Values } from "../parts/values.tsx";
import { addressOf } from "../route.ts";
import { QueueActions } from "./queue-actions.tsx";
import { QueueMessages } from "./queue-messages.tsx";

const QUEUE_INTERVAL_MS = 1_000;
const LISTS_INTERVAL_MS = 5_000;

export function QueuePage({ query }: { query: URLSearchParams }) {
  const { words } = useLocale();
  const feed = useFeed();
  const at = { vhost: query.get("vhost") ?? "/", name: query.get("name") ?? "" };
  const samples = useRef(new Samples());
  const [notice, setNotice] = useState("");
  const queue = useLoad(
    `${at.vhost}\n${at.name}`,
    async (signal) => {
      const answer = await call("get", "/v1/queues/{vhost}/{name}", { at, signal });
      samples.current.push(feed.now(), sampleOf(answer));
      return answer;
    },
    QUEUE_INTERVAL_MS,
  );

  return (
    <Page
      title={at.name}
      heading={
        <>
          <Link to={addressOf("queues")} class="above">
            {words.queue.back}
          </Link>
          <Name text={at.name} />
        </>
      }
      actions={queue.view.kind === "ready" && <QueueActions queue={queue.view.value} onDone={setNotice} />}
    >
      <p class={notice === "" ? "off-screen" : "note note-good"} role="status">
        {notice}
      </p>
      <Loaded data={queue}>
        {(value) => (
          <>
            <QueueCharts samples={samples.current} />
            <Section title={words.queue.facts}>
              <QueueFacts queue={value} />
            </Section>
            <QueueMessages at={at} ready={value.ready} />
            <div class="columns">
              <Section title={words.queue.consumers}>
                <QueueConsumers at={at} />
              </Section>
              <Section title={words.queue.bindings}>
                <QueueBindings at={at} />
              </Section>
            </div>
            {value.in_effect !== undefined && value.in_effect !== null && (
              <Section title={words.queue.settings}>
                <Table
                  label={words.queue.settings}
                  rows={value.in_effect}
                  empty={words.none}
                  columns={[
                    { label: words.queue.setting, cell: (setting) => <span class="mono">{setting.key}</span> },
                    { label: words.queue.value, cell: (setting) => <Value value={setting.value} /> },
                    { label: words.queue.source, cell: (setting) => <Name text={setting.source} /> },
                  ]}
                />
              </Section>
            )}
          </>
        )}
      </Loaded>
    </Page>
  );
}

function sampleOf(queue: Queue): Record<string, number> {
  return {
    ready: queue.ready,
    unsettled: queue.unsettled,
    delayed: queue.delayed,
    published: queue.rates.published.per_second,
    delivered: queue.rates.delivered.per_second,
    acknowledged: queue.rates.acknowledged.per_second,
  };
}

function QueueCharts({ samples }: { samples: Samples }) {
  const { words, format } = useLocale();
  const line = (label: string, name: string) => ({ label, values: samples.values(name) });
  return (
    <>
      <div class="charts">
        <Section title={words.queue.depth}>
          <Chart
            title={words.queue.depth}
            times={samples.times}
            format={(value) => format.short(value)}
            series={[line(words.overview.ready, "ready"), line(words.overview.unsettled, "unsettled"), line(words.queue.delayed, "delayed")]}
          />
        </Section>
        <Section title={words.queue.rates}>
          <Chart
            title={words.queue.rates}
            times={samples.times}
            format={(value) => format.short(value)}
            series={[
              line(words.overview.published, "published"),
              line(words.overview.delivered, "delivered"),
              line(words.queue.acknowledged, "acknowledged"),
            ]}
          />
        </Section>
      </div>
      <p class="hint">{words.queue.since}</p>
    </>
  );
}

function QueueFacts({ queue }: { queue: Queue }) {
  const { words, format } = useLocale();
  const w = words.queue;
  const facts: Fact[] = [
    [words.queues.vhost, <Name text={queue.vhost} />],
    [words.queues.ready, format.count(queue.ready)],
    [words.queues.unsettled, format.count(queue.unsettled)],
    [words.queues.bytes, format.bytes(queue.ready_bytes)],
    [w.delayed, format.count(queue.delayed)],
    [words.queues.consumers, format.count(queue.consumers)],
    [w.redelivered, format.count(queue.rates.redelivered.total)],
    [w.durable, queue.durable ? words.yes : words.no],
    [w.autoDelete, queue.auto_delete ? words.yes : words.no],
  ];
  if (typeof queue.owner === "string") {
    facts.push([w.owner, <Link to={addressOf("connection", { name: queue.owner })}><Name text={queue.owner} /></Link>]);
  }
  if (typeof queue.policy === "string") facts.push([w.policy, <Name text={queue.policy} />]);
  if (typeof queue.operator_policy === "string") facts.push([w.operatorPolicy, <Name text={queue.operator_policy} />]);
  return (
    <div class="stack">
      <Facts facts={facts} />
      {Object.keys(queue.arguments).length > 0 && (
        <div>
          <h3>{w.arguments}</h3>
          <Values values={queue.arguments} label={w.arguments} />
        </div>
      )}
    </div>
  );
}

function QueueConsumers({ at }: { at: { vhost: string; name: string } }) {
  const { words } = useLocale();
  const consumers = useLoad("consumers", () => readConsumersOfQueue(at.vhost, at.name), LISTS_INTERVAL_MS);
  const columns: readonly Column<Consumer>[] = [
    {
      label: words.queue.connection,
      cell: (consumer) => (
        <Link to={addressOf("connection", { name: consumer.connection })}>
          <Name text={consumer.connection} />
        </Link>
      ),
    },
    { label: words.queue.consumer, cell: (consumer) => <Name text={consumer.id} /> },
    { label: words.queue.user, cell: (consumer) => <Name text={consumer.user} /> },
    { label: words.queue.session, cell: (consumer) => consumer.session, isNumber: true },
    { label: words.queue.settles, cell: (consumer) => (consumer.settles ? words.yes : words.no) },
  ];
  return (
    <Loaded data={consumers}>
      {(list) => <Table label={words.queue.consumers} columns={columns} rows={list.items} empty={words.queue.noConsumers} />}
    </Loaded>
  );
}

function QueueBindings({ at }: { at: { vhost: string; name: string } }) {
  const { words } = useLocale();
  const bindings = useLoad("bindings", () => readBindings(at.vhost, undefined, at.name), LISTS_INTERVAL_MS);
  const columns: readonly Column<Binding>[] = [
    {
      label: words.exchange.source,
      cell: (binding) => (
        <Link to={addressOf("exchange", { vhost: at.vhost, name: binding.source })}>
          <Name text={binding.source} />
        </Link>
      ),
    },
    { label: words.exchange.pattern, cell: (binding) => <Name text={binding.routing_key ?? ""} /> },
  ];
  return (
    <Loaded data={bindings}>
      {(list) => (
        <Table
          label={words.queue.bindings}
          columns={columns}
          rows={list.items.filter((binding) => binding.destination_type === "queue")}
          empty={words.queue.noBindings}
        />
      )}
    </Loaded>
  );
}
