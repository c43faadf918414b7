// Signing in. The password goes to the broker and is kept nowhere; the session is a cookie that scripts cannot read.

import { useState } from "preact/hooks";
import type { Failure } from "../api/client.ts";
import { signIn } from "../api/session.ts";
import type { Whoami } from "../api/types.ts";
import { failureOf } from "../load.ts";
import { useLocale } from "../locale.ts";
import { FailureNote } from "../parts/failure.tsx";
import { Field } from "../parts/field.tsx";
import { Wordmark } from "../parts/newt.tsx";
import { Preferences } from "../parts/preferences.tsx";
import type { Language } from "../settings.ts";

type Props = { hasEnded: boolean; onLanguage: (language: Language) => void; onSignedIn: (user: Whoami) => void };

export function SignInPage({ hasEnded, onLanguage, onSignedIn }: Props) {
  const { words } = useLocale();
  const [user, setUser] = useState("");
  const [password, setPassword] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [failure, setFailure] = useState<Failure | null>(null);

  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    setFailure(null);
    try {
      onSignedIn(await signIn(user, password));
    } catch (error) {
      setFailure(failureOf(error));
      setPassword("");
      setBusy(false);
    }
  };

  return (
    <main class="sign-in">
      <Wordmark />
      <form class="card" method="post" onSubmit={(event) => void submit(event)}>
        <h1>{words.signIn.title}</h1>
        {hasEnded && failure === null && (
          <p class="note" role="status">
            {words.signIn.ended}
          </p>
        )}
        <Field label={words.signIn.user} value={user} onInput={setUser} autoComplete="username" isRequired isFocused />
        <Field label={words.signIn.password} value={password} onInput={setPassword} type="password" autoComplete="current-password" />
        {failure !== null &&
          (failure.status === 401 ? (
            <p class="note note-danger" role="alert">
              {words.signIn.wrong}
            </p>
          ) : (
            <FailureNote failure={failure} />
          ))}
        <button type="submit" class="button primary" disabled={isBusy}>
          {words.signIn.action}
        </button>
        <p class="hint">{words.signIn.hint}</p>
      </form>
      <Preferences onLanguage={onLanguage} />
    </main>
  );
}
