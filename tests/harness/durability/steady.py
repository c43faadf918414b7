"""A publisher of messages of one size."""

from __future__ import annotations

from harness.durability.ledger import Ledger, message
from harness.durability.roles import Publisher

# Bytes of messages that may wait for their confirms.
WINDOW_BYTES = 1_600_000


class Steady(Publisher):
    """Sends messages of one size, regardless of the reader's backlog, or up to `ahead`."""

    def __init__(
        self, ledger: Ledger, queue: str, body_bytes: int, *, ahead: int = 1 << 30
    ) -> None:
        window = max(1, WINDOW_BYTES // body_bytes)
        super().__init__(ledger, f"{queue}.p", queue, window=window, ahead=ahead)
        self.body_bytes = body_bytes

    def next(self) -> tuple[int, bytes]:
        """Returns the number and the body of the next message."""
        self.number += 1
        return self.number, message(self.name, self.number, self.body_bytes)
