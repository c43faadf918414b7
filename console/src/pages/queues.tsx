// All queues, live. Made for 100,000 of them.

import type { Row } from "../feed/delta-table.ts";
import { useFeed } from "../feed/hooks.ts";
import type { QueueRow } from "../feed/protocol.ts";
import { useLocale } from "../locale.ts";
import { Badge } from "../parts/badge.tsx";
import { Link } from "../parts/link.tsx";
import { LiveList } from "../parts/live-list.tsx";
import { Name } from "../parts/name.tsx";
import { Page } from "../parts/page.tsx";
import type { VirtualColumn } from "../parts/virtual-table.tsx";
import { addressOf } from "../route.ts";

type QueueColumn = VirtualColumn<Row<QueueRow>> & { readonly key: keyof QueueRow & string };

export function addressOfQueue(queue: { readonly kind: string; readonly vhost: string; readonly name: string }): string {
  return addressOf(queue.kind === "stream" ? "stream" : "queue", { vhost: queue.vhost, name: queue.name });
}

export function QueuesPage({ query }: { query: URLSearchParams }) {
  const { words, format } = useLocale();
  const feed = useFeed("queues");
  const w = words.queues;
  const columns: readonly QueueColumn[] = [
    {
      key: "name",
      label: w.name,
      rank: 0,
      widthRem: 11,
      cell: ({ value }) => (
        <Link to={addressOfQueue(value)} tabIndex={-1}>
          <Name text={value.name} />
        </Link>
      ),
    },
    { key: "vhost", label: w.vhost, rank: 6, widthRem: 5, cell: ({ value }) => <Name text={value.vhost} /> },
    { key: "kind", label: w.kind, rank: 7, widthRem: 6, cell: ({ value }) => w.kinds[value.kind] ?? <Name text={value.kind} /> },
    { key: "state", label: w.state, rank: 9, widthRem: 6.5, cell: ({ value }) => value.state !== null && <Badge tone="warn">{w.states[value.state] ?? value.state}</Badge> },
    { key: "ready", label: w.ready, rank: 1, widthRem: 6, isNumber: true, cell: ({ value }) => format.count(value.ready) },
    { key: "unsettled", label: w.unsettled, rank: 3, widthRem: 6.5, isNumber: true, cell: ({ value }) => format.count(value.unsettled) },
    { key: "bytes", label: w.bytes, rank: 8, widthRem: 6.5, isNumber: true, cell: ({ value }) => format.bytes(value.bytes) },
    { key: "consumers", label: w.consumers, rank: 5, widthRem: 7, isNumber: true, cell: ({ value }) => format.count(value.consumers) },
    { key: "in_rate", label: w.inRate, rank: 2, widthRem: 5.5, isNumber: true, cell: ({ value }) => format.rate(value.in_rate) },
    { key: "out_rate", label: w.outRate, rank: 4, widthRem: 5.5, isNumber: true, cell: ({ value }) => format.rate(value.out_rate) },
    { key: "oldest_ms", label: w.oldest, rank: 10, widthRem: 7.5, isNumber: true, cell: ({ value }) => format.duration(value.oldest_ms) },
  ];
  const isWaiting = !feed.queues.isComplete && !feed.isForbidden("queues");
  return (
    <Page title={w.title}>
      {isWaiting && <p class="quiet loading">{feed.queues.arriving === null ? words.loading : w.arriving(format.count(feed.queues.arriving))}</p>}
      {feed.isForbidden("queues") && <p class="note">{words.feed.forbiddenTopic}</p>}
      {feed.queues.isComplete && (
        <LiveList<QueueRow>
          page="queues"
          query={query}
          label={w.title}
          table={feed.queues}
          columns={columns}
          addressOfRow={addressOfQueue}
          searchHint={w.searchHint}
          empty={w.empty}
          noMatch={w.noMatch}
          first={{ column: "name", isDescending: false }}
        />
      )}
    </Page>
  );
}
