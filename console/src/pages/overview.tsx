// The broker at a glance: rates, latency, memory, disk, alarms and stalls.

import { useState } from "preact/hooks";
import { readHistory } from "../api/session.ts";
import { call } from "../api/client.ts";
import type { Overview } from "../api/types.ts";
import type { Feed } from "../feed/feed.ts";
import { useFeed } from "../feed/hooks.ts";
import { PROTOCOLS, sumOfProtocols, type Alarm } from "../feed/protocol.ts";
import { Samples } from "../feed/samples.ts";
import { visibleText } from "../format.ts";
import { useLoad, type View } from "../load.ts";
import { useLocale } from "../locale.ts";
import { Chart } from "../parts/chart.tsx";
import { Facts } from "../parts/facts.tsx";
import { FailureNote } from "../parts/failure.tsx";
import { Segments } from "../parts/field.tsx";
import { Page, Section } from "../parts/page.tsx";
import { StallStrip } from "../parts/stall-strip.tsx";

type Window = "10m" | "24h";

const MINUTE_MS = 60_000;
const DAY_SAMPLES_MAX = 1_440;
const PROTOCOL_LABELS = { stomp: "STOMP", nats: "NATS", amqp091: "AMQP 0-9-1", amqp10: "AMQP 1.0" } as const;

export function OverviewPage() {
  const { words } = useLocale();
  const feed = useFeed();
  const [window, setWindow] = useState<Window>("10m");
  const overview = useLoad("overview", (signal) => call("get", "/v1/overview", { signal }));
  const stalls = useLoad(`stalls ${feed.hello?.now ?? ""}`, async (signal) => {
    feed.addStalls((await call("get", "/v1/stalls", { signal })).items);
  });
  const day = useLoad(
    window,
    async (signal) => {
      const samples = new Samples(DAY_SAMPLES_MAX);
      if (window === "24h") samples.load(await readHistory("24h", signal));
      return samples;
    },
    MINUTE_MS,
  );
  const samples = window === "10m" ? feed.samples : day.view.kind === "ready" ? day.view.value : new Samples();

  return (
    <Page
      title={words.overview.title}
      actions={
        <Segments
          label={words.overview.window}
          value={window}
          onChange={setWindow}
          options={[
            { value: "10m", label: words.overview.tenMinutes },
            { value: "24h", label: words.overview.day },
          ]}
        />
      }
    >
      <Alarms alarms={feed.overview?.alarms ?? []} />
      {window === "24h" && day.view.kind === "failed" && <FailureNote failure={day.view.failure} onRetry={day.reload} />}
      <Tiles feed={feed} />
      <Charts samples={samples} />
      <StallStrip stalls={feed.stalls} now={feed.now()} failure={stalls.view.kind === "failed" ? stalls.view.failure : null} />
      <Broker feed={feed} view={overview.view} onRetry={overview.reload} />
    </Page>
  );
}

function Alarms({ alarms }: { alarms: readonly Alarm[] }) {
  const { words } = useLocale();
  if (alarms.length === 0) return null;
  return (
    <div class="note note-danger" role="alert">
      <h2>{words.overview.alarms}</h2>
      <ul>
        {alarms.map((alarm) => (
          <li key={alarm.kind + alarm.text}>
            <bdi>{visibleText(alarm.text)}</bdi>
          </li>
        ))}
      </ul>
    </div>
  );
}

