// Keeps a fault in one page from taking the whole console with it.

import { Component, type ComponentChildren } from "preact";
import { failureOf } from "../load.ts";
import type { Failure } from "../api/client.ts";
import { FailureNote } from "./failure.tsx";

type Props = { children: ComponentChildren };

export class Boundary extends Component<Props, { failure: Failure | null }> {
  override state = { failure: null };

  static override getDerivedStateFromError(error: unknown): { failure: Failure } {
    return { failure: failureOf(error) };
  }

  override render({ children }: Props, { failure }: { failure: Failure | null }) {
    return failure === null ? <>{children}</> : <FailureNote failure={failure} onRetry={() => this.setState({ failure: null })} />;
  }
}
