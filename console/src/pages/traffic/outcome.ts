// What a trace knows last of a message.

import type { Trace } from "../../api/types.ts";

type Message = Trace["messages"][number];
type Word = "unroutable" | "waiting" | "delivered" | "accepted" | "released" | "rejected" | "deadLettered";

export function outcomeOf(message: Pick<Message, "steps">): { readonly word: Word; readonly tone: "good" | "warn" | "danger" | "plain" } {
  const last = message.steps.findLast((step) => step.step !== "routed" && step.step !== "queued");
  switch (last?.step) {
    case "accepted":
      return { word: "accepted", tone: "good" };
    case "rejected":
      return { word: "rejected", tone: "danger" };
    case "released":
      return { word: "released", tone: "warn" };
    case "dead_lettered":
      return { word: "deadLettered", tone: "danger" };
    case "delivered":
      return { word: "delivered", tone: last.queue == null ? "good" : "plain" };
    default:
      return message.steps.some((step) => step.step === "queued") ? { word: "waiting", tone: "warn" } : { word: "unroutable", tone: "danger" };
  }
}
