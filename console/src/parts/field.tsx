// One input with its label and hint.

import { useId } from "preact/hooks";

type Props = {
  label: string;
  value: string;
  onInput: (value: string) => void;
  hint?: string;
  type?: "text" | "password" | "number" | "search";
  isRequired?: boolean;
  autoComplete?: string;
  isFocused?: boolean;
  min?: number;
  max?: number;
};

export function Field(props: Props) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{props.label}</label>
      <input
        id={id}
        // The union of element types has no member for a type that is chosen at run time.
        type={(props.type ?? "text") as "text"}
        value={props.value}
        required={props.isRequired}
        autoComplete={props.autoComplete ?? "off"}
        autoFocus={props.isFocused}
        spellcheck={false}
        min={props.min}
        max={props.max}
        aria-describedby={props.hint === undefined ? undefined : `${id}-hint`}
        onInput={(event) => props.onInput(event.currentTarget.value)}
      />
      <Hint id={id} text={props.hint} />
    </div>
  );
}

/** The text below an input, which `aria-describedby` names. */
function Hint({ id, text }: { id: string; text: string | undefined }) {
  if (text === undefined) return null;
  return (
    <p id={`${id}-hint`} class="hint">
      {text}
    </p>
  );
}

export function TextArea(props: { label: string; value: string; onInput: (value: string) => void; hint?: string; rows?: number }) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{props.label}</label>
      <textarea
        id={id}
        rows={props.rows ?? 5}
        value={props.value}
        spellcheck={false}
        dir="auto"
        aria-describedby={props.hint === undefined ? undefined : `${id}-hint`}
        onInput={(event) => props.onInput(event.currentTarget.value)}
      />
      <Hint id={id} text={props.hint} />
    </div>
  );
}

export type Option<V extends string> = { readonly value: V; readonly label: string };

export function Choice<V extends string>(props: { label: string; value: V; options: readonly Option<V>[]; onChange: (value: V) => void }) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{props.label}</label>
      <select id={id} value={props.value} onChange={(event) => props.onChange(event.currentTarget.value as V)}>
        {props.options.map((option) => (
          <option key={option.value} value={option.value}>
            {option.label}
          </option>
        ))}
      </select>
    </div>
  );
}

/** A choice between a few, all of them visible. */
export function Segments<V extends string>(props: { label: string; value: V; options: readonly Option<V>[]; onChange: (value: V) => void }) {
  return (
    <div class="segments" role="group" aria-label={props.label}>
      {props.options.map((option) => (
        <button key={option.value} type="button" aria-pressed={option.value === props.value} onClick={() => props.onChange(option.value)}>
          {option.label}
        </button>
      ))}
    </div>
  );
}
