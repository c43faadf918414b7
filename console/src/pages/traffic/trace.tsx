// The trace: follows messages from their publish through queues and deliveries to their outcome.

import { useState } from "preact/hooks";
import { call, Failure } from "../../api/client.ts";
import type { Trace } from "../../api/types.ts";
import { failureOf, useLoad } from "../../load.ts";
import { useLocale } from "../../locale.ts";
import { Badge } from "../../parts/badge.tsx";
import { Facts } from "../../parts/facts.tsx";
import { FailureNote } from "../../parts/failure.tsx";
import { Field } from "../../parts/field.tsx";
import { Link } from "../../parts/link.tsx";
import { Loaded } from "../../parts/loaded.tsx";
import { Name } from "../../parts/name.tsx";
import { Page, Section } from "../../parts/page.tsx";
import { addressOf } from "../../route.ts";
import { outcomeOf } from "./outcome.ts";

const INTERVAL_MS = 1_000;
const NOT_FOUND = 404;

type Message = Trace["messages"][number];
type Step = Message["steps"][number];
type Party = NonNullable<Message["publisher"]>;

export function TracePage({ query }: { query: URLSearchParams }) {
  const { words } = useLocale();
  const w = words.trace;
  const trace = useLoad(
    "trace",
    async (signal) => {
      try {
        return await call("get", "/v1/trace", { signal });
      } catch (error) {
        if (error instanceof Failure && error.status === NOT_FOUND) return null;
        throw error;
      }
    },
    INTERVAL_MS,
  );
  return (
    <Page title={w.title}>
      <p class="quiet">{w.intro}</p>
      <Section title={w.start}>
        <Form vhost={query.get("vhost") ?? "/"} queue={query.get("queue") ?? ""} onStarted={trace.reload} />
      </Section>
      <Loaded data={trace}>{(value) => (value === null ? <p class="quiet empty">{w.noTrace}</p> : <Followed trace={value} onEnded={trace.reload} />)}</Loaded>
    </Page>
  );
}

function Form({ vhost, queue, onStarted }: { vhost: string; queue: string; onStarted: () => void }) {
  const { words } = useLocale();
  const w = words.trace;
  const [fields, setFields] = useState({ vhost, queue, exchange: "", subject: "*", messages: "100", seconds: "60" });
  const [failure, setFailure] = useState<Failure | null>(null);
  const set = (name: keyof typeof fields) => (value: string) => setFields({ ...fields, [name]: value });
  const start = (event: Event): void => {
    event.preventDefault();
    setFailure(null);
    const body = {
      vhost: fields.vhost,
      subject: fields.subject === "" ? "*" : fields.subject,
      messages: Number(fields.messages),
      seconds: Number(fields.seconds),
      ...(fields.queue === "" ? {} : { queue: fields.queue }),
      ...(fields.exchange === "" ? {} : { exchange: fields.exchange }),
    };
    call("put", "/v1/trace", { body }).then(onStarted, (error: unknown) => setFailure(failureOf(error)));
  };
  return (
    <form class="stack" onSubmit={start}>
      <div class="columns">
        <Field label={words.users.vhost} value={fields.vhost} onInput={set("vhost")} isRequired />
        <Field label={w.queue} hint={w.queueHint} value={fields.queue} onInput={set("queue")} />
        <Field label={w.exchange} hint={w.exchangeHint} value={fields.exchange} onInput={set("exchange")} />
        <Field label={w.subject} hint={w.subjectHint} value={fields.subject} onInput={set("subject")} />
        <Field label={w.messages} type="number" min={1} max={1_000} value={fields.messages} onInput={set("messages")} isRequired />
        <Field label={w.seconds} type="number" min={1} max={3_600} value={fields.seconds} onInput={set("seconds")} isRequired />
      </div>
      {failure !== null && <FailureNote failure={failure} />}
      <div class="actions">
        <button type="submit" class="button primary">
          {w.startAction}
        </button>
      </div>
    </form>
  );
}

