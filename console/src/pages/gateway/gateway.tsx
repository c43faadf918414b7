// The HTTP gateway: its routes with their rates, and the latest faults of its scripts.

import { useRef } from "preact/hooks";
import { call } from "../../api/client.ts";
import type { Gateway } from "../../api/types.ts";
import { useFeed } from "../../feed/hooks.ts";
import { visibleText } from "../../format.ts";
import { useLoad } from "../../load.ts";
import { useLocale } from "../../locale.ts";
import { Badge } from "../../parts/badge.tsx";
import { Loaded } from "../../parts/loaded.tsx";
import { Name } from "../../parts/name.tsx";
import { Page, Section } from "../../parts/page.tsx";
import { Table, type Column } from "../../parts/table.tsx";

const INTERVAL_MS = 2_000;
/** Index of the class of server errors in `responses`. */
const SERVER_ERRORS = 4;
const CLIENT_ERRORS = 3;

type Route = Gateway["routes"][number];
type Fault = Gateway["script_faults"][number];
type Reading = { readonly at: number; readonly counts: ReadonlyMap<string, number> };

export function GatewayPage() {
  const { words } = useLocale();
  const w = words.gateway;
  const readings = useRef<{ before: Reading | null; now: Reading | null }>({ before: null, now: null });
  const gateway = useLoad(
    "gateway",
    async (signal) => {
      const answer = await call("get", "/v1/gateway", { signal });
      const counts = new Map(answer.routes.map((route) => [route.name, total(route)]));
      readings.current = { before: readings.current.now, now: { at: Date.now(), counts } };
      return answer;
    },
    INTERVAL_MS,
  );
  const rate = (route: Route): number | null => {
    const { before, now } = readings.current;
    const earlier = before?.counts.get(route.name);
    if (before === null || now === null || earlier === undefined) return null;
    return Math.max(0, total(route) - earlier) / Math.max(0.001, (now.at - before.at) / 1_000);
  };
  return (
    <Page title={w.title}>
      <Loaded data={gateway}>{(value) => (value.file == null ? <p class="quiet empty">{w.absent}</p> : <Present gateway={value} rate={rate} />)}</Loaded>
    </Page>
  );
}

function Present({ gateway, rate }: { gateway: Gateway; rate: (route: Route) => number | null }) {
  const { words, format } = useLocale();
  const feed = useFeed();
  const w = words.gateway;
  const routes: readonly Column<Route>[] = [
    { label: w.route, cell: (route) => <Name text={route.name} /> },
    { label: w.methods, cell: (route) => (route.methods.length === 0 ? <span class="quiet">{w.all}</span> : route.methods.join(" ")) },
    { label: w.hosts, cell: (route) => <Name text={route.hosts.join(" ")} empty={w.all} /> },
    { label: w.pattern, cell: (route) => <Name text={route.pattern} /> },
    { label: w.action, cell: (route) => <Action route={route} /> },
    { label: w.user, cell: (route) => <Name text={route.user ?? ""} empty={w.caller} /> },
    { label: w.inFlight, isNumber: true, cell: (route) => format.count(route.in_flight) },
    { label: w.rate, isNumber: true, cell: (route) => format.rate(rate(route)) },
    { label: w.responses, isNumber: true, cell: (route) => format.count(total(route)) },
    { label: w.clientErrors, isNumber: true, cell: (route) => <Errors count={route.responses[CLIENT_ERRORS] ?? 0} isDanger={false} /> },
    { label: w.serverErrors, isNumber: true, cell: (route) => <Errors count={route.responses[SERVER_ERRORS] ?? 0} isDanger /> },
    { label: w.meanTime, isNumber: true, cell: (route) => format.latency(total(route) === 0 ? null : route.time_us / total(route)) },
  ];
  const faults: readonly Column<Fault>[] = [
    { label: w.place, cell: (fault) => <Name text={fault.place} /> },
    { label: w.phase, cell: (fault) => <code>{fault.phase}</code> },
    { label: w.message, isText: true, cell: (fault) => <bdi>{visibleText(fault.message)}</bdi> },
    { label: w.count, isNumber: true, cell: (fault) => format.count(fault.count) },
    { label: w.last, isNumber: true, cell: (fault) => format.ago(fault.last, feed.now()) },
  ];
  return (
    <>
      {gateway.problems.length > 0 && (
        <div class="note note-danger" role="alert">
          <p>
            <strong>{w.refused}</strong>
          </p>
          <ul>
            {gateway.problems.map((problem) => (
              <li key={problem}>
                <bdi>{visibleText(problem)}</bdi>
              </li>
            ))}
          </ul>
        </div>
      )}
      <p class="quiet">
        <Name text={gateway.file ?? ""} /> · {w.readAt(format.dateTime(gateway.read_at ?? 0))} · {w.connections(format.count(gateway.connections))}
      </p>
      <Section title={w.routes}>
        <Table label={w.routes} columns={routes} rows={gateway.routes} empty={w.noRoutes} />
      </Section>
      <Section title={w.faults}>
        <Table label={w.faults} columns={faults} rows={gateway.script_faults} empty={w.noFaults} />
      </Section>
    </>
  );
}

function Action({ route }: { route: Route }) {
  const { words } = useLocale();
  return (
    <>
      <code>{route.action}</code> {route.scripts && <Badge>{words.gateway.scripts}</Badge>}
    </>
  );
}

function Errors({ count, isDanger }: { count: number; isDanger: boolean }) {
  const { format } = useLocale();
  if (count === 0) return <span class="quiet">0</span>;
  return isDanger ? <Badge tone="danger">{format.count(count)}</Badge> : <>{format.count(count)}</>;
}

function total(route: Route): number {
  return route.responses.reduce((sum, count) => sum + count, 0);
}
