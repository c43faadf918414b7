// All streams.

import { call } from "../api/client.ts";
import type { Stream } from "../api/types.ts";
import { useFeed } from "../feed/hooks.ts";
import { useLocale } from "../locale.ts";
import { Link } from "../parts/link.tsx";
import { Name } from "../parts/name.tsx";
import { Page } from "../parts/page.tsx";
import { PagedList } from "../parts/paged-list.tsx";
import type { Column } from "../parts/table.tsx";
import { addressOf } from "../route.ts";

/** Subjects that a row of the list shows. */
const SUBJECTS_MAX = 3;

export function StreamsPage() {
  const { words, format } = useLocale();
  const feed = useFeed();
  const w = words.streams;
  const columns: readonly Column<Stream>[] = [
    {
      label: w.name,
      cell: (stream) => (
        <Link to={addressOf("stream", { vhost: stream.vhost, name: stream.name })}>
          <Name text={stream.name} />
        </Link>
      ),
    },
    { label: w.vhost, cell: (stream) => <Name text={stream.vhost} /> },
    { label: w.subjects, cell: (stream) => <Name text={stream.subjects.slice(0, SUBJECTS_MAX).join(", ") + (stream.subjects.length > SUBJECTS_MAX ? ", …" : "")} /> },
    { label: w.messages, cell: (stream) => format.count(stream.state.messages), isNumber: true },
    { label: w.bytes, cell: (stream) => format.bytes(stream.state.bytes), isNumber: true },
    { label: w.consumers, cell: (stream) => format.count(stream.state.consumers), isNumber: true },
    { label: w.last, cell: (stream) => (typeof stream.state.last_at === "number" ? format.ago(stream.state.last_at, feed.now()) : "–"), isNumber: true },
    { label: w.storage, cell: (stream) => String(stream.storage) },
  ];
  return (
    <Page title={w.title}>
      <PagedList<Stream>
        label={w.title}
        columns={columns}
        read={(query, signal) => call("get", "/v1/streams", { query, signal })}
        searchHint={w.searchHint}
        empty={w.empty}
      />
    </Page>
  );
}
