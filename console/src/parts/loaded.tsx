// Draws what a page asked for, or that it is on its way, or why it is absent.

import type { ComponentChildren } from "preact";
import type { Loaded as LoadedData } from "../load.ts";
import { useLocale } from "../locale.ts";
import { FailureNote } from "./failure.tsx";

export function Loaded<T>({ data, children }: { data: LoadedData<T>; children: (value: T) => ComponentChildren }) {
  const { words } = useLocale();
  switch (data.view.kind) {
    case "loading":
      return <p class="quiet loading">{words.loading}</p>;
    case "failed":
      return <FailureNote failure={data.view.failure} onRetry={data.reload} />;
    case "ready":
      return <>{children(data.view.value)}</>;
  }
}
