// The console's one connection to `/v1/feed`, with everything that it keeps up to date.
// Pages ask for topics while they are open; the browser allows too few connections for a feed for each of them.

import { DeltaTable } from "./delta-table.ts";
import { EventParser, type ServerEvent } from "./event-parser.ts";
import { HIDDEN_MS_MAX, SILENCE_MS_MAX, STALLS_MAX } from "./limits.ts";
import type { Chunk, ConnectionRow, Hello, OverviewEvent, QueueRow, Topic } from "./protocol.ts";
import { Samples } from "./samples.ts";
import { advance, retryDelayMs, type FeedInput, type FeedStatus } from "./status.ts";
import type { Stall } from "../api/types.ts";

/** Opens the stream of events; the console uses `fetch`, tests something simpler. */
export type Open = (topics: readonly Topic[], signal: AbortSignal) => Promise<Response>;

export class Feed {
  status: FeedStatus = { kind: "connecting" };
  hello: Hello | null = null;
  overview: OverviewEvent | null = null;
  /** Time of a restart of the broker while the page was open. */
  restartedAt: number | null = null;
  readonly samples = new Samples();
  readonly queues = new DeltaTable<QueueRow>((row) => `${row.name}\n${row.vhost}`.toLowerCase());
  readonly connections = new DeltaTable<ConnectionRow>((row) =>
    `${row.name}\n${row.user}\n${row.vhost ?? ""}\n${row.protocol}`.toLowerCase(),
  );
  stalls: readonly Stall[] = [];

  readonly #open: Open;
  readonly #listeners = new Set<() => void>();
  readonly #wanted = new Map<Topic, number>([["overview", 1]]);
  readonly #forbidden = new Set<Topic>();
  /** The topics of the present stream; one that a page no longer wants is left out at the next connection. */
  #sent: ReadonlySet<Topic> = new Set();
  #clockOffsetMs = 0;
  #attempts = 0;
  #heardAt = 0;
  #stream: AbortController | null = null;
  #retry: ReturnType<typeof setTimeout> | undefined;
  #watch: ReturnType<typeof setInterval> | undefined;
  #hiding: ReturnType<typeof setTimeout> | undefined;

  constructor(open: Open) {
    this.#open = open;
  }

  start(): void {
    this.#watch = setInterval(() => this.#checkSilence(), 1_000);
    this.#connect();
  }

