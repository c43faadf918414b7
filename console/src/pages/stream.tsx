// One stream: what it holds, its limits, its consumers and its messages.

import { useState } from "preact/hooks";
import { call, type Failure } from "../api/client.ts";
import type { Stream, StreamMessage } from "../api/types.ts";
import { visibleName } from "../format.ts";
import { failureOf, useLoad } from "../load.ts";
import { useLocale } from "../locale.ts";
import { BodyView } from "../parts/body-view.tsx";
import { FailureNote } from "../parts/failure.tsx";
import { Facts, type Fact } from "../parts/facts.tsx";
import { Field } from "../parts/field.tsx";
import { Link } from "../parts/link.tsx";
import { Loaded } from "../parts/loaded.tsx";
import { Name } from "../parts/name.tsx";
import { Page, Section } from "../parts/page.tsx";
import { Table, type Column } from "../parts/table.tsx";
import { TitledValues } from "../parts/values.tsx";
import { asText, decodeBase64 } from "../payload.ts";
import { addressOf } from "../route.ts";

const INTERVAL_MS = 2_000;
const MESSAGES_COUNT = 20;
/** Characters of base64 for the row of a message; a multiple of four. */
const PREVIEW_BASE64_LENGTH = 160;
const BYTE_LIMITS: ReadonlySet<string> = new Set(["bytes", "message_bytes"]);

type StreamConsumer = NonNullable<Stream["consumers"]>[number];

export function StreamPage({ query }: { query: URLSearchParams }) {
  const { words } = useLocale();
  const at = { vhost: query.get("vhost") ?? "/", name: query.get("name") ?? "" };
  const stream = useLoad("stream", (signal) => call("get", "/v1/streams/{vhost}/{name}", { at, signal }), INTERVAL_MS);
  return (
    <Page
      title={at.name}
      heading={
        <>
          <Link to={addressOf("streams")} class="above">
            {words.stream.back}
          </Link>
          <Name text={at.name} />
        </>
      }
    >
      <Loaded data={stream}>
        {(value) => (
          <>
            <Section title={words.stream.facts}>
              <StreamFacts stream={value} />
            </Section>
            <Section title={words.stream.consumers}>
              <StreamConsumers consumers={value.consumers ?? []} />
            </Section>
            <StreamMessages at={at} first={value.state.first_sequence} />
          </>
        )}
      </Loaded>
    </Page>
  );
}

function StreamFacts({ stream }: { stream: Stream }) {
  const { words, format } = useLocale();
  const w = words.stream;
  const at = (ms: number | null | undefined): string => (typeof ms === "number" ? ` (${format.dateTime(ms)})` : "");
  const limits = Object.entries(stream.limits).map(([name, value]: [string, unknown]): Fact => [
    w.limitNames[name] ?? name,
    typeof value !== "number" ? w.noLimit : name === "age_ms" ? format.duration(value) : BYTE_LIMITS.has(name) ? format.bytes(value) : format.count(value),
  ]);
  const facts: Fact[] = [
    [words.streams.vhost, <Name text={stream.vhost} />],
    [words.streams.subjects, <Name text={stream.subjects.join(", ")} />],
    [words.streams.messages, format.count(stream.state.messages)],
    [words.streams.bytes, format.bytes(stream.state.bytes)],
    [w.first, format.count(stream.state.first_sequence) + at(stream.state.first_at)],
    [w.last, format.count(stream.state.last_sequence) + at(stream.state.last_at)],
    [w.deleted, format.count(stream.state.deleted)],
    [words.streams.storage, String(stream.storage)],
    [w.retention, String(stream.retention)],
    [w.level, stream.level],
    [w.created, format.dateTime(stream.created_at)],
  ];
  if (typeof stream.policy === "string") facts.push([words.queue.policy, <Name text={stream.policy} />]);
  if (typeof stream.operator_policy === "string") facts.push([words.queue.operatorPolicy, <Name text={stream.operator_policy} />]);
  return (
    <div class="stack">
      <Facts facts={facts} />
      <h3>{w.limits}</h3>
      <Facts facts={limits} />
    </div>
  );
}

