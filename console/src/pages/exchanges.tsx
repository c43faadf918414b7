// All exchanges.

import { call } from "../api/client.ts";
import type { Exchange } from "../api/types.ts";
import { useLocale } from "../locale.ts";
import { Link } from "../parts/link.tsx";
import { Name } from "../parts/name.tsx";
import { Page } from "../parts/page.tsx";
import { PagedList } from "../parts/paged-list.tsx";
import type { Column } from "../parts/table.tsx";
import { addressOf } from "../route.ts";

export function ExchangesPage() {
  const { words } = useLocale();
  const w = words.exchanges;
  const columns: readonly Column<Exchange>[] = [
    {
      label: w.name,
      cell: (exchange) => (
        <Link to={addressOf("exchange", { vhost: exchange.vhost, name: exchange.name })}>
          {exchange.name === "" ? w.defaultName : <Name text={exchange.name} />}
        </Link>
      ),
    },
    { label: w.vhost, cell: (exchange) => <Name text={exchange.vhost} /> },
    { label: w.type, cell: (exchange) => <Name text={exchange.type} /> },
    { label: w.durable, cell: (exchange) => (exchange.durable ? words.yes : words.no) },
    { label: w.autoDelete, cell: (exchange) => (exchange.auto_delete ? words.yes : words.no) },
    { label: w.internal, cell: (exchange) => (exchange.internal ? words.yes : words.no) },
  ];
  return (
    <Page title={w.title}>
      <PagedList<Exchange>
        label={w.title}
        columns={columns}
        read={(query, signal) => call("get", "/v1/exchanges", { query, signal })}
        searchHint={w.searchHint}
        empty={w.empty}
      />
    </Page>
  );
}