function Tiles({ feed }: { feed: Feed }) {
  const { words, format } = useLocale();
  const sample = feed.overview?.sample ?? {};
  const value = (name: string): number | null => sample[name] ?? null;
  const tiles: readonly (readonly [string, string])[] = [
    [words.overview.published, format.rate(sumOfProtocols(sample, "published")) + words.overview.perSecond],
    [words.overview.delivered, format.rate(sumOfProtocols(sample, "delivered")) + words.overview.perSecond],
    [words.overview.confirmP99, format.latency(value("confirm_p99_us"))],
    [words.overview.ready, format.count(value("ready"))],
    [words.overview.unsettled, format.count(value("unsettled"))],
    [words.overview.connections, format.count(value("connections"))],
    [words.overview.queues, format.count(value("queues"))],
    [words.overview.memory, format.bytes(value("memory_bytes"))],
    [words.overview.diskFree, format.bytes(value("disk_free_bytes"))],
    [words.overview.journal, format.bytes(value("journal_bytes_rate")) + words.overview.perSecond],
  ];
  return (
    <dl class="tiles">
      {tiles.map(([label, text]) => (
        <div key={label} class="tile">
          <dt>{label}</dt>
          <dd>{text}</dd>
        </div>
      ))}
    </dl>
  );
}

function Charts({ samples }: { samples: Samples }) {
  const { words, format } = useLocale();
  const [direction, setDirection] = useState<"published" | "delivered">("published");
  const line = (label: string, name: string) => ({ label, values: samples.values(name) });
  const hasConfirms = samples.values("confirm_max_us").some((value) => value !== null);
  if (samples.length === 0) return <p class="quiet">{words.overview.noSamples}</p>;
  return (
    <div class="charts">
      <Section
        title={words.overview.rates}
        aside={
          <Segments
            label={words.overview.direction}
            value={direction}
            onChange={setDirection}
            options={[
              { value: "published", label: words.overview.published },
              { value: "delivered", label: words.overview.delivered },
            ]}
          />
        }
      >
        <Chart
          title={words.overview.rates}
          times={samples.times}
          format={(value) => format.short(value)}
          series={PROTOCOLS.map((protocol) =>
            line(protocol === "other" ? words.overview.other : PROTOCOL_LABELS[protocol], `${direction}_${protocol}`),
          )}
        />
      </Section>
      <Section title={words.overview.confirm}>
        {hasConfirms ? (
          <Chart
            title={words.overview.confirm}
            times={samples.times}
            format={(value) => format.latency(value)}
            isLogarithmic
            series={[line("p50", "confirm_p50_us"), line("p99", "confirm_p99_us"), line(words.overview.max, "confirm_max_us")]}
          />
        ) : (
          <p class="quiet empty">{words.overview.noConfirms}</p>
        )}
      </Section>
      <Section title={words.overview.backlog}>
        <Chart
          title={words.overview.backlog}
          times={samples.times}
          format={(value) => format.short(value)}
          series={[line(words.overview.ready, "ready"), line(words.overview.unsettled, "unsettled")]}
        />
      </Section>
      <Section title={words.overview.memory}>
        <Chart
          title={words.overview.memory}
          times={samples.times}
          format={(value) => format.bytes(value)}
          series={[line(words.overview.memory, "memory_bytes")]}
          isBytes
        />
      </Section>
    </div>
  );
}

function Broker({ feed, view, onRetry }: { feed: Feed; view: View<Overview>; onRetry: () => void }) {
  const { words, format } = useLocale();
  if (view.kind === "failed") return <FailureNote failure={view.failure} onRetry={onRetry} />;
  if (view.kind === "loading") return null;
  const started = feed.hello?.started;
  return (
    <Section title={words.overview.broker}>
      <div class="stack">
        <Facts
          facts={[
            [words.overview.version, <bdi>{`${view.value.product} ${view.value.version}`}</bdi>],
            [words.overview.node, <bdi>{feed.hello?.node ?? "–"}</bdi>],
            [words.overview.uptime, format.duration(started === undefined ? view.value.uptime_ms : feed.now() - started)],
          ]}
        />
        <h3>{words.overview.listeners}</h3>
        <ul class="inline-list">
          {view.value.listeners.map((listener) => (
            <li key={listener.name + listener.address}>
              {listener.name} <bdi class="mono">{listener.address}</bdi>
            </li>
          ))}
        </ul>
      </div>
    </Section>
  );
}
