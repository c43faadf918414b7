"""Reads a broker's monitor."""

import json
import urllib.error
import urllib.request
from typing import Any, Protocol

from harness.deadline import DEADLINE_S


class Monitored(Protocol):
    """A broker with a known monitor address."""

    @property
    def monitor(self) -> tuple[str, int] | None:
        """The address, if there is a monitor."""


def asked(imori: Monitored, path: str) -> tuple[int, str]:
    """Returns status and body of a response."""
    assert imori.monitor is not None
    host, port = imori.monitor
    try:
        with urllib.request.urlopen(f"http://{host}:{port}{path}", timeout=DEADLINE_S) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def page(imori: Monitored, path: str) -> dict[str, Any]:
    """Returns a page of JSON."""
    status, body = asked(imori, path)
    assert status == 200, body
    page: dict[str, Any] = json.loads(body)
    return page


def metric(imori: Monitored, name: str) -> float:
    """Returns a value of `/metrics`, by its name with labels."""
    _, body = asked(imori, "/metrics")
    line = next(line for line in body.splitlines() if line.startswith(f"{name} "))
    return float(line.removeprefix(f"{name} "))
