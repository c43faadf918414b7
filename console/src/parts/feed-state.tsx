// Tells whether the numbers on the page are live, and that the broker restarted.

import { useFeed } from "../feed/hooks.ts";
import { useLocale } from "../locale.ts";

export function FeedState() {
  const feed = useFeed();
  const { words, format } = useLocale();
  const status = feed.status;
  const text = {
    connecting: () => words.feed.connecting,
    live: () => words.feed.live,
    stalled: () => words.feed.stalled(format.clock(status.kind === "stalled" ? status.since : feed.now())),
    reconnecting: () => words.feed.reconnecting,
    paused: () => words.feed.paused,
    refused: () => words.feed.refused,
    signed_out: () => words.signIn.ended,
  }[status.kind]();
  return (
    <p class={`feed-state feed-${status.kind}`} role="status" title={status.kind === "refused" ? status.reason : undefined}>
      <span class="off-screen">{words.feed.label}: </span>
      {text}
    </p>
  );
}

export function RestartNote() {
  const feed = useFeed();
  const { words, format } = useLocale();
  if (feed.restartedAt === null) return null;
  return (
    <div class="note note-warn note-line" role="status">
      <span>{words.feed.restarted(format.clock(feed.restartedAt))}</span>
      <button type="button" class="button small" onClick={() => feed.forgetRestart()}>
        {words.feed.dismiss}
      </button>
    </div>
  );
}
