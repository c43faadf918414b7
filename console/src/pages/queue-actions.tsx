// An operator's actions on a queue: publish, move, retry, purge, delete.
// Everything that destroys or moves messages first asks the broker how many, without doing it.

import { useEffect, useState } from "preact/hooks";
import { call } from "../api/client.ts";
import type { Moved, Queue } from "../api/types.ts";
import { failureOf, useLoad } from "../load.ts";
import { useLocale } from "../locale.ts";
import { Dialog } from "../parts/dialog.tsx";
import { FailureNote } from "../parts/failure.tsx";
import { Field } from "../parts/field.tsx";
import { Link } from "../parts/link.tsx";
import { addressOf, navigate } from "../route.ts";
import { PublishDialog } from "./publish-dialog.tsx";

type Action = "publish" | "move" | "retry" | "purge" | "remove";
type ActionProps = { queue: Queue; onDone: (notice: string) => void; onClose: () => void };

/** A dry run follows the form after this pause in typing. */
const TYPING_PAUSE_MS = 250;

export function QueueActions({ queue, onDone }: { queue: Queue; onDone: (notice: string) => void }) {
  const { words } = useLocale();
  const [open, setOpen] = useState<Action | null>(null);
  const close = (): void => setOpen(null);
  const props: ActionProps = { queue, onDone, onClose: close };
  const buttons: readonly (readonly [Action, string])[] = [
    ["publish", words.queue.publish],
    ["move", words.queue.move],
    ["retry", words.queue.retry],
    ["purge", words.queue.purge],
    ["remove", words.queue.remove],
  ];
  return (
    <>
      {buttons.map(([action, label]) => (
        <button
          key={action}
          type="button"
          class={action === "purge" || action === "remove" ? "button danger-outline" : "button"}
          onClick={() => setOpen(action)}
        >
          {label}
        </button>
      ))}
      <Link class="button" to={addressOf("trace", { vhost: queue.vhost, queue: queue.name })}>
        {words.queue.trace}
      </Link>
      {open === "publish" && <PublishDialog vhost={queue.vhost} queue={queue.name} onDone={onDone} onClose={close} />}
      {open === "move" && <MoveDialog {...props} />}
      {open === "retry" && <RetryDialog {...props} />}
      {open === "purge" && <PurgeDialog {...props} />}
      {open === "remove" && <RemoveDialog {...props} />}
    </>
  );
}

function PurgeDialog({ queue, onDone, onClose }: ActionProps) {
  const { words, format } = useLocale();
  const at = { vhost: queue.vhost, name: queue.name };
  const rehearsal = useLoad("purge", (signal) => call("post", "/v1/queues/{vhost}/{name}/purge", { at, query: { dry_run: true }, signal }));
  const count = rehearsal.view.kind === "ready" ? format.count(rehearsal.view.value.messages) : null;
  const purge = async (): Promise<void> => {
    const dropped = await call("post", "/v1/queues/{vhost}/{name}/purge", { at });
    onDone(words.queue.purged(format.count(dropped.messages)));
    onClose();
  };
  return (
    <Dialog title={words.queue.purgeTitle(queue.name)} action={count === null ? null : words.queue.purgeAction(count)} isDanger onAct={purge} onClose={onClose}>
      {rehearsal.view.kind === "failed" && <FailureNote failure={rehearsal.view.failure} />}
      {count !== null && <p>{words.queue.purgeText(count)}</p>}
    </Dialog>
  );
}

function RemoveDialog({ queue, onClose }: ActionProps) {
  const { words, format } = useLocale();
  const at = { vhost: queue.vhost, name: queue.name };
  const rehearsal = useLoad("remove", (signal) => call("delete", "/v1/queues/{vhost}/{name}", { at, query: { dry_run: true }, signal }));
  const count = rehearsal.view.kind === "ready" ? format.count(rehearsal.view.value.messages) : null;
  const remove = async (): Promise<void> => {
    await call("delete", "/v1/queues/{vhost}/{name}", { at });
    navigate(addressOf("queues"));
  };
  return (
    <Dialog title={words.queue.removeTitle(queue.name)} action={count === null ? null : words.queue.removeAction(count)} isDanger onAct={remove} onClose={onClose}>
      {rehearsal.view.kind === "failed" && <FailureNote failure={rehearsal.view.failure} />}
      {count !== null && <p>{words.queue.removeText(count, format.count(queue.unsettled))}</p>}
    </Dialog>
  );
}

