// A table of any length, of which only the visible rows are in the page.
// It has one place in the tab order: arrow keys move the active row, Enter opens it.

import { Component, type ComponentChildren } from "preact";
import { useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { useLocale } from "../locale.ts";

const ROW_REM = 2.25;

/** Rows drawn above and below the visible ones, so that a fast scroll shows no gap. */
const ROWS_BEYOND = 8;

export type VirtualColumn<T> = {
  readonly key: string;
  readonly label: string;
  readonly cell: (row: T) => ComponentChildren;
  /** The narrowest useful width; the first column takes what is left. */
  readonly widthRem: number;
  /** Columns of a higher rank disappear first where there is no room. */
  readonly rank: number;
  readonly isNumber?: boolean;
};

type Props<T> = {
  label: string;
  columns: readonly VirtualColumn<T>[];
  rows: readonly T[];
  /** A number that changes whenever the row does; rows that kept theirs are not drawn again. */
  rowVersion: (row: T) => number;
  sort: { readonly column: string; readonly isDescending: boolean };
  onSort: (column: string) => void;
  onOpen: (row: T) => void;
  empty: string;
};

export function VirtualTable<T>(props: Props<T>) {
  const { words, format } = useLocale();
  const id = useId();
  const grid = useRef<HTMLDivElement>(null);
  const head = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 600, width: 900, rem: 14 });
  const [active, setActive] = useState(0);

  useLayoutEffect(() => {
    const element = grid.current;
    if (element === null) return;
    const measure = (): void => {
      const rem = parseFloat(getComputedStyle(document.documentElement).fontSize);
      const height = element.clientHeight - (head.current?.offsetHeight ?? 0);
      setView({ top: element.scrollTop, height, width: element.clientWidth, rem });
    };
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    measure();
    return () => observer.disconnect();
  }, []);

  const rowHeight = Math.round(ROW_REM * view.rem);
  const widthRem = view.width / view.rem;
  const columns = useMemo(() => columnsThatFit(props.columns, widthRem), [props.columns, widthRem]);
  const template = columns.map((column, index) => `minmax(${column.widthRem}rem, ${index === 0 ? "4fr" : "1fr"})`).join(" ");
  const first = Math.max(0, Math.floor(view.top / rowHeight) - ROWS_BEYOND);
  const count = Math.ceil(view.height / rowHeight) + 2 * ROWS_BEYOND;
  const shown = props.rows.slice(first, first + count);
  const current = Math.min(active, Math.max(0, props.rows.length - 1));

  useEffect(() => {
    const element = grid.current;
    if (element !== null && element.scrollTop > props.rows.length * rowHeight) element.scrollTop = 0;
  }, [props.rows.length, rowHeight]);

  const activate = (index: number): void => {
    const next = Math.max(0, Math.min(props.rows.length - 1, index));
    setActive(next);
    const element = grid.current;
    if (element === null) return;
    const top = next * rowHeight;
    if (top < element.scrollTop) element.scrollTop = top;
    else if (top + rowHeight > element.scrollTop + view.height) element.scrollTop = top + rowHeight - view.height;
  };

  const press = (event: KeyboardEvent): void => {
    // The buttons of the header and the links of the rows have keys of their own.
    if (event.target !== grid.current) return;
    const page = Math.max(1, Math.floor(view.height / rowHeight) - 1);
    const steps: Readonly<Record<string, number>> = {
      ArrowDown: current + 1,
      ArrowUp: current - 1,
      PageDown: current + page,
      PageUp: current - page,
      Home: 0,
      End: props.rows.length - 1,
    };
    const next = steps[event.key];
    const row = props.rows[current];
    if (next !== undefined) activate(next);
    else if (event.key === "Enter" && row !== undefined) props.onOpen(row);
    else return;
    event.preventDefault();
  };

  return (
    <div class="virtual">
      <div
        class="virtual-grid"
        role="grid"
        ref={grid}
        tabIndex={0}
        aria-label={props.label}
        aria-description={words.listKeys}
        aria-rowcount={props.rows.length + 1}
        aria-colcount={columns.length}
        aria-activedescendant={props.rows.length > 0 ? `${id}-${current}` : undefined}
        onKeyDown={press}
        onScroll={(event) => setView({ ...view, top: event.currentTarget.scrollTop })}
      >
        <div role="rowgroup" class="virtual-head" ref={head}>
          <div role="row" aria-rowindex={1} style={{ gridTemplateColumns: template }}>
            {columns.map((column) => {
              const isSorted = props.sort.column === column.key;
              return (
                <div
                  key={column.key}
                  role="columnheader"
                  class={column.isNumber === true ? "number" : undefined}
                  aria-sort={isSorted ? (props.sort.isDescending ? "descending" : "ascending") : "none"}
                >
                  <button type="button" onClick={() => props.onSort(column.key)}>
                    {column.label}
                    <span aria-hidden="true" class="sort-mark">
                      {isSorted ? (props.sort.isDescending ? "↓" : "↑") : ""}
                    </span>
                  </button>
                </div>
              );
            })}
          </div>
        </div>
        <div role="rowgroup" class="virtual-space" style={{ height: `${props.rows.length * rowHeight}px` }}>
          {shown.map((row, offset) => {
            const index = first + offset;
            return (
              <VirtualRow
                // A place in the window, not the row: the elements of rows that scrolled out show those that scrolled in.
                key={index % count}
                id={`${id}-${index}`}
                row={row}
                version={props.rowVersion(row)}
                index={index}
                columns={columns}
                template={template}
                height={rowHeight}
                isActive={index === current}
                onSelect={setActive}
              />
            );
          })}
          {props.rows.length === 0 && (
            <div role="row" class="virtual-empty">
              <div role="gridcell" class="quiet empty">
                {props.empty}
              </div>
            </div>
          )}
        </div>
      </div>
      <p class="virtual-foot quiet">
        {words.rowsShown(format.count(props.rows.length))}
      </p>
    </div>
  );
}

type RowProps<T> = {
  id: string;
  row: T;
  version: number;
  index: number;
  columns: readonly VirtualColumn<T>[];
  template: string;
  height: number;
  isActive: boolean;
  onSelect: (index: number) => void;
};

/** One row, drawn again only if something of it changed: while a list scrolls, most of its rows did not. */
class VirtualRow<T> extends Component<RowProps<T>> {
  override shouldComponentUpdate(next: RowProps<T>): boolean {
    const keys = Object.keys(next) as (keyof RowProps<T>)[];
    return keys.some((key) => next[key] !== this.props[key]);
  }

  override render({ id, row, index, columns, template, height, isActive, onSelect }: RowProps<T>) {
    return (
      <div
        id={id}
        role="row"
        aria-rowindex={index + 2}
        aria-selected={isActive}
        class={isActive ? "active" : undefined}
        style={{ gridTemplateColumns: template, transform: `translateY(${index * height}px)`, height: `${height}px` }}
        onClick={() => onSelect(index)}
      >
        {columns.map((column) => (
          <div key={column.key} role="gridcell" class={column.isNumber === true ? "number" : undefined}>
            {column.cell(row)}
          </div>
        ))}
      </div>
    );
  }
}

function columnsThatFit<T>(columns: readonly VirtualColumn<T>[], widthRem: number): readonly VirtualColumn<T>[] {
  let left = widthRem - 1;
  const fitting = new Set<string>();
  for (const column of [...columns].sort((a, b) => a.rank - b.rank)) {
    if (column.widthRem > left && fitting.size > 0) break;
    left -= column.widthRem;
    fitting.add(column.key);
  }
  return columns.filter((column) => fitting.has(column.key));
}
