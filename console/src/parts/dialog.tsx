// Dialogs: a form, and the question before something is destroyed.
// The browser's own dialog keeps the focus inside, closes with Escape and gives the focus back.

import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import type { Failure } from "../api/client.ts";
import { failureOf } from "../load.ts";
import { useLocale } from "../locale.ts";
import { FailureNote } from "./failure.tsx";

type Props = {
  title: string;
  children: ComponentChildren;
  /** The text of the button that acts; null while the broker is asked what would happen. */
  action: string | null;
  isDisabled?: boolean;
  isDanger?: boolean;
  onAct: () => Promise<void>;
  onClose: () => void;
};

export function Dialog({ title, children, action, isDisabled, isDanger, onAct, onClose }: Props) {
  const { words } = useLocale();
  const id = useId();
  const ref = useRef<HTMLDialogElement>(null);
  const [isBusy, setBusy] = useState(false);
  const [failure, setFailure] = useState<Failure | null>(null);

  useEffect(() => {
    const opener = document.activeElement;
    ref.current?.showModal();
    return () => {
      if (opener instanceof HTMLElement && opener.isConnected) opener.focus();
    };
  }, []);

  const act = async (event: Event): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    setFailure(null);
    try {
      await onAct();
    } catch (error) {
      setFailure(failureOf(error));
    } finally {
      setBusy(false);
    }
  };

  return (
    <dialog ref={ref} aria-labelledby={id} onClose={onClose}>
      <form onSubmit={(event) => void act(event)}>
        <h2 id={id}>{title}</h2>
        <div class="dialog-body">{children}</div>
        {failure !== null && <FailureNote failure={failure} />}
        <div class="dialog-actions">
          <button type="button" class="button" onClick={() => ref.current?.close()}>
            {words.cancel}
          </button>
          <button type="submit" class={isDanger === true ? "button danger" : "button primary"} disabled={action === null || isDisabled === true || isBusy}>
            {action ?? words.loading}
          </button>
        </div>
      </form>
    </dialog>
  );
}
