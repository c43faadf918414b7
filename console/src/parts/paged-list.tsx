// A list that the broker searches and cuts into pages.

import { useEffect, useState } from "preact/hooks";
import { useLoad } from "../load.ts";
import { useLocale } from "../locale.ts";
import { Loaded } from "./loaded.tsx";
import { Table, type Column } from "./table.tsx";

const PAGE_SIZE = 100;
const TYPING_PAUSE_MS = 150;

type Query = { readonly page: number; readonly page_size: number; readonly name: string };
type PageOf<T> = { readonly items: readonly T[]; readonly pages: number; readonly matching: number };

type Props<T> = {
  label: string;
  columns: readonly Column<T>[];
  read: (query: Query, signal: AbortSignal) => Promise<PageOf<T>>;
  searchHint: string;
  empty: string;
};

export function PagedList<T>({ label, columns, read, searchHint, empty }: Props<T>) {
  const { words, format } = useLocale();
  const [typed, setTyped] = useState("");
  const [query, setQuery] = useState<Query>({ page: 1, page_size: PAGE_SIZE, name: "" });
  const list = useLoad(`${query.name}\n${query.page}`, (signal) => read(query, signal));

  useEffect(() => {
    if (typed === query.name) return;
    const timer = setTimeout(() => setQuery({ page: 1, page_size: PAGE_SIZE, name: typed }), TYPING_PAUSE_MS);
    return () => clearTimeout(timer);
  }, [typed]);

  return (
    <>
      <div class="search-line">
        <input
          type="search"
          value={typed}
          placeholder={searchHint}
          aria-label={`${words.search}: ${searchHint}`}
          spellcheck={false}
          onInput={(event) => setTyped(event.currentTarget.value)}
        />
        <button type="button" class="button" onClick={list.reload}>
          {words.refresh}
        </button>
        <span class="quiet" role="status">
          {list.view.kind === "ready" ? words.rowsShown(format.count(list.view.value.matching)) : ""}
        </span>
      </div>
      <Loaded data={list}>
        {(page) => (
          <div class="card">
            <Table label={label} columns={columns} rows={page.items} empty={empty} />
            {page.pages > 1 && <Pager page={query.page} pages={page.pages} onPage={(number) => setQuery({ ...query, page: number })} />}
          </div>
        )}
      </Loaded>
    </>
  );
}

function Pager({ page, pages, onPage }: { page: number; pages: number; onPage: (page: number) => void }) {
  const { words } = useLocale();
  return (
    <div class="pager">
      <button type="button" class="button" disabled={page <= 1} onClick={() => onPage(page - 1)}>
        {words.previousPage}
      </button>
      <span>{words.pageOf(String(page), String(pages))}</span>
      <button type="button" class="button" disabled={page >= pages} onClick={() => onPage(page + 1)}>
        {words.nextPage}
      </button>
    </div>
  );
}