function RetryDialog({ queue, onDone, onClose }: ActionProps) {
  const { words, format } = useLocale();
  const at = { vhost: queue.vhost, name: queue.name };
  const rehearsal = useLoad("retry", (signal) => call("post", "/v1/queues/{vhost}/{name}/retry", { at, body: { dry_run: true }, signal }));
  const planned = rehearsal.view.kind === "ready" ? rehearsal.view.value : null;
  const retry = async (): Promise<void> => {
    const moved = await call("post", "/v1/queues/{vhost}/{name}/retry", { at, body: {} });
    onDone(movedNotice(moved, words.queue, format.count.bind(format)));
    onClose();
  };
  return (
    <Dialog
      title={words.queue.retryTitle(queue.name)}
      action={planned === null ? null : words.queue.retryAction(format.count(planned.moved))}
      isDisabled={planned === null || planned.moved === 0}
      onAct={retry}
      onClose={onClose}
    >
      {rehearsal.view.kind === "failed" && <FailureNote failure={rehearsal.view.failure} />}
      {planned !== null && <p>{words.queue.retryText(format.count(planned.moved), format.count(planned.skipped))}</p>}
      {planned !== null && <Targets moved={planned} />}
    </Dialog>
  );
}

function MoveDialog({ queue, onDone, onClose }: ActionProps) {
  const { words, format } = useLocale();
  const [exchange, setExchange] = useState("");
  const [key, setKey] = useState("");
  const [count, setCount] = useState("");
  const [plan, setPlan] = useState<{ moved: Moved | null; failure: ReturnType<typeof failureOf> | null }>({ moved: null, failure: null });
  const at = { vhost: queue.vhost, name: queue.name };
  const body = { exchange, ...(key === "" ? {} : { routing_key: key }), ...(count === "" ? {} : { count: Number(count) }) };
  // Without both, every message would go back to this queue.
  const isAimed = exchange !== "" || key !== "";

  useEffect(() => {
    setPlan({ moved: null, failure: null });
    if (!isAimed) return;
    const abort = new AbortController();
    const timer = setTimeout(() => {
      call("post", "/v1/queues/{vhost}/{name}/move", { at, body: { ...body, dry_run: true }, signal: abort.signal }).then(
        (moved) => setPlan({ moved, failure: null }),
        (error: unknown) => !abort.signal.aborted && setPlan({ moved: null, failure: failureOf(error) }),
      );
    }, TYPING_PAUSE_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [exchange, key, count]);

  const move = async (): Promise<void> => {
    const moved = await call("post", "/v1/queues/{vhost}/{name}/move", { at, body });
    onDone(movedNotice(moved, words.queue, format.count.bind(format)));
    onClose();
  };

  return (
    <Dialog
      title={words.queue.moveTitle(queue.name)}
      action={plan.moved === null ? (isAimed ? null : words.queue.move) : words.queue.moveAction(format.count(plan.moved.moved))}
      isDisabled={plan.moved === null || plan.moved.moved === 0}
      onAct={move}
      onClose={onClose}
    >
      <Field label={words.queue.moveExchange} value={exchange} onInput={setExchange} hint={words.queue.moveExchangeHint} isFocused />
      <Field label={words.queue.moveKey} value={key} onInput={setKey} hint={words.queue.moveKeyHint} />
      <Field label={words.queue.moveCount} value={count} onInput={setCount} hint={words.queue.moveCountHint} type="number" min={1} />
      {plan.failure !== null && <FailureNote failure={plan.failure} />}
      {plan.moved !== null && <Targets moved={plan.moved} />}
    </Dialog>
  );
}

/** The addresses of a move; a retry can have many. */
const TARGETS_MAX = 10;

function Targets({ moved }: { moved: Moved }) {
  const { words, format } = useLocale();
  return (
    <>
      {typeof moved.stopped === "string" && <p class="note note-warn">{words.queue.stopped(moved.stopped)}</p>}
      {moved.targets.length > 0 && (
        <ul class="hint">
          {moved.targets.slice(0, TARGETS_MAX).map((target) => (
            <li key={target.exchange + "\n" + target.routing_key}>
              {format.count(target.messages)} → <bdi>{target.exchange === "" ? words.message.defaultExchange : target.exchange}</bdi> / <bdi>{target.routing_key}</bdi>
            </li>
          ))}
          {moved.targets.length > TARGETS_MAX && <li>…</li>}
        </ul>
      )}
    </>
  );
}

function movedNotice(moved: Moved, words: ReturnType<typeof useLocale>["words"]["queue"], count: (value: number) => string): string {
  const text = words.moved(count(moved.moved), count(moved.left));
  return typeof moved.stopped === "string" ? `${text} ${words.stopped(moved.stopped)}` : text;
}
