"""Requests to a broker's admin listener, as sent by scripts and other programs."""

import base64
import json
import urllib.error
import urllib.request
from dataclasses import dataclass
from email.message import Message
from typing import Any, Protocol
from urllib.parse import quote

from harness.deadline import DEADLINE_S, wait_for

# The login that reading the broker's data folder permits.
OPERATOR = "operator"


class Administered(Protocol):
    """A broker with an admin listener."""

    @property
    def admin(self) -> tuple[str, int] | None:
        """Address of the admin listener."""

    def operator_password(self) -> str:
        """Returns the password of the local operator."""


@dataclass(frozen=True)
class Answer:
    """The response to a request."""

    status: int
    headers: Message
    body: str

    def json(self) -> Any:  # noqa: ANN401
        """The parsed body."""
        return json.loads(self.body)


def ask(
    imori: Administered,
    path: str,
    *,
    method: str = "GET",
    login: str | None = OPERATOR,
    headers: dict[str, str] | None = None,
    body: Any = None,  # noqa: ANN401
) -> Answer:
    """Sends a request as the operator, as this user or without a login; returns the response."""
    assert imori.admin is not None
    host, port = imori.admin
    request = urllib.request.Request(f"http://{host}:{port}{path}", method=method)
    if body is not None:
        request.data = json.dumps(body).encode()
        request.add_header("Content-Type", "application/json")
    if login == OPERATOR:
        login = f"operator:{imori.operator_password()}"
    if login is not None:
        token = base64.b64encode(login.encode()).decode()
        request.add_header("Authorization", f"Basic {token}")
    for name, value in (headers or {}).items():
        request.add_header(name, value)
    try:
        with urllib.request.urlopen(request, timeout=DEADLINE_S) as answer:
            is_text = answer.headers.get_content_type() != "application/octet-stream"
            body = answer.read().decode(errors="strict" if is_text else "replace")
            return Answer(answer.status, answer.headers, body)
    except urllib.error.HTTPError as error:
        with error:
            return Answer(error.code, error.headers, error.read().decode())


def read(imori: Administered, path: str) -> Any:  # noqa: ANN401
    """Returns the JSON at a path."""
    answer = ask(imori, path)
    assert answer.status == 200, answer
    assert answer.headers["Content-Type"] == "application/json"
    return answer.json()


def ready(imori: Administered, part: str = "") -> int:
    """Asks whether the broker, or a part of it, is ready, without a login; returns the status."""
    return ask(imori, f"/readyz{part}", login=None).status


def segment(name: str) -> str:
    """Returns a name as a path segment."""
    return quote(name, safe="")


def clear(imori: Administered) -> None:
    """Leaves a broker without clients, users, vhosts, queues and exchanges of the last test.

    What it has counted stays, and so do its own users and exchanges, and the vhost `/`.
    """
    for connection in read(imori, "/api/connections"):
        ask(imori, f"/api/connections/{segment(connection['name'])}", method="DELETE")
    wait_for(lambda: not read(imori, "/api/connections"), "the end of the connections")
    for kind in ("vhosts", "users"):
        for one in read(imori, f"/api/{kind}"):
            if one["name"] not in {"/", "guest"} and "administrator" not in one.get("tags", ()):
                _delete(imori, f"/api/{kind}/{segment(one['name'])}")
    for kind in ("policies", "queues", "exchanges"):
        for one in read(imori, f"/api/{kind}"):
            if one["name"] and not one["name"].startswith("amq."):
                _delete(imori, f"/api/{kind}/%2F/{segment(one['name'])}")


def _delete(imori: Administered, path: str) -> None:
    answer = ask(imori, path, method="DELETE")
    assert answer.status in {204, 404}, answer
