// RPC: the services that answer, calls in flight, how long replies take, and calls that nobody answered.

import { useRef } from "preact/hooks";
import { call } from "../../api/client.ts";
import type { Calls } from "../../api/types.ts";
import { useLoad } from "../../load.ts";
import { useLocale } from "../../locale.ts";
import { Link } from "../../parts/link.tsx";
import { Loaded } from "../../parts/loaded.tsx";
import { Name } from "../../parts/name.tsx";
import { Page, Section } from "../../parts/page.tsx";
import { Table, type Column } from "../../parts/table.tsx";
import { addressOf } from "../../route.ts";
import { CallHistory, COLUMNS_MAX, keyOf, quantile } from "./call-history.ts";
import { HeatMap } from "./heat-map.tsx";

const INTERVAL_MS = 1_000;

type Service = Calls["services"][number];

export function CallsPage() {
  const { words } = useLocale();
  const w = words.calls;
  const history = useRef(new CallHistory());
  const calls = useLoad(
    "calls",
    async (signal) => {
      const answer = await call("get", "/v1/calls", { signal });
      history.current.add(answer, Date.now());
      return answer;
    },
    INTERVAL_MS,
  );
  return (
    <Page title={w.title}>
      <p class="quiet">{w.intro}</p>
      <Loaded data={calls}>{(value) => <Measured calls={value} history={history.current} />}</Loaded>
    </Page>
  );
}

function Measured({ calls, history }: { calls: Calls; history: CallHistory }) {
  const { words, format } = useLocale();
  const w = words.calls;
  const services = [...calls.services].sort((a, b) => (history.rates.get(keyOf(b))?.requests ?? 0) - (history.rates.get(keyOf(a))?.requests ?? 0) || b.requests - a.requests);
  const rate = (service: Service): number | null => history.rates.get(keyOf(service))?.replies ?? null;
  const at = (part: number) => (service: Service) => format.latency(quantile(calls.bounds_us, service.times, part));
  const columns: readonly Column<Service>[] = [
    { label: w.service, cell: (service) => <ServiceName service={service} /> },
    { label: w.vhost, cell: (service) => <Name text={service.vhost} /> },
    { label: w.perSecond, isNumber: true, cell: (service) => format.rate(rate(service)) },
    { label: w.inFlight, isNumber: true, cell: (service) => (service.oldest_ms == null ? format.count(service.in_flight) : w.oldest(format.count(service.in_flight), format.duration(service.oldest_ms))) },
    { label: "p50", isNumber: true, cell: at(0.5) },
    { label: "p99", isNumber: true, cell: at(0.99) },
    { label: w.longest, isNumber: true, cell: (service) => (service.replies === 0 ? format.latency(null) : format.latency(service.longest_us)) },
    { label: w.timedOut, isNumber: true, cell: (service) => <Count value={service.timed_out} /> },
    { label: w.unroutable, isNumber: true, cell: (service) => <Count value={service.unroutable} /> },
    { label: w.responders, cell: (service) => <Responders service={service} /> },
  ];
  return (
    <>
      <Section title={w.heatMap}>
        <HeatMap title={w.heatMap} bounds={calls.bounds_us} columns={history.columns} columnsMax={COLUMNS_MAX} />
      </Section>
      <Section title={w.services} aside={<span class="quiet">{w.measured(format.duration(calls.measured_ms))}</span>}>
        <Table label={w.services} columns={columns} rows={services} empty={w.noServices} />
        <p class="quiet">
          {w.orphans(format.count(calls.orphan_replies))}
          {calls.not_followed > 0 && ` ${w.notFollowed(format.count(calls.not_followed))}`}
        </p>
      </Section>
    </>
  );
}

/** The queue, for an address of the default exchange; else the exchange and the subject. */
function ServiceName({ service }: { service: Service }) {
  if (service.exchange === "") {
    return (
      <Link to={addressOf("queue", { vhost: service.vhost, name: service.subject })}>
        <Name text={service.subject} />
      </Link>
    );
  }
  return (
    <>
      <Name text={service.subject} />{" "}
      <Link to={addressOf("exchange", { vhost: service.vhost, name: service.exchange })}>
        <Name text={service.exchange} />
      </Link>
    </>
  );
}

function Count({ value }: { value: number }) {
  const { format } = useLocale();
  return value === 0 ? <span class="quiet">0</span> : <strong>{format.count(value)}</strong>;
}

function Responders({ service }: { service: Service }) {
  const { words } = useLocale();
  if (service.responders.length === 0) return <span class="quiet">{words.none}</span>;
  return (
    <ul class="plain-list">
      {service.responders.map((each) => (
        <li key={each.connection ?? each.user}>
          {each.connection == null ? (
            <span class="quiet">{words.trace.internal}</span>
          ) : (
            <Link to={addressOf("connection", { name: each.connection })}>
              <Name text={each.user} /> <span class="quiet">{each.protocol}</span>
            </Link>
          )}
        </li>
      ))}
    </ul>
  );
}
