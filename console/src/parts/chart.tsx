// A chart over time with its legend, and the same numbers as a table.

import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { useLocale } from "../locale.ts";
import { ChartTable } from "./chart-table.tsx";

/** Rows of the table beside a chart; a longer one says no more. */
const TABLE_ROWS_MAX = 60;
const HEIGHT_REM = 12;
const TIME_AXIS_REM = 2.2;
/** Steps of an axis of bytes. */
const BYTE_STEPS = Array.from({ length: 50 }, (_, exponent) => 2 ** exponent);
/** Lines differ by dashes too, for readers who cannot tell the colours apart. */
const DASHES = [[], [6, 3], [2, 3], [9, 3, 2, 3], [1, 4]];
const SERIES_MAX = DASHES.length;
const MINUTE_SECONDS = 60;

export type Series = { readonly label: string; readonly values: readonly (number | null)[] };

type Props = {
  title: string;
  /** Milliseconds since the UNIX epoch. */
  times: readonly number[];
  series: readonly Series[];
  format: (value: number | null) => string;
  isLogarithmic?: boolean;
  isBytes?: boolean;
};

export function Chart({ title, times, series, format, isLogarithmic, isBytes }: Props) {
  const { words, format: formats, language } = useLocale();
  const holder = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const [cursor, setCursor] = useState<number | null>(null);
  const [hidden, setHidden] = useState<ReadonlySet<string>>(new Set());
  const [theme, setTheme] = useState(0);
  const lines = series.slice(0, SERIES_MAX);
  const labels = lines.map((line) => line.label).join("\n");
  const latestFormat = useRef(format);
  latestFormat.current = format;

  useEffect(() => watchTheme(() => setTheme((count) => count + 1)), []);

  useEffect(() => {
    const element = holder.current;
    if (element === null) return;
    const chart = new uPlot(optionsFor(element, lines, { isLogarithmic: isLogarithmic === true, isBytes: isBytes === true }, language, latestFormat, setCursor), [[]], element);
    plot.current = chart;
    const observer = new ResizeObserver(() => chart.setSize({ width: element.clientWidth, height: heightPx() }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      chart.destroy();
      plot.current = null;
    };
    // A chart is made anew only if its lines, language or colours change; new numbers go into it below.
  }, [labels, isLogarithmic, theme, language]);

  useEffect(() => {
    const seconds = times.map((time) => time / 1_000);
    const drawn = lines.map((line) => (isLogarithmic === true ? line.values.map((value) => (value !== null && value > 0 ? value : null)) : [...line.values]));
    plot.current?.setData([seconds, ...drawn]);
  });

  useEffect(() => {
    lines.forEach((line, index) => plot.current?.setSeries(index + 1, { show: !hidden.has(line.label) }));
  }, [hidden, labels, theme, language]);

  const toggle = (label: string): void => {
    const next = new Set(hidden);
    if (!next.delete(label)) next.add(label);
    setHidden(next);
  };
  const at = cursor ?? times.length - 1;
  const time = times[at];

  return (
    <figure class="chart">
      <div class="legend">
        {lines.map((line, index) => (
          <button key={line.label} type="button" aria-pressed={!hidden.has(line.label)} onClick={() => toggle(line.label)}>
            <svg viewBox="0 0 22 8" aria-hidden="true" focusable="false">
              <line x1="1" y1="4" x2="21" y2="4" class={`line-${index + 1}`} stroke-dasharray={DASHES[index]?.join(" ")} />
            </svg>
            {line.label} <b>{format(line.values[at] ?? null)}</b>
          </button>
        ))}
        <span class="quiet chart-time">{cursor !== null && time !== undefined ? formats.clock(time) : ""}</span>
      </div>
      <div ref={holder} class="plot" role="img" aria-label={words.chartOf(title)} />
      <ChartTable
        title={title}
        labels={lines.map((line) => line.label)}
        rows={() => tableRows(times.length)}
        timeOf={(index) => times[index] ?? 0}
        cellsOf={(index) => lines.map((line) => format(line.values[index] ?? null))}
      />
    </figure>
  );
}

/** The places of at most 60 samples, the newest first. */
function tableRows(length: number): number[] {
  const step = Math.max(1, Math.ceil(length / TABLE_ROWS_MAX));
  const rows: number[] = [];
  for (let index = length - 1; index >= 0; index -= step) rows.push(index);
  return rows;
}

function optionsFor(
  element: HTMLElement,
  lines: readonly Series[],
  scale: { readonly isLogarithmic: boolean; readonly isBytes: boolean },
  language: string,
  format: { readonly current: (value: number | null) => string },
  onCursor: (index: number | null) => void,
): uPlot.Options {
  const style = getComputedStyle(element);
  const colour = (name: string): string => style.getPropertyValue(name).trim();
  const font = `${0.8 * remPx()}px ${style.fontFamily}`;
  const axis = { stroke: colour("--ink-2"), font, grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false } };
  const minutes = new Intl.DateTimeFormat(language, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
  const seconds = new Intl.DateTimeFormat(language, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
  const clock = (ticks: readonly number[], stepSeconds: number): string[] =>
    ticks.map((tick) => (stepSeconds < MINUTE_SECONDS ? seconds : minutes).format(tick * 1_000));
  return {
    width: Math.max(200, element.clientWidth),
    height: heightPx(),
    legend: { show: false },
    cursor: { y: false, points: { size: 6 }, drag: { x: false, y: false } },
    scales: { x: { time: true }, y: scale.isLogarithmic ? { distr: 3 } : { range: (_, __, max) => [0, max > 0 ? max * 1.08 : 1] } },
    axes: [
      { ...axis, values: (_, ticks, __, ___, stepSeconds) => clock(ticks, stepSeconds), size: TIME_AXIS_REM * remPx(), space: 6 * remPx() },
      {
        ...axis,
        size: 4.6 * remPx(),
        values: (_, ticks) => ticks.map((tick) => (tick === null ? "" : format.current(tick))),
        space: 2.6 * remPx(),
        ...(scale.isBytes ? { incrs: BYTE_STEPS } : {}),
      },
    ],
    series: [
      {},
      ...lines.map((_, index) => ({
        stroke: colour(`--line-${index + 1}`),
        width: 1.5,
        dash: DASHES[index] ?? [],
        points: { show: false },
        spanGaps: false,
      })),
    ],
    hooks: { setCursor: [(chart) => onCursor(chart.cursor.idx ?? null)] },
  };
}

function remPx(): number {
  return parseFloat(getComputedStyle(document.documentElement).fontSize);
}

function heightPx(): number {
  return Math.round(HEIGHT_REM * remPx());
}

function watchTheme(onChange: () => void): () => void {
  const observer = new MutationObserver(onChange);
  observer.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  return () => observer.disconnect();
}
