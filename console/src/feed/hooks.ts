// The feed for components: they are drawn again at most once a frame while events arrive.

import { createContext } from "preact";
import { useContext, useEffect, useState } from "preact/hooks";
import type { Feed } from "./feed.ts";
import type { Topic } from "./protocol.ts";

export const FeedContext = createContext<Feed | null>(null);

/** The feed; the component is drawn again when something in it changes, and `topic` is sent while it is open. */
export function useFeed(topic?: Topic): Feed {
  const feed = useContext(FeedContext);
  if (feed === null) throw new Error("the shell gives every page a feed");
  const [, setTick] = useState(0);
  useEffect(() => {
    let frame = 0;
    const stop = feed.listen(() => {
      if (frame === 0) {
        frame = requestAnimationFrame(() => {
          frame = 0;
          setTick((tick) => tick + 1);
        });
      }
    });
    return () => {
      stop();
      cancelAnimationFrame(frame);
    };
  }, [feed]);
  useEffect(() => (topic === undefined ? undefined : feed.want(topic)), [feed, topic]);
  return feed;
}
