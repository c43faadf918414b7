// Publishes one message to a queue.

import { useState } from "preact/hooks";
import { call, Failure } from "../api/client.ts";
import { parseHeaders } from "../headers.ts";
import { useLocale } from "../locale.ts";
import { Dialog } from "../parts/dialog.tsx";
import { Field, TextArea } from "../parts/field.tsx";

/** `delivery_mode` of AMQP 0-9-1. */
const TRANSIENT = 1;
const PERSISTENT = 2;

type Props = { vhost: string; queue: string; onDone: (notice: string) => void; onClose: () => void };

export function PublishDialog({ vhost, queue, onDone, onClose }: Props) {
  const { words, format } = useLocale();
  const [body, setBody] = useState("");
  const [contentType, setContentType] = useState("");
  const [headers, setHeaders] = useState("");
  const [isPersistent, setPersistent] = useState(true);

  const publish = async (): Promise<void> => {
    const parsed = parseHeaders(headers);
    if (parsed.kind === "wrong") throw new Failure(400, words.queue.headerWrong(parsed.line));
    const properties = { delivery_mode: isPersistent ? PERSISTENT : TRANSIENT, ...(contentType === "" ? {} : { content_type: contentType }) };
    const published = await call("post", "/v1/queues/{vhost}/{name}/publish", {
      at: { vhost, name: queue },
      body: { payload: body, payload_encoding: "string", headers: parsed.headers, properties },
    });
    onDone(published.receivers === 0 ? words.queue.unrouted : words.queue.published(format.count(published.receivers)));
    onClose();
  };

  return (
    <Dialog title={words.queue.publishTitle(queue)} action={words.queue.publish} onAct={publish} onClose={onClose}>
      <TextArea label={words.queue.body} value={body} onInput={setBody} rows={6} />
      <Field label={words.queue.contentType} value={contentType} onInput={setContentType} />
      <TextArea label={words.queue.headers} value={headers} onInput={setHeaders} hint={words.queue.headersHint} rows={3} />
      <label class="check">
        <input type="checkbox" checked={isPersistent} onChange={(event) => setPersistent(event.currentTarget.checked)} />
        {words.queue.persistent}
      </label>
    </Dialog>
  );
}
