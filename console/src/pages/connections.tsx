// All connections, live.

import type { Row } from "../feed/delta-table.ts";
import { useFeed } from "../feed/hooks.ts";
import type { ConnectionRow } from "../feed/protocol.ts";
import { useLocale } from "../locale.ts";
import { Badge } from "../parts/badge.tsx";
import { Link } from "../parts/link.tsx";
import { LiveList } from "../parts/live-list.tsx";
import { Name } from "../parts/name.tsx";
import { Page } from "../parts/page.tsx";
import type { VirtualColumn } from "../parts/virtual-table.tsx";
import { addressOf } from "../route.ts";

type ConnectionColumn = VirtualColumn<Row<ConnectionRow>> & { readonly key: keyof ConnectionRow & string };

export function ConnectionsPage({ query }: { query: URLSearchParams }) {
  const { words, format } = useLocale();
  const feed = useFeed("connections");
  const w = words.connections;
  const addressOfConnection = (row: ConnectionRow): string => addressOf("connection", { name: row.name });
  const columns: readonly ConnectionColumn[] = [
    {
      key: "name",
      label: w.name,
      rank: 0,
      widthRem: 13,
      cell: ({ value }) => (
        <Link to={addressOfConnection(value)} tabIndex={-1}>
          <Name text={value.name} />
        </Link>
      ),
    },
    { key: "user", label: w.user, rank: 2, widthRem: 6.5, cell: ({ value }) => <Name text={value.user} /> },
    { key: "vhost", label: w.vhost, rank: 8, widthRem: 5, cell: ({ value }) => <Name text={value.vhost ?? ""} /> },
    { key: "protocol", label: w.protocol, rank: 1, widthRem: 7.5, cell: ({ value }) => <Name text={value.protocol} /> },
    { key: "tls", label: w.tls, rank: 11, widthRem: 3.5, cell: ({ value }) => (value.tls ? words.yes : words.no) },
    { key: "state", label: w.state, rank: 6, widthRem: 6.5, cell: ({ value }) => value.state !== null && <Badge tone="warn">{w.states[value.state] ?? value.state}</Badge> },
    { key: "sessions", label: w.sessions, rank: 9, widthRem: 6, isNumber: true, cell: ({ value }) => format.count(value.sessions) },
    { key: "readers", label: w.readers, rank: 10, widthRem: 6, isNumber: true, cell: ({ value }) => format.count(value.readers) },
    { key: "in_rate", label: w.inRate, rank: 3, widthRem: 5.5, isNumber: true, cell: ({ value }) => format.rate(value.in_rate) },
    { key: "out_rate", label: w.outRate, rank: 4, widthRem: 5.5, isNumber: true, cell: ({ value }) => format.rate(value.out_rate) },
    { key: "unsettled", label: w.unsettled, rank: 5, widthRem: 6.5, isNumber: true, cell: ({ value }) => format.count(value.unsettled) },
    { key: "since", label: w.since, rank: 7, widthRem: 7, isNumber: true, cell: ({ value }) => format.ago(value.since, feed.now()) },
  ];
  return (
    <Page title={w.title}>
      {!feed.connections.isComplete && !feed.isForbidden("connections") && <p class="quiet loading">{words.loading}</p>}
      {feed.isForbidden("connections") && <p class="note">{words.feed.forbiddenTopic}</p>}
      {feed.connections.isComplete && (
        <LiveList<ConnectionRow>
          page="connections"
          query={query}
          label={w.title}
          table={feed.connections}
          columns={columns}
          addressOfRow={addressOfConnection}
          searchHint={w.searchHint}
          empty={w.empty}
          noMatch={w.noMatch}
          first={{ column: "name", isDescending: false }}
        />
      )}
    </Page>
  );
}
