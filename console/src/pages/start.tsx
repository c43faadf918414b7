// Getting started: programs in seven languages for this broker's addresses, and a lamp for the first message.

import { useRef, useState } from "preact/hooks";
import { call } from "../api/client.ts";
import type { Listener } from "../api/types.ts";
import { useFeed } from "../feed/hooks.ts";
import { sumOfProtocols } from "../feed/protocol.ts";
import { useLoad } from "../load.ts";
import { useLocale } from "../locale.ts";
import { CopyButton } from "../parts/copy.tsx";
import { Segments } from "../parts/field.tsx";
import { Link } from "../parts/link.tsx";
import { Loaded } from "../parts/loaded.tsx";
import { Page, Section } from "../parts/page.tsx";
import { addressOf } from "../route.ts";
import { LANGUAGES, snippetOf, type SnippetLanguage } from "../snippets.ts";

export function StartPage() {
  const { words } = useLocale();
  const overview = useLoad("overview", (signal) => call("get", "/v1/overview", { signal }));
  return (
    <Page title={words.start.title}>
      <p>{words.start.intro}</p>
      <FirstMessage />
      <Loaded data={overview}>{(value) => <Snippets listeners={value.listeners} />}</Loaded>
    </Page>
  );
}

function FirstMessage() {
  const { words, format } = useLocale();
  const feed = useFeed();
  const first = useRef<number | null>(null);
  const published = feed.overview?.totals["published"];
  const total = typeof published === "number" ? published : null;
  first.current ??= total;
  const count = total === null ? (sumOfProtocols(feed.overview?.sample ?? {}, "published") ?? 0) : Math.max(0, total - (first.current ?? total));
  const isLit = count > 0;
  return (
    <div class={isLit ? "note note-good" : "note"}>
      <p role="status" class={isLit ? "lamp lit" : "lamp"}>
        {isLit ? words.start.arrived : words.start.waiting}
      </p>
      {isLit && <p>{words.start.arrivedText(format.count(count))}</p>}
      {isLit && <Link to={addressOf("queue", { vhost: "/", name: "hello" })}>{words.start.seeQueue}</Link>}
    </div>
  );
}

function Snippets({ listeners }: { listeners: readonly Listener[] }) {
  const { words } = useLocale();
  const [language, setLanguage] = useState<SnippetLanguage>("shell");
  const snippet = snippetOf(language, { host: location.hostname, origin: location.origin, listeners });
  return (
    <Section
      title={words.start.program}
      aside={
        <Segments
          label={words.start.language}
          value={language}
          onChange={setLanguage}
          options={LANGUAGES.map((each) => ({ value: each.id, label: each.id === "shell" ? words.start.shell : each.label }))}
        />
      }
    >
      {snippet.program === null ? (
        <p class="note note-warn">{words.start.noListener(snippet.protocol)}</p>
      ) : (
        <div class="stack">
          {snippet.install !== "" && (
            <div class="body-view">
              <div class="body-head">
                <h3>{words.start.install}</h3>
                <CopyButton text={snippet.install} />
              </div>
              <pre class="snippet" tabIndex={0} role="region" aria-label={words.start.install} dir="ltr">
                {snippet.install}
              </pre>
            </div>
          )}
          <div class="body-view">
            <div class="body-head">
              <h3>{snippet.file}</h3>
              <CopyButton text={snippet.program} />
            </div>
            <pre class="snippet" tabIndex={0} role="region" aria-label={snippet.file} dir="ltr">
              {snippet.program}
            </pre>
          </div>
        </div>
      )}
    </Section>
  );
}