function Followed({ trace, onEnded }: { trace: Trace; onEnded: () => void }) {
  const { words, format } = useLocale();
  const w = words.trace;
  const end = (): void => {
    void call("delete", "/v1/trace").then(onEnded, onEnded);
  };
  return (
    <Section
      title={w.messagesTitle}
      aside={
        <div class="actions">
          <Badge tone={trace.running ? "good" : "plain"}>{trace.running ? w.running(format.clock(trace.until)) : w.ended}</Badge>
          <button type="button" class="button small" onClick={end}>
            {w.forget}
          </button>
        </div>
      }
    >
      <p>
        {w.about} <Name text={trace.vhost} /> · <Name text={trace.exchange ?? ""} empty={w.anyExchange} /> · <Name text={trace.subject} /> · <Name text={trace.queue ?? ""} empty={w.anyQueue} /> · {w.startedBy}{" "}
        <Name text={trace.user} />
      </p>
      <p class="quiet" role="status">
        {w.followed(format.count(trace.messages.length), format.count(trace.messages_max))}
      </p>
      {trace.messages.length > 0 && (
        <ol class="traced">
          {[...trace.messages].reverse().map((message) => (
            <li key={`${message.at_us} ${message.subject} ${message.message_id}`}>
              <MessageSteps message={message} />
            </li>
          ))}
        </ol>
      )}
    </Section>
  );
}

function MessageSteps({ message }: { message: Message }) {
  const { words, format } = useLocale();
  const w = words.trace;
  const outcome = outcomeOf(message);
  return (
    <details>
      <summary>
        <span class="quiet">{format.clock(Math.floor(message.at_us / 1_000))}</span> <Name text={message.exchange} empty={w.defaultExchange} /> · <Name text={message.subject} empty={words.emptyValue} />{" "}
        <Badge tone={outcome.tone}>{w.outcomes[outcome.word]}</Badge>
      </summary>
      <Facts
        facts={[
          [w.publisher, message.publisher == null ? w.broker : <PartyLink party={message.publisher} />],
          [w.size, format.bytes(message.bytes)],
          [w.messageId, <Name text={message.message_id} />],
          [w.correlationId, <Name text={message.correlation_id} />],
        ]}
      />
      {message.messages > 1 && <p class="quiet">{w.together(format.count(message.messages))}</p>}
      <ol class="steps">
        <li>
          <span class="step-time">0</span> {w.steps.published}
        </li>
        {message.steps.map((step, index) => (
          <li key={index}>
            <span class="step-time">+{format.latency(step.after_us)}</span> <StepText step={step} />
          </li>
        ))}
      </ol>
      {message.more_steps > 0 && <p class="quiet">{w.moreSteps(format.count(message.more_steps))}</p>}
    </details>
  );
}

function StepText({ step }: { step: Step }) {
  const { words, format } = useLocale();
  const w = words.trace;
  switch (step.step) {
    case "routed":
      return <>{w.steps.routed(format.count(step.receivers ?? 0))}</>;
    case "queued":
      return (
        <>
          {w.steps.queued} <Name text={step.queue ?? ""} />
        </>
      );
    case "delivered":
      return (
        <>
          {step.queue == null ? w.steps.deliveredLive : w.steps.delivered} {step.queue != null && <Name text={step.queue} />} {w.steps.to} {step.connection == null ? words.none : <PartyLink party={step.connection} />}
        </>
      );
    case "dead_lettered":
      return (
        <>
          {w.steps.deadLettered(step.reason ?? "")} <Name text={step.queue ?? ""} /> {w.steps.to} <Name text={step.exchange ?? ""} empty={w.defaultExchange} /> · <Name text={step.subject ?? ""} />
        </>
      );
    default:
      return (
        <>
          {w.outcomes[step.step === "accepted" || step.step === "rejected" ? step.step : "released"]} <Name text={step.queue ?? ""} /> {w.steps.by} {step.connection == null ? words.none : <PartyLink party={step.connection} />}
        </>
      );
  }
}

function PartyLink({ party }: { party: Party }) {
  const { words } = useLocale();
  if (party.connection == null) return <span class="quiet">{words.trace.internal}</span>;
  return (
    <Link to={addressOf("connection", { name: party.connection })}>
      <Name text={party.user} /> <span class="quiet">{party.protocol}</span> <Name text={party.connection} />
    </Link>
  );
}
