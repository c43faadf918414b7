// A page's list of a table that the feed keeps up to date: search, sort and the rows.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { DeltaTable, Row } from "../feed/delta-table.ts";
import { SortedView, type Sort } from "../feed/sorted-view.ts";
import { useLocale } from "../locale.ts";
import { addressOf, navigate, replaceAddress } from "../route.ts";
import { VirtualTable, type VirtualColumn } from "./virtual-table.tsx";

type Props<T extends { readonly id: number }> = {
  page: string;
  query: URLSearchParams;
  label: string;
  table: DeltaTable<T>;
  columns: readonly (VirtualColumn<Row<T>> & { readonly key: keyof T & string })[];
  addressOfRow: (row: T) => string;
  searchHint: string;
  empty: string;
  noMatch: string;
  /** The column and order of the first visit. */
  first: Sort<T>;
};

export function LiveList<T extends { readonly id: number }>(props: Props<T>) {
  const { words, format } = useLocale();
  const [needle, setNeedle] = useState(props.query.get("search") ?? "");
  const [sort, setSort] = useState<Sort<T>>(() => sortOf(props.query, props.columns) ?? props.first);
  const search = useRef<HTMLInputElement>(null);
  const view = useMemo(() => new SortedView<T>(props.table), [props.table]);
  useEffect(() => () => view.close(), [view]);
  const rows = view.rows(sort, needle);

  useEffect(() => {
    replaceAddress(addressOf(props.page, { search: needle, sort: sort.column === props.first.column && !sort.isDescending ? undefined : (sort.isDescending ? "-" : "") + sort.column }));
  }, [needle, sort, props.page]);

  useEffect(() => {
    const focus = (event: KeyboardEvent): void => {
      const isTyping = event.target instanceof HTMLInputElement || event.target instanceof HTMLTextAreaElement || event.target instanceof HTMLSelectElement;
      if (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      search.current?.focus();
    };
    document.addEventListener("keydown", focus);
    return () => document.removeEventListener("keydown", focus);
  }, []);

  const sortBy = (column: string): void => {
    const found = props.columns.find((each) => each.key === column);
    if (found === undefined) return;
    // Of numbers the largest are asked for first, of names the beginning of the alphabet.
    const isDescending = sort.column === column ? !sort.isDescending : found.isNumber === true;
    setSort({ column: found.key, isDescending });
  };

  return (
    <div class="live-list">
      <div class="search-line">
        <input
          ref={search}
          type="search"
          value={needle}
          placeholder={props.searchHint}
          aria-label={`${words.search}: ${props.searchHint}`}
          spellcheck={false}
          onInput={(event) => setNeedle(event.currentTarget.value)}
        />
        <span class="quiet" role="status">
          {needle === "" ? "" : words.rowsOf(format.count(rows.length), format.count(props.table.rows.size))}
        </span>
      </div>
      <VirtualTable<Row<T>>
        label={props.label}
        columns={props.columns}
        rows={rows}
        rowVersion={(row) => row.version}
        sort={sort}
        onSort={sortBy}
        onOpen={(row) => navigate(props.addressOfRow(row.value))}
        empty={needle === "" ? props.empty : props.noMatch}
      />
    </div>
  );
}

function sortOf<T>(query: URLSearchParams, columns: readonly { readonly key: keyof T & string }[]): Sort<T> | null {
  const text = query.get("sort") ?? "";
  const isDescending = text.startsWith("-");
  const column = columns.find((each) => each.key === text.replace(/^-/, ""));
  return column === undefined ? null : { column: column.key, isDescending };
}
