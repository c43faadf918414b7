"""The trace that a dispatched trigger belongs to."""

from __future__ import annotations

from typing import Any

__all__ = ["TraceContext"]


class TraceContext:
    """A trace that exists, by its id, or one to begin, by its tag."""

    def __init__(self, id_: str | None = None, trace_tag: str | None = None) -> None:
        self.id_ = id_
        self.trace_tag = trace_tag

    def __str__(self) -> str:
        return f"{{id_: {self.id_}, trace_tag: {self.trace_tag}}}"

    def __json__(self) -> dict[str, Any]:
        return dict(vars(self))
