"""A broker with its automation, and StackStorm's API of it."""

import base64
import hashlib
import hmac
import json
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness.deadline import DEADLINE_S, wait_for
from harness.imori import Imori, running_imori

FINAL = {"succeeded", "failed", "timeout", "abandoned", "canceled"}


@dataclass(frozen=True)
class Answer:
    """An answer of the API."""

    status: int
    headers: Mapping[str, str]
    body: Any


@dataclass(frozen=True)
class Automation:
    """The automation of a broker that is ready."""

    imori: Imori

    @property
    def url(self) -> str:
        """The address below which the paths of the API are."""
        host, port = self.imori.named["automation"]
        return f"http://{host}:{port}"

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Sends a request; bytes are sent as they are, anything else as JSON."""
        data = body if isinstance(body, bytes) else None
        if body is not None and data is None:
            data = json.dumps(body).encode()
        sent = {"Content-Type": "application/json", **(headers or {})}
        request = urllib.request.Request(f"{self.url}{path}", data, sent, method=method)
        try:
            with urllib.request.urlopen(request, timeout=DEADLINE_S) as response:
                text, status, found = response.read(), response.status, dict(response.headers)
        except urllib.error.HTTPError as error:
            text, status, found = error.read(), error.code, dict(error.headers)
        is_json = "json" in found.get("content-type", "")
        return Answer(status, found, json.loads(text) if is_json else text.decode())

    def get(self, path: str) -> Any:  # noqa: ANN401
        """The body of a path that must be there."""
        answer = self.ask("GET", path)
        assert answer.status == 200, answer
        return answer.body

    def run(self, action: str, **parameters: object) -> dict[str, Any]:
        """Runs an action to its end."""
        answer = self.ask("POST", "/v1/executions", {"action": action, "parameters": parameters})
        assert answer.status == 201, answer
        return self.ended(answer.body["id"])

    def ended(self, execution: str) -> dict[str, Any]:
        """The execution, once it has ended."""

        def found() -> dict[str, Any] | None:
            shown: dict[str, Any] = self.get(f"/v1/executions/{execution}")
            return shown if shown["status"] in FINAL else None

        return wait_for(found, f"the end of execution {execution}", within_s=4 * DEADLINE_S)

    def executions(self, **filters: str) -> list[dict[str, Any]]:
        """Executions that meet these filters, oldest first."""
        query = "&".join(f"{name}={value}" for name, value in filters.items())
        found: list[dict[str, Any]] = self.get(f"/v1/executions?sort=start_timestamp&{query}")
        return found

    def rule(self, **rule: object) -> dict[str, Any]:
        """Registers an enabled rule."""
        answer = self.ask("POST", "/v1/rules", {"enabled": True, "pack": "default", **rule})
        assert answer.status == 201, answer
        made: dict[str, Any] = answer.body
        return made


@contextmanager
def running_automation(
    folder: Path,
    *,
    waits: bool = True,
    is_open: bool = True,
    **options: Any,  # noqa: ANN401
) -> Iterator[Automation]:
    """Starts a broker with AMQP and the automation, and ends it in any case.

    Waits until the built-in packs are registered, unless it is told not to. Unless it is open, its
    clients have to log in.
    """
    options.setdefault("protocol", "amqp")
    options["settings"] = {"automation.open": str(is_open).lower(), **options.get("settings", {})}
    also = ["automation=127.0.0.1:0", *options.pop("also", [])]
    with running_imori(folder, also=also, **options) as imori:
        automation = Automation(imori)

        password = base64.b64encode(f"operator:{imori.operator_password()}".encode()).decode()

        def has_packs() -> bool:
            headers = {"Authorization": f"Basic {password}"}
            answer = automation.ask("GET", "/v1/packs", None, headers)
            return answer.status == 200 and bool(answer.body)

        if waits:
            wait_for(has_packs, "the built-in packs")
        yield automation


Start = Callable[..., Automation]


@pytest.fixture(scope="module")
def automation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Automation]:
    """One automation for the tests of a module that need none of their own."""
    with running_automation(tmp_path_factory.mktemp("automation")) as automation:
        yield automation


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts automations on the same data, one after the other."""
    with ExitStack() as stack:

        def start(**options: Any) -> Automation:  # noqa: ANN401
            return stack.enter_context(running_automation(tmp_path, **options))

        yield start


def signed(secret: str, body: bytes) -> dict[str, str]:
    """The headers of a request that GitHub signed."""
    signature = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return {"X-Hub-Signature-256": f"sha256={signature}"}
