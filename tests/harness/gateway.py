"""A broker with an HTTP gateway, and requests to it."""

from __future__ import annotations

import base64
import http.client
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness.deadline import DEADLINE_S
from harness.imori import Imori, running_imori


@dataclass
class Answer:
    """The response to a request."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:  # noqa: ANN401
        """The body as JSON."""
        return json.loads(self.body)


class Gateway:
    """The gateway of a broker that is ready."""

    def __init__(self, imori: Imori, routes: Path) -> None:
        self.imori = imori
        self.routes = routes

    @property
    def address(self) -> tuple[str, int]:
        """The host and port of its listener."""
        return self.imori.named["http"]

    @property
    def url(self) -> str:
        """The URL of its root, without a slash at the end."""
        host, port = self.address
        return f"http://{host}:{port}"

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | str | None = None,
        headers: Mapping[str, str] | None = None,
        login: str | None = None,
    ) -> Answer:
        """Sends a request on a connection of its own."""
        connection = http.client.HTTPConnection(*self.address, timeout=DEADLINE_S)
        sent = dict(headers or {})
        if login is not None:
            sent["Authorization"] = "Basic " + base64.b64encode(login.encode()).decode()
        try:
            connection.request(method, path, body, sent)
            response = connection.getresponse()
            names = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, names, response.read())
        finally:
            connection.close()


@contextmanager
def running_gateway(
    folder: Path,
    routes: str,
    *,
    settings: Mapping[str, object] | None = None,
    also: tuple[str, ...] = (),
    listen_http: bool = True,
    **options: Any,  # noqa: ANN401
) -> Iterator[Gateway]:
    """Starts a broker whose gateway has these routes, and ends it in any case."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "routes.toml"
    file.write_text(routes, encoding="utf-8")
    given = {"gateway.routes": file, **(settings or {})}
    if listen_http:
        also = ("http=127.0.0.1:0", *also)
    with running_imori(folder, settings=given, also=also, nats=True, **options) as imori:
        yield Gateway(imori, file)


StartGateway = Callable[..., Gateway]


@pytest.fixture
def start_gateway(tmp_path: Path) -> Iterator[StartGateway]:
    """Starts gateways with routes, which end with the test."""
    with ExitStack() as stack:

        def start(routes: str, **options: Any) -> Gateway:  # noqa: ANN401
            return stack.enter_context(running_gateway(tmp_path, routes, **options))

        yield start
