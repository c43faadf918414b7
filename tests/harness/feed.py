"""A reader of the admin listener's live feed, and the lists that it builds from the events."""

import contextlib
import http.client
import json
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, Self

from harness.admin import Administered
from harness.deadline import DEADLINE_S


class Feed:
    """Reads the events of `/v1/feed`, each of which has to come within the deadline."""

    def __init__(
        self, imori: Administered, topics: str, headers: dict[str, str], *, expected: int = 200
    ) -> None:
        assert imori.admin is not None
        self._connection = http.client.HTTPConnection(*imori.admin, timeout=DEADLINE_S)
        self._connection.request("GET", f"/v1/feed?topics={topics}", headers=headers)
        self._answer = self._connection.getresponse()
        self.status = self._answer.status
        assert self.status == expected, self._answer.read()
        if expected == 200:
            assert self._answer.headers["Content-Type"] == "text/event-stream"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Drops the connection."""
        with contextlib.suppress(OSError):
            self._answer.close()
        self._connection.close()

    def events(self) -> Iterator[tuple[str, Any]]:
        """Yields the kind and the object of each event until the feed ends."""
        kind = ""
        with contextlib.suppress(http.client.IncompleteRead, ConnectionResetError):
            for line in self._answer:
                name, _, value = line.decode().rstrip("\n").partition(": ")
                if name == "event":
                    kind = value
                elif name == "data":
                    yield kind, json.loads(value)

    def next(self, kind: str) -> Any:  # noqa: ANN401
        """Returns the next event of this kind."""
        for found, data in self.events():
            if found == kind:
                return data
        raise AssertionError(f"the feed ended before an event `{kind}`")


class Table:
    """A list of the feed: its rows by id, each with its values by column."""

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.rows: dict[int, dict[str, Any]] = {}
        self.resets = 0
        # Numbers of rows of the events so far.
        self.sizes: list[int] = []

    def apply(self, data: dict[str, Any]) -> None:
        """Applies an event."""
        if data["reset"]:
            self.rows.clear()
            self.resets += 1
        for row in data["rows"]:
            values = dict(zip(data["columns"], row, strict=True))
            self.rows[values["id"]] = values
        for gone in data["removed"]:
            self.rows.pop(gone, None)
        self.sizes.append(len(data["rows"]))

    def read(self, feed: Feed, until: Callable[["Table"], bool]) -> None:
        """Reads the feed until the list is as wanted after the last event of a set."""
        for kind, data in feed.events():
            if kind == self.topic:
                self.apply(data)
                if data["last"] and until(self):
                    return
        raise AssertionError(f"the feed ended before its {self.topic} were as expected")

    def by_name(self) -> dict[str, dict[str, Any]]:
        """Returns the rows by the names of their objects."""
        return {row["name"]: row for row in self.rows.values()}
