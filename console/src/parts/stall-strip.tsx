// The stalls of the last hour: a strip of time, and a table with their causes.

import type { Failure } from "../api/client.ts";
import type { Stall } from "../api/types.ts";
import { visibleText } from "../format.ts";
import { useLocale } from "../locale.ts";
import { Badge } from "./badge.tsx";
import { FailureNote } from "./failure.tsx";
import { Section } from "./page.tsx";
import { Table, type Column } from "./table.tsx";

const HOUR_MS = 3_600_000;
const STRIP_WIDTH = 3_600;
const STRIP_HEIGHT = 28;
/** The narrowest mark; a stall of some milliseconds would be invisible. */
const MARK_WIDTH_MIN = 7;
const ROWS_MAX = 5;

type Props = {
  stalls: readonly Stall[];
  now: number;
  /** The reason why older stalls are not known. */
  failure: Failure | null;
};

export function StallStrip({ stalls, now, failure }: Props) {
  const { words, format } = useLocale();
  const recent = stalls.filter((stall) => now - stall.began < HOUR_MS).reverse();
  const older = recent.slice(ROWS_MAX);
  return (
    <Section title={words.overview.stalls}>
      {failure !== null && <FailureNote failure={failure} />}
      <svg
        class="strip"
        viewBox={`0 0 ${STRIP_WIDTH} ${STRIP_HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={words.overview.stallStrip(format.count(recent.length))}
      >
        {[1, 2, 3].map((quarter) => (
          <line key={quarter} class="strip-tick" x1={quarter * 900} x2={quarter * 900} y1="0" y2={STRIP_HEIGHT} />
        ))}
        {recent.map((stall) => (
          <rect
            key={`${stall.began} ${stall.what} ${stall.cell ?? ""}`}
            class={stall.what === "flush" ? "strip-flush" : "strip-cell"}
            x={STRIP_WIDTH - ((now - stall.began) / HOUR_MS) * STRIP_WIDTH}
            y={stall.what === "flush" ? 0 : STRIP_HEIGHT / 2}
            width={Math.max(MARK_WIDTH_MIN, (stall.lasted_ms / HOUR_MS) * STRIP_WIDTH)}
            height={STRIP_HEIGHT / 2}
          />
        ))}
      </svg>
      <div class="strip-ends quiet">
        <span>{words.overview.hourAgo}</span>
        <span class="strip-key">
          <svg viewBox="0 0 8 8" aria-hidden="true">
            <rect class="strip-flush" width="8" height="8" />
          </svg>
          {words.overview.flush}
          <svg viewBox="0 0 8 8" aria-hidden="true">
            <rect class="strip-cell" width="8" height="8" />
          </svg>
          {words.overview.cell}
        </span>
        <span>{words.overview.now}</span>
      </div>
      {(failure === null || recent.length > 0) && <StallTable stalls={recent.slice(0, ROWS_MAX)} />}
      {older.length > 0 && (
        <details>
          <summary>{words.overview.olderStalls(format.count(older.length))}</summary>
          <StallTable stalls={older} />
        </details>
      )}
    </Section>
  );
}

function StallTable({ stalls }: { stalls: readonly Stall[] }) {
  const { words, format } = useLocale();
  const partOf = (stall: Stall): string => {
    if (stall.what === "flush") return words.overview.flush;
    return typeof stall.cell === "number" ? words.overview.cellNumber(String(stall.cell)) : words.overview.cell;
  };
  const columns: readonly Column<Stall>[] = [
    { label: words.overview.began, cell: (stall) => format.clock(stall.began) },
    { label: words.overview.lasted, cell: (stall) => (stall.over ? format.duration(stall.lasted_ms) : words.overview.goingOn), isNumber: true },
    { label: words.overview.part, cell: partOf },
    { label: words.overview.cause, cell: (stall) => <Badge tone={stall.over ? "plain" : "danger"}>{words.overview.causes[stall.cause] ?? stall.cause}</Badge> },
    { label: words.overview.details, cell: (stall) => <bdi>{visibleText(stall.text)}</bdi>, isText: true },
  ];
  return <Table label={words.overview.stalls} columns={columns} rows={stalls} empty={words.overview.noStalls} />;
}
