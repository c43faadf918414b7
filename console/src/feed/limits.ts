// The limits of the feed, each with its unit and reason.

/** Silence after which the feed counts as stalled; the broker sends a comment every 5 s when nothing else happens. */
export const SILENCE_MS_MAX = 15_000;

/** First pause before a new attempt, and the longest one. */
export const RETRY_MS_MIN = 500;
export const RETRY_MS_MAX = 15_000;

/** Time until a hidden page gives up its feed; browsers allow six connections to one host, for all tabs together. */
export const HIDDEN_MS_MAX = 60_000;

/** Samples kept of the live feed: ten minutes, as in the broker's own history. */
export const SAMPLES_MAX = 600;

/** Stalls kept for the strip of the last hour. */
export const STALLS_MAX = 500;
