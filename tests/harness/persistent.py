"""Persistent messages in the background, each with a receipt."""

import itertools
import threading
import time
from types import TracebackType
from typing import Self

from harness.broker import Broker
from harness.deadline import pause
from harness.raw import RawClient

# The most outstanding receipts, and the pause between messages.
WINDOW = 32
PAUSE_S = 0.001


class Persistent:
    """A publisher that runs until the end of the block."""

    def __init__(self, broker: Broker, queue: str = "kept", *, body: bytes = b"x" * 500) -> None:
        self._client = RawClient(broker)
        self._client.login()
        self._headers = {"destination": f"/queue/{queue}", "persistent": "true"}
        self._body = body
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        # Time and content of each receipt.
        self.receipts: list[float] = []
        self.levels: set[str] = set()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ends.set()
        self._thread.join()
        self._client.close()

    def confirmed(self, begin: float, end: float) -> int:
        """Returns the number of receipts within a time of the monotonic clock."""
        return sum(begin <= when < end for when in list(self.receipts))

    def _run(self) -> None:
        under_way = 0
        for number in itertools.count():
            if self._ends.is_set():
                break
            self._client.send("SEND", {**self._headers, "receipt": str(number)}, self._body)
            under_way += 1
            pause(PAUSE_S, "a pace, not as fast as it can")
            if under_way >= WINDOW:
                self._take()
                under_way -= 1
        for _ in range(under_way):
            self._take()

    def _take(self) -> None:
        receipt = self._client.read()
        assert receipt.command == "RECEIPT", receipt
        self.receipts.append(time.monotonic())
        self.levels.add(receipt.headers["imori-level"])
