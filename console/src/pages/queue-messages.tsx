// The ready messages of a queue, page by page, without changing anything.

import { useState } from "preact/hooks";
import { call, type Failure } from "../api/client.ts";
import type { Message, Messages } from "../api/types.ts";
import { visibleName } from "../format.ts";
import { failureOf } from "../load.ts";
import { useLocale } from "../locale.ts";
import { Badge } from "../parts/badge.tsx";
import { BodyView } from "../parts/body-view.tsx";
import { FailureNote } from "../parts/failure.tsx";
import { Facts, type Fact } from "../parts/facts.tsx";
import { Name } from "../parts/name.tsx";
import { Section } from "../parts/page.tsx";
import { TitledValues } from "../parts/values.tsx";
import { asText, bodyBytes, SHOWN_BYTES_MAX } from "../payload.ts";

const PEEK_COUNT = 20;
/** Characters of a body in the row of its message; a multiple of four, as base64 has it. */
const PREVIEW_LENGTH_MAX = 120;

type Peek =
  | { readonly kind: "idle" }
  | { readonly kind: "loading" }
  | { readonly kind: "failed"; readonly failure: Failure }
  | { readonly kind: "ready"; readonly offset: number; readonly answer: Messages };

export function QueueMessages({ at, ready }: { at: { vhost: string; name: string }; ready: number }) {
  const { words, format } = useLocale();
  const [peek, setPeek] = useState<Peek>({ kind: "idle" });
  const look = (offset: number): void => {
    setPeek({ kind: "loading" });
    call("get", "/v1/queues/{vhost}/{name}/messages", { at, query: { offset, count: PEEK_COUNT, payload_bytes: SHOWN_BYTES_MAX } }).then(
      (answer) => setPeek({ kind: "ready", offset, answer }),
      (error: unknown) => setPeek({ kind: "failed", failure: failureOf(error) }),
    );
  };
  const next = peek.kind === "ready" ? peek.answer.next_offset : null;

  return (
    <Section
      title={`${words.message.title} (${format.count(ready)})`}
      aside={
        <button type="button" class="button" disabled={peek.kind === "loading"} onClick={() => look(0)}>
          {peek.kind === "idle" ? words.message.peek : words.message.peekAgain}
        </button>
      }
    >
      {peek.kind === "idle" && <p class="hint">{words.message.peekHint}</p>}
      {peek.kind === "loading" && <p class="quiet loading">{words.loading}</p>}
      {peek.kind === "failed" && <FailureNote failure={peek.failure} onRetry={() => look(0)} />}
      {peek.kind === "ready" && (
        <>
          {peek.answer.messages.length === 0 && <p class="quiet empty">{words.message.noMessages}</p>}
          {peek.answer.messages.map((message) => (
            <MessageItem key={message.position} message={message} />
          ))}
          <div class="pager">
            {peek.offset > 0 && (
              <button type="button" class="button" onClick={() => look(0)}>
                {words.message.first}
              </button>
            )}
            {typeof next === "number" && (
              <button type="button" class="button" onClick={() => look(next)}>
                {words.message.next}
              </button>
            )}
          </div>
        </>
      )}
    </Section>
  );
}

function MessageItem({ message }: { message: Message }) {
  const { words, format } = useLocale();
  const [isOpen, setOpen] = useState(false);
  return (
    <details class="message" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <span class="quiet">{format.count(message.position)}</span>
        <Name text={message.routing_key} />
        <span class="preview quiet">
          <bdi>{previewOf(message)}</bdi>
        </span>
        <span class="when">
          {message.redelivered && <Badge tone="warn">{words.message.redelivered}</Badge>}{" "}
          {message.deaths.length > 0 && <Badge tone="danger">{words.message.deaths}</Badge>}
        </span>
        <span class="number">{format.bytes(message.payload_bytes)}</span>
      </summary>
      {isOpen && <MessageBody message={message} />}
    </details>
  );
}

/** The beginning of the body on one line; empty if it is no text. */
function previewOf(message: Message): string {
  const bytes = bodyBytes(message.payload.slice(0, 2 * PREVIEW_LENGTH_MAX), message.payload_encoding);
  return visibleName((asText(bytes, true) ?? "").replace(/\s+/g, " ").slice(0, PREVIEW_LENGTH_MAX));
}

function MessageBody({ message }: { message: Message }) {
  const { words, format } = useLocale();
  const w = words.message;
  const facts: Fact[] = [
    [w.exchange, <Name text={message.exchange} empty={w.defaultExchange} />],
    [w.routingKey, <Name text={message.routing_key} />],
    [w.priority, format.count(message.priority)],
    [w.failures, format.count(message.failures)],
  ];
  if (typeof message.expires_at === "number") facts.push([w.expires, format.dateTime(message.expires_at)]);
  return (
    <div class="message-body">
      <Facts facts={facts} />
      <TitledValues title={w.properties} values={message.properties} />
      <TitledValues title={w.headers} values={message.headers} />
      {message.deaths.length > 0 && (
        <div>
          <h3>{w.deaths}</h3>
          <ul>
            {message.deaths.map((death) => (
              <li key={death.queue + death.reason}>
                <bdi>{w.death(format.count(death.count), death.queue, death.reason)}</bdi> <span class="quiet">{format.dateTime(death.time)}</span>
              </li>
            ))}
          </ul>
        </div>
      )}
      <BodyView bytes={bodyBytes(message.payload, message.payload_encoding)} totalBytes={message.payload_bytes} />
    </div>
  );
}