function StreamConsumers({ consumers }: { consumers: readonly StreamConsumer[] }) {
  const { words, format } = useLocale();
  const w = words.stream;
  const columns: readonly Column<StreamConsumer>[] = [
    { label: w.consumer, cell: (consumer) => <Name text={consumer.name} /> },
    { label: w.kind, cell: (consumer) => consumer.kind },
    { label: words.streams.subjects, cell: (consumer) => <Name text={consumer.filters.join(", ")} /> },
    { label: w.pending, cell: (consumer) => format.count(consumer.pending), isNumber: true },
    { label: w.ackPending, cell: (consumer) => format.count(consumer.ack_pending), isNumber: true },
    { label: w.redelivered, cell: (consumer) => format.count(consumer.redelivered), isNumber: true },
    { label: w.delivered, cell: (consumer) => format.count(consumer.delivered.sequence), isNumber: true },
    { label: w.ackFloor, cell: (consumer) => format.count(consumer.ack_floor.sequence), isNumber: true },
    { label: w.waiting, cell: (consumer) => format.count(consumer.waiting_pulls), isNumber: true },
  ];
  return <Table label={w.consumers} columns={columns} rows={consumers} empty={w.noConsumers} />;
}

type Reading =
  | { readonly kind: "idle" }
  | { readonly kind: "loading" }
  | { readonly kind: "failed"; readonly failure: Failure }
  | { readonly kind: "ready"; readonly messages: readonly StreamMessage[]; readonly next: number | null };

function StreamMessages({ at, first }: { at: { vhost: string; name: string }; first: number }) {
  const { words } = useLocale();
  const w = words.stream;
  const [from, setFrom] = useState(String(first));
  const [subject, setSubject] = useState("");
  const [reading, setReading] = useState<Reading>({ kind: "idle" });
  const read = (sequence: number): void => {
    setFrom(String(sequence));
    setReading({ kind: "loading" });
    const query = { from: sequence, count: MESSAGES_COUNT, ...(subject === "" ? {} : { subject }) };
    call("get", "/v1/streams/{vhost}/{name}/messages", { at, query }).then(
      (answer) => setReading({ kind: "ready", messages: answer.messages, next: answer.next_from ?? null }),
      (error: unknown) => setReading({ kind: "failed", failure: failureOf(error) }),
    );
  };
  const next = reading.kind === "ready" ? reading.next : null;
  return (
    <Section title={w.messages}>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          read(Number(from));
        }}
      >
        <div class="columns">
          <Field label={w.from} value={from} onInput={setFrom} type="number" min={0} isRequired />
          <Field label={w.subject} value={subject} onInput={setSubject} hint={w.subjectHint} />
        </div>
        <div>
          <button type="submit" class="button">
            {w.read}
          </button>
        </div>
      </form>
      {reading.kind === "loading" && <p class="quiet loading">{words.loading}</p>}
      {reading.kind === "failed" && <FailureNote failure={reading.failure} />}
      {reading.kind === "ready" && (
        <>
          {reading.messages.length === 0 && <p class="quiet empty">{w.noMessages}</p>}
          {reading.messages.map((message) => (
            <StreamMessageItem key={message.sequence} message={message} />
          ))}
          {next !== null && (
            <div class="pager">
              <button type="button" class="button" onClick={() => read(next)}>
                {w.next}
              </button>
            </div>
          )}
        </>
      )}
    </Section>
  );
}

/** The beginning of the body on one line; empty if it is no text. */
function previewOf(message: StreamMessage): string {
  const text = asText(decodeBase64(message.body.slice(0, PREVIEW_BASE64_LENGTH)), true) ?? "";
  return visibleName(text.replace(/\s+/g, " "));
}

function StreamMessageItem({ message }: { message: StreamMessage }) {
  const { words, format } = useLocale();
  const w = words.message;
  const [isOpen, setOpen] = useState(false);
  return (
    <details class="message" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <span class="quiet">{format.count(message.sequence)}</span>
        <Name text={message.subject} />
        <span class="preview quiet">
          <bdi>{previewOf(message)}</bdi>
        </span>
        <span class="when quiet">{format.dateTime(message.stored_at)}</span>
        <span class="number">{format.bytes(message.body_bytes)}</span>
      </summary>
      {isOpen && (
        <div class="message-body">
          <Facts
            facts={[
              [words.stream.subject, <Name text={message.subject} />],
              [w.exchange, <Name text={message.exchange} empty={w.defaultExchange} />],
              [words.stream.storedAt, format.dateTime(message.stored_at)],
            ]}
          />
          <TitledValues title={w.properties} values={message.properties} />
          <TitledValues title={w.headers} values={message.headers} />
          <BodyView bytes={decodeBase64(message.body)} totalBytes={message.body_bytes} />
        </div>
      )}
    </details>
  );
}
