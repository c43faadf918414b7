// How long calls took over the last minute: a column for each second, a row for each bucket of times.

import { useLocale } from "../../locale.ts";
import { ChartTable } from "../../parts/chart-table.tsx";
import { rowsInUse, type Column } from "./call-history.ts";

const CELL_WIDTH = 10;
const CELL_HEIGHT = 12;
/** The height of a row on the page, as the style sheet has it for the labels. */
const ROW_REM = 1.3;
/** The faintest cell that is not empty; a single call has to be seen. */
const OPACITY_MIN = 0.18;

type Props = {
  title: string;
  /** Upper bounds of the buckets in microseconds; the last bucket has none. */
  bounds: readonly number[];
  columns: readonly Column[];
  columnsMax: number;
};

export function HeatMap({ title, bounds, columns, columnsMax }: Props) {
  const { words, format } = useLocale();
  const rows = rowsInUse(columns, bounds.length + 1);
  const most = Math.max(1, ...columns.flatMap((column) => column.counts));
  const label = (row: number): string => {
    const bound = bounds[row];
    return bound === undefined ? words.calls.above(format.latency(bounds[row - 1])) : words.calls.upTo(format.latency(bound));
  };
  if (rows === null) return <p class="quiet empty">{words.calls.noCalls}</p>;
  const shown = Array.from({ length: rows.last - rows.first + 1 }, (_, index) => rows.last - index);
  const upwards = [...shown].reverse();
  return (
    <figure class="heat-map">
      <div class="heat-map-grid" role="img" aria-label={words.chartOf(title)}>
        <div class="heat-map-labels" aria-hidden="true">
          {shown.map((row) => (
            <span key={row}>{label(row)}</span>
          ))}
        </div>
        <svg style={{ height: `${shown.length * ROW_REM}rem` }} viewBox={`0 0 ${columnsMax * CELL_WIDTH} ${shown.length * CELL_HEIGHT}`} preserveAspectRatio="none" aria-hidden="true" focusable="false">
          {columns.map((column, index) =>
            shown.map((row, line) => {
              const count = column.counts[row] ?? 0;
              if (count === 0) return null;
              const strength = Math.log1p(count) / Math.log1p(most);
              return (
                <rect
                  key={`${column.time} ${row}`}
                  x={(columnsMax - columns.length + index) * CELL_WIDTH}
                  y={line * CELL_HEIGHT}
                  width={CELL_WIDTH - 1}
                  height={CELL_HEIGHT - 1}
                  fill-opacity={Math.max(OPACITY_MIN, strength).toFixed(2)}
                />
              );
            }),
          )}
        </svg>
      </div>
      <ChartTable
        title={title}
        labels={upwards.map(label)}
        rows={() => [...columns].reverse()}
        timeOf={(column) => column.time}
        cellsOf={(column) => upwards.map((row) => format.count(column.counts[row] ?? 0))}
      />
    </figure>
  );
}
