// The reason why something failed, and what the reader can do about it.

import type { Failure } from "../api/client.ts";
import { visibleText } from "../format.ts";
import { useLocale } from "../locale.ts";

export function FailureNote({ failure, onRetry }: { failure: Failure; onRetry?: () => void }) {
  const { words } = useLocale();
  const advice = adviceFor(failure.status, words.failures);
  return (
    <div class="note note-danger" role="alert">
      <p>
        <strong>{advice}</strong>
      </p>
      {failure.message !== "" && (
        <p>
          <bdi>{visibleText(failure.message)}</bdi>
        </p>
      )}
      {onRetry !== undefined && (
        <button type="button" class="button" onClick={onRetry}>
          {words.again}
        </button>
      )}
    </div>
  );
}

type Advice = ReturnType<typeof useLocale>["words"]["failures"];

function adviceFor(status: number, advice: Advice): string {
  switch (status) {
    case 0:
      return advice.unreachable;
    case 401:
      return advice.signedOut;
    case 403:
      return advice.forbidden;
    case 404:
      return advice.absent;
    case 409:
      return advice.conflict;
    case 413:
      return advice.tooLarge;
    case 503:
      return advice.unavailable;
    default:
      return status >= 500 || status < 0 ? advice.broken : advice.refused;
  }
}
