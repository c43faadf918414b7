// The body of a message as text, JSON or hexadecimal.

import { useMemo, useState } from "preact/hooks";
import { visibleText } from "../format.ts";
import { useLocale } from "../locale.ts";
import { asText, hexDump, indentJson, SHOWN_BYTES_MAX } from "../payload.ts";
import { CopyButton } from "./copy.tsx";
import { Segments } from "./field.tsx";

type Shape = "text" | "json" | "hex";

/** `bytes` may be only the beginning of a body of `totalBytes`. */
export function BodyView({ bytes, totalBytes }: { bytes: Uint8Array<ArrayBuffer>; totalBytes: number }) {
  const { words, format } = useLocale();
  const shown = bytes.subarray(0, SHOWN_BYTES_MAX);
  const isCut = shown.length < totalBytes;
  const text = useMemo(() => asText(shown, isCut), [bytes, totalBytes]);
  const json = useMemo(() => (text === null || isCut ? null : indentJson(text)), [text, isCut]);
  const [chosen, setChosen] = useState<Shape | null>(null);
  const shape: Shape = chosen ?? (text === null ? "hex" : json !== null && /^\s*[{[]/.test(text) ? "json" : "text");
  const dump = hexDump(shown);
  const content = { text: text ?? words.message.notText, json: json ?? words.message.notJson, hex: dump.text }[shape];
  const isReal = shape === "hex" || (shape === "text" ? text !== null : json !== null);

  return (
    <div class="body-view">
      <div class="body-head">
        <Segments
          label={words.message.shape}
          value={shape}
          onChange={setChosen}
          options={[
            { value: "text", label: words.message.text },
            { value: "json", label: "JSON" },
            { value: "hex", label: words.message.hex },
          ]}
        />
        <span class="quiet">{format.bytes(totalBytes)}</span>
        {isReal && content !== "" && <CopyButton text={content} />}
      </div>
      {isReal ? (
        <pre tabIndex={0} role="region" aria-label={words.message.body}>
          {content === "" ? <span class="quiet">{words.message.emptyBody}</span> : <bdi>{visibleText(content)}</bdi>}
        </pre>
      ) : (
        <p class="quiet">{content}</p>
      )}
      {(isCut || (shape === "hex" && dump.isCut)) && (
        <p class="hint">{words.message.cut(format.bytes(shape === "hex" ? Math.min(4096, shown.length) : shown.length), format.bytes(totalBytes))}</p>
      )}
    </div>
  );
}
