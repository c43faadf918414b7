// A short table, whole in the page. Lists of unknown length use `VirtualTable`.

import type { ComponentChildren } from "preact";

export type Column<T> = {
  readonly label: string;
  readonly cell: (row: T) => ComponentChildren;
  readonly isNumber?: boolean;
  /** Sentences, which would become a column of single words. */
  readonly isText?: boolean;
};

type Props<T> = { label: string; columns: readonly Column<T>[]; rows: readonly T[]; empty: string };

export function Table<T>({ label, columns, rows, empty }: Props<T>) {
  if (rows.length === 0) return <p class="quiet empty">{empty}</p>;
  return (
    <div class="scroll" role="group" aria-label={label} tabIndex={0}>
      <table>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.label} scope="col" class={column.isNumber === true ? "number" : undefined}>
                {column.label}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, index) => (
            <tr key={index}>
              {columns.map((column) => (
                <td key={column.label} class={column.isNumber === true ? "number" : column.isText === true ? "wide" : undefined}>
                  {column.cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
