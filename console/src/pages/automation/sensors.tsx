// Sensors: whether they run, and what they wrote last if they do not.

import { useState } from "preact/hooks";
import { change, path, read, type Sensor } from "../../api/automation.ts";
import type { Failure } from "../../api/client.ts";
import { visibleText } from "../../format.ts";
import { failureOf, useLoad } from "../../load.ts";
import { useLocale } from "../../locale.ts";
import { Badge } from "../../parts/badge.tsx";
import { FailureNote } from "../../parts/failure.tsx";
import { Loaded } from "../../parts/loaded.tsx";
import { Name } from "../../parts/name.tsx";
import { Section } from "../../parts/page.tsx";
import { Table } from "../../parts/table.tsx";

const INTERVAL_MS = 5_000;

export function Sensors() {
  const { words } = useLocale();
  const w = words.automation;
  const [failure, setFailure] = useState<Failure | null>(null);
  const sensors = useLoad("sensors", (signal) => read<Sensor[]>("/sensortypes", { limit: -1 }, signal), INTERVAL_MS);
  const enable = (sensor: Sensor): void => {
    setFailure(null);
    change("put", "/sensortypes" + path(sensor.ref), { enabled: !sensor.enabled }).then(sensors.reload, (error: unknown) => setFailure(failureOf(error)));
  };
  return (
    <Section title={w.partNames.sensors}>
      {failure !== null && <FailureNote failure={failure} />}
      <Loaded data={sensors}>
        {(rows) => (
          <Table
            label={w.partNames.sensors}
            rows={rows}
            empty={w.noSensors}
            columns={[
              { label: w.sensor, cell: (sensor) => <Name text={sensor.ref} /> },
              { label: w.description, isText: true, cell: (sensor) => <Name text={sensor.description ?? ""} /> },
              { label: w.state, isText: true, cell: (sensor) => <State of={sensor["x-imori"] ?? {}} /> },
              {
                label: w.enabled,
                cell: (sensor) => <input type="checkbox" checked={sensor.enabled} aria-label={w.enabledOf(sensor.ref)} onClick={(event) => (event.preventDefault(), enable(sensor))} />,
              },
            ]}
          />
        )}
      </Loaded>
    </Section>
  );
}

/** The status of a sensor; of one that does not run, also how it ended and its last lines. */
function State({ of }: { of: Readonly<Record<string, unknown>> }) {
  const { status, last_end: lastEnd, output } = of;
  const isRunning = status === "running";
  const lines = [lastEnd, ...(Array.isArray(output) ? output : [])].filter((line) => typeof line === "string");
  return (
    <>
      <Badge tone={isRunning ? "good" : lines.length > 0 ? "danger" : "plain"}>{String(status ?? "")}</Badge>
      {!isRunning &&
        lines.map((line, at) => (
          <div key={at} class="quiet">
            <bdi>{visibleText(line)}</bdi>
          </div>
        ))}
    </>
  );
}
