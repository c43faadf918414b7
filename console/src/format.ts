// Numbers, sizes, times and names as text in the reader's language.

const BYTE_UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;

/** Stands for a value that is not known. */
export const NOTHING = "–";

export class Format {
  readonly #count: Intl.NumberFormat;
  readonly #short: Intl.NumberFormat;
  readonly #digit: Intl.NumberFormat;
  readonly #dateTime: Intl.DateTimeFormat;
  readonly #clock: Intl.DateTimeFormat;
  readonly #relative: Intl.RelativeTimeFormat;

  constructor(language: string, timeZone?: string) {
    const zone = timeZone === undefined ? {} : { timeZone };
    this.#count = new Intl.NumberFormat(language, { maximumFractionDigits: 0 });
    this.#short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
    this.#digit = new Intl.NumberFormat(language, { maximumFractionDigits: 1 });
    this.#dateTime = new Intl.DateTimeFormat(language, { dateStyle: "medium", timeStyle: "medium", hourCycle: "h23", ...zone });
    this.#clock = new Intl.DateTimeFormat(language, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23", ...zone });
    this.#relative = new Intl.RelativeTimeFormat(language, { numeric: "always", style: "narrow" });
  }

  count(value: number | null | undefined): string {
    return value === null || value === undefined ? NOTHING : this.#count.format(value);
  }

  /** A number of at most four digits, such as `12.3K`. */
  short(value: number | null | undefined): string {
    if (value === null || value === undefined) return NOTHING;
    return Math.abs(value) < 1_000 ? this.#digit.format(value) : this.#short.format(value);
  }

  /** A number of things a second; small ones keep a digit behind the point. */
  rate(value: number | null | undefined): string {
    if (value === null || value === undefined) return NOTHING;
    return value !== 0 && Math.abs(value) < 10 ? this.#digit.format(value) : this.#count.format(value);
  }

  bytes(value: number | null | undefined): string {
    if (value === null || value === undefined) return NOTHING;
    let rest = value;
    let unit = 0;
    while (Math.abs(rest) >= 1_024 && unit < BYTE_UNITS.length - 1) {
      rest /= 1_024;
      unit += 1;
    }
    return `${unit === 0 ? this.#count.format(rest) : this.#digit.format(rest)} ${BYTE_UNITS[unit]}`;
  }

  /** A duration in its two largest units, such as `3 h 20 min`. */
  duration(ms: number | null | undefined): string {
    if (ms === null || ms === undefined) return NOTHING;
    if (ms < SECOND_MS) return `${this.#count.format(ms)} ms`;
    if (ms < MINUTE_MS) return `${this.#digit.format(ms / SECOND_MS)} s`;
    if (ms < HOUR_MS) return pair(Math.floor(ms / MINUTE_MS), "min", Math.floor((ms % MINUTE_MS) / SECOND_MS), "s");
    if (ms < DAY_MS) return pair(Math.floor(ms / HOUR_MS), "h", Math.floor((ms % HOUR_MS) / MINUTE_MS), "min");
    return pair(Math.floor(ms / DAY_MS), "d", Math.floor((ms % DAY_MS) / HOUR_MS), "h");
  }

  latency(us: number | null | undefined): string {
    if (us === null || us === undefined) return NOTHING;
    if (us < 1_000) return `${this.#count.format(us)} µs`;
    if (us < 1_000_000) return `${this.#digit.format(us / 1_000)} ms`;
    return `${this.#digit.format(us / 1_000_000)} s`;
  }

  dateTime(ms: number): string {
    return this.#dateTime.format(ms);
  }

  clock(ms: number): string {
    return this.#clock.format(ms);
  }

  /** The time between `ms` and `now`, both by the broker's clock, such as `5 min ago`. */
  ago(ms: number, now: number): string {
    const past = Math.max(0, now - ms);
    if (past < MINUTE_MS) return this.#relative.format(-Math.floor(past / SECOND_MS), "second");
    if (past < HOUR_MS) return this.#relative.format(-Math.floor(past / MINUTE_MS), "minute");
    if (past < DAY_MS) return this.#relative.format(-Math.floor(past / HOUR_MS), "hour");
    return this.#relative.format(-Math.floor(past / DAY_MS), "day");
  }
}

function pair(large: number, largeUnit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${large} ${largeUnit}` : `${large} ${largeUnit} ${small} ${smallUnit}`;
}

const INVISIBLE = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/g;

/** Shows characters that a reader cannot see, or that turn the direction of text, as escapes. */
export function visibleText(text: string): string {
  return text.replace(INVISIBLE, escapeOf);
}

/** The same for text on one line, where line ends and tabs cannot be seen either. */
export function visibleName(text: string): string {
  return visibleText(text).replace(/[\t\n\r]/g, escapeOf);
}

function escapeOf(character: string): string {
  const short = new Map([["\t", "\\t"], ["\n", "\\n"], ["\r", "\\r"]]).get(character);
  return short ?? `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