  stop(): void {
    clearInterval(this.#watch);
    clearTimeout(this.#retry);
    clearTimeout(this.#hiding);
    this.#stream?.abort();
    this.#stream = null;
  }

  /** The broker's time now. The clock of the browser may be wrong by days, and is used for differences only. */
  now(): number {
    return Date.now() + this.#clockOffsetMs;
  }

  listen(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Asks for a topic until the returned function is called. */
  want(topic: Topic): () => void {
    const before = this.#wanted.get(topic) ?? 0;
    this.#wanted.set(topic, before + 1);
    if (!this.#sent.has(topic) && !this.#forbidden.has(topic)) this.#reconnect();
    return () => this.#wanted.set(topic, (this.#wanted.get(topic) ?? 1) - 1);
  }

  isForbidden(topic: Topic): boolean {
    return this.#forbidden.has(topic);
  }

  /** Closes the feed of a page that stays hidden, and opens it again when the page is shown. */
  setHidden(isHidden: boolean): void {
    clearTimeout(this.#hiding);
    if (isHidden) {
      this.#hiding = setTimeout(() => {
        this.#stream?.abort();
        this.#stream = null;
        clearTimeout(this.#retry);
        this.#input({ kind: "hidden" });
      }, HIDDEN_MS_MAX);
    } else if (this.status.kind === "paused") {
      this.#reconnect();
    }
  }

  forgetRestart(): void {
    this.restartedAt = null;
    this.#notify();
  }

  /** Adds stalls that the broker remembered from before this page was opened. */
  addStalls(stalls: readonly Stall[]): void {
    const known = new Map(this.stalls.map((stall) => [keyOf(stall), stall]));
    for (const stall of stalls) known.set(keyOf(stall), stall);
    this.stalls = [...known.values()].sort((a, b) => a.began - b.began).slice(-STALLS_MAX);
    this.#notify();
  }

  #reconnect(): void {
    this.#stream?.abort();
    clearTimeout(this.#retry);
    this.#connect();
  }

  #connect(): void {
    const stream = new AbortController();
    this.#stream = stream;
    this.#heardAt = Date.now();
    const topics = [...this.#wanted].filter(([topic, count]) => count > 0 && !this.#forbidden.has(topic)).map(([topic]) => topic);
    this.#sent = new Set(topics);
    this.#read(topics, stream.signal).then(
      () => this.#lost(stream),
      () => this.#lost(stream),
    );
  }

  #lost(stream: AbortController): void {
    if (this.#stream !== stream || stream.signal.aborted) return;
    if (this.status.kind === "refused" || this.status.kind === "signed_out") return;
    this.#attempts += 1;
    this.#input({ kind: "lost" });
    this.#retry = setTimeout(() => this.#connect(), retryDelayMs(this.#attempts, Math.random()));
  }

  async #read(topics: readonly Topic[], signal: AbortSignal): Promise<void> {
    const response = await this.#open(topics, signal);
    if (response.status === 401) return this.#input({ kind: "signed_out" });
    if (response.status === 403) return this.#leaveOut(topics, await response.text());
    if (!response.ok || response.body === null) return;
    const parser = new EventParser();
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let piece = await reader.read(); !piece.done && !signal.aborted; piece = await reader.read()) {
      this.#heardAt = Date.now();
      const events = parser.push(piece.value);
      for (const event of events) this.#take(event);
      if (events.length > 0) this.#notify();
    }
  }

  /** Tries again without the topics that the refusal names; a user without the tag `monitoring` still sees queues. */
  #leaveOut(topics: readonly Topic[], refusal: string): void {
    const named = topics.filter((topic) => refusal.includes("`" + topic + "`"));
    for (const topic of named) this.#forbidden.add(topic);
    if (named.length > 0 && named.length < topics.length) this.#reconnect();
    else this.#input({ kind: "refused", reason: detailOf(refusal) });
  }

  #take(event: ServerEvent): void {
    const data: unknown = JSON.parse(event.data);
    switch (event.event) {
      case "hello":
        return this.#greet(data as Hello);
      case "overview":
        return this.#sample(data as OverviewEvent);
      case "queues":
        return this.queues.apply(data as Chunk);
      case "connections":
        return this.connections.apply(data as Chunk);
      case "stall":
        return this.addStalls([data as Stall]);
      default:
        // A newer broker may send events that this console does not know.
        return;
    }
  }

  #greet(hello: Hello): void {
    if (this.hello !== null && this.hello.started !== hello.started) this.restartedAt = hello.started;
    this.hello = hello;
    this.#clockOffsetMs = hello.now - Date.now();
    this.#attempts = 0;
    this.#input({ kind: "hello" });
  }

  #sample(overview: OverviewEvent): void {
    this.overview = overview;
    this.samples.push(overview.at, overview.sample);
  }

  #checkSilence(): void {
    if (this.#stream === null || this.status.kind === "paused") return;
    const silentMs = Date.now() - this.#heardAt;
    if (silentMs < SILENCE_MS_MAX || this.#stream.signal.aborted) return;
    if (this.status.kind === "live") this.#input({ kind: "silence", since: this.#heardAt + this.#clockOffsetMs });
    this.#reconnect();
  }

  #input(input: FeedInput): void {
    this.status = advance(this.status, input);
    this.#notify();
  }

  #notify(): void {
    for (const listener of this.#listeners) listener();
  }
}

function keyOf(stall: Stall): string {
  return `${stall.began} ${stall.what} ${stall.cell ?? ""}`;
}

function detailOf(problem: string): string {
  try {
    const { detail } = JSON.parse(problem) as { detail?: unknown };
    return typeof detail === "string" ? detail : problem;
  } catch {
    return problem;
  }
}
