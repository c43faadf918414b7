// The session: signed in or not, and the shell or the form that follows from it.

import { useEffect, useState } from "preact/hooks";
import { call, whenSignedOut, type Failure } from "./api/client.ts";
import type { Whoami } from "./api/types.ts";
import { failureOf } from "./load.ts";
import { loadLocale, LocaleContext, type Locale } from "./locale.ts";
import { SignInPage } from "./pages/sign-in.tsx";
import { FailureNote } from "./parts/failure.tsx";
import { applyLanguage, type Language } from "./settings.ts";
import { Shell } from "./shell.tsx";

type Session =
  | { readonly kind: "asking" }
  | { readonly kind: "signed_out"; readonly hasEnded: boolean }
  | { readonly kind: "signed_in"; readonly user: Whoami }
  | { readonly kind: "failed"; readonly failure: Failure };

export function App(props: { locale: Locale }) {
  const [locale, setLocale] = useState(props.locale);
  const [session, setSession] = useState<Session>({ kind: "asking" });

  const ask = (): void => {
    call("get", "/v1/whoami").then(
      (user) => setSession({ kind: "signed_in", user }),
      (error: unknown) => {
        const failure = failureOf(error);
        if (failure.status !== 401) setSession({ kind: "failed", failure });
      },
    );
  };

  useEffect(() => {
    whenSignedOut(() => setSession((before) => ({ kind: "signed_out", hasEnded: before.kind === "signed_in" })));
    ask();
  }, []);

  const changeLanguage = (language: Language): void => {
    applyLanguage(language);
    void loadLocale(language).then(setLocale);
  };

  return (
    <LocaleContext.Provider value={locale}>
      {session.kind === "asking" && <p class="quiet loading">{locale.words.loading}</p>}
      {session.kind === "failed" && (
        <main class="alone">
          <FailureNote failure={session.failure} onRetry={ask} />
        </main>
      )}
      {session.kind === "signed_out" && (
        <SignInPage hasEnded={session.hasEnded} onLanguage={changeLanguage} onSignedIn={(user) => setSession({ kind: "signed_in", user })} />
      )}
      {session.kind === "signed_in" && (
        <Shell user={session.user} onLanguage={changeLanguage} onSignedOut={(hasEnded) => setSession({ kind: "signed_out", hasEnded })} />
      )}
    </LocaleContext.Provider>
  );
}
