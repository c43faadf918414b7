// The numbers of a chart as a table, which is made only while it is open.

import { useState } from "preact/hooks";
import { useLocale } from "../locale.ts";

type Props<R> = {
  title: string;
  labels: readonly string[];
  /** The newest first. */
  rows: () => readonly R[];
  timeOf: (row: R) => number;
  cellsOf: (row: R) => readonly string[];
};

export function ChartTable<R>({ title, labels, rows, timeOf, cellsOf }: Props<R>) {
  const { words, format } = useLocale();
  const [isOpen, setOpen] = useState(false);
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{words.asTable}</summary>
      {isOpen && (
        <div class="scroll chart-table" role="group" aria-label={title} tabIndex={0}>
          <table>
            <thead>
              <tr>
                <th scope="col">{words.time}</th>
                {labels.map((label) => (
                  <th key={label} scope="col" class="number">
                    {label}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {rows().map((row) => (
                <tr key={timeOf(row)}>
                  <td>{format.clock(timeOf(row))}</td>
                  {cellsOf(row).map((cell, index) => (
                    <td key={labels[index]} class="number">
                      {cell}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </details>
  );
}
