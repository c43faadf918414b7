// Server-sent events from the text of a response, piece by piece.
// The browser's EventSource hides comments, and the feed needs them to tell a quiet broker from a stalled one.

export type ServerEvent = { readonly event: string; readonly data: string };

export class EventParser {
  #rest = "";
  #event = "";
  #data: string[] = [];

  /** Returns the events that this piece of text completes. */
  push(text: string): ServerEvent[] {
    const events: ServerEvent[] = [];
    const lines = (this.#rest + text).split(/\r\n|\n/);
    this.#rest = lines.pop() ?? "";
    for (const line of lines) {
      const event = this.#take(line);
      if (event !== null) events.push(event);
    }
    return events;
  }

  #take(line: string): ServerEvent | null {
    if (line === "") return this.#finish();
    const colon = line.indexOf(":");
    const field = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "event") this.#event = value;
    if (field === "data") this.#data.push(value);
    return null;
  }

  #finish(): ServerEvent | null {
    const event = this.#data.length === 0 ? null : { event: this.#event || "message", data: this.#data.join("\n") };
    this.#event = "";
    this.#data = [];
    return event;
  }
}
