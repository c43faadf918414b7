"""What a broker's monitor says."""

import json
import urllib.error
import urllib.request
from typing import Any, Protocol

from harness.deadline import DEADLINE_S


class Monitored(Protocol):
    """A broker of which it is known where its monitor listens."""

    @property
    def monitor(self) -> tuple[str, int] | None:
        """The address, if it has one."""


def asked(imori: Monitored, path: str) -> tuple[int, str]:
    """The status and the body of an answer."""
    assert imori.monitor is not None
    host, port = imori.monitor
    try:
        with urllib.request.urlopen(f"http://{host}:{port}{path}", timeout=DEADLINE_S) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def page(imori: Monitored, path: str) -> dict[str, Any]:
    """A page of JSON."""
    status, body = asked(imori, path)
    assert status == 200, body
    page: dict[str, Any] = json.loads(body)
    return page


def metric(imori: Monitored, name: str) -> float:
    """A number of `/metrics`, by its name with its labels."""
    _, body = asked(imori, "/metrics")
    line = next(line for line in body.splitlines() if line.startswith(f"{name} "))
    return float(line.removeprefix(f"{name} "))
