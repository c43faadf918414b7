"""Bodies of HTTP requests that come in part, or slowly, on every HTTP listener.

SECURITY ROOM-10: each is charged from its first byte, and the memory stays within its mark.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import math
import os
import re
import select
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from harness.automation import Automation, running_automation, signed
from harness.deadline import DEADLINE_S, wait_for
from harness.gateway import running_gateway
from harness.imori import Imori
from harness.monitor import metric

KIB = 1024
MIB = 1024 * KIB

# The mark at which half bodies once held six times as much, or a little more.
MARK_MIB = 241


def mark_percent() -> int:
    """The part of the memory that is such a mark."""
    total = re.search(r"^MemTotal:\s+(\d+) kB", Path("/proc/meminfo").read_text(), re.MULTILINE)
    assert total
    bytes_max = int(total[1]) * KIB
    group = Path("/sys/fs/cgroup/memory.max")
    if group.exists() and group.read_text().strip().isdigit():
        bytes_max = min(bytes_max, int(group.read_text()))
    return min(90, max(1, math.ceil(MARK_MIB * MIB * 100 / bytes_max - 0.05)))


SETTINGS = {"broker.memory_mark_percent": mark_percent()}
MARK = "rabbitmq_resident_memory_limit_bytes"
HELD = 'imori_memory_bytes{of="bodies"}'

# `IMORI_BODIES=250` and `IMORI_GATEWAY_BODIES=1000` are the numbers that once broke the mark.
BODIES = int(os.environ.get("IMORI_BODIES", "60"))
GATEWAY_BODIES = int(os.environ.get("IMORI_GATEWAY_BODIES", "200"))

ROUTES = """
[gateway]
user = "guest"

[[route]]
path = "/call"
methods = ["POST"]
limits = { body_bytes = 16777216, in_flight = 4096, time_ms = 300000 }
rpc = { topic = "nobody", timeout_ms = 60000 }
"""


def memory(imori: Imori, of: str) -> int:
    """The broker's resident memory, `VmRSS` or its peak `VmHWM`."""
    status = Path(f"/proc/{imori.process.pid}/status").read_text()
    found = re.search(rf"^{of}:\s+(\d+) kB", status, re.MULTILINE)
    assert found, status
    return int(found[1]) * KIB


class HalfBody:
    """A request whose body stops shortly before its end."""

    def __init__(self, address: tuple[str, int], head: str, length: int) -> None:
        self._socket = socket.create_connection(address)
        self._socket.setblocking(False)
        lines = [head, "Host: localhost", f"Content-Length: {length}"]
        lines.append("Content-Type: application/json")
        self._unsent = memoryview("\r\n".join([*lines, "", ""]).encode() + b"x" * (length - 1))
        self.answer = b""

    def __enter__(self) -> HalfBody:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    @property
    def is_sent(self) -> bool:
        """Whether there is no more to send, or the broker takes no more."""
        return not self._unsent or bool(self.answer)

    def send_on(self) -> bool:
        """Sends what the socket takes; returns whether that was anything."""
        if self._unsent:
            try:
                sent = self._socket.send(self._unsent[: 256 * KIB])
            except BlockingIOError:
                return False
            except OSError:
                self._unsent = memoryview(b"")
                return False
            self._unsent = self._unsent[sent:]
            return sent > 0
        return False

    def read(self) -> None:
        """Reads what the broker has said."""
        if select.select([self._socket], [], [], 0)[0]:
            try:
                self.answer += self._socket.recv(65536)
            except OSError:
                self.answer += b"\0"


def send_all(bodies: list[HalfBody]) -> None:
    """Sends until no socket takes more."""
    quiet = 0
    while quiet < 20:
        moved = [body.send_on() for body in bodies]
        for body in bodies:
            body.read()
        quiet = 0 if any(moved) else quiet + 1
        if quiet:
            select.select([], [], [], 0.05)


@contextmanager
def half_bodies(
    address: tuple[str, int], head: str, length: int, count: int
) -> Iterator[list[HalfBody]]:
    """So many requests at once."""
    with ExitStack() as stack:
        bodies = [stack.enter_context(HalfBody(address, head, length)) for _ in range(count)]
        send_all(bodies)
        yield bodies


def login(imori: Imori) -> dict[str, str]:
    """The header of the operator's login."""
    pair = f"operator:{imori.operator_password()}".encode()
    return {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}


def make_webhook(automation: Automation) -> None:
    """A rule with a webhook of GitHub."""
    rule = {
        "name": "signed",
        "pack": "default",
        "enabled": True,
        "trigger": {
            "type": "core.st2.webhook",
            "parameters": {"url": "signed", "scheme": "github", "secret": "s3cret"},
        },
        "action": {"ref": "core.noop"},
    }
    made = automation.ask("POST", "/v1/rules", rule, login(automation.imori))
    assert made.status == 201, made


def test_half_bodies_at_a_signed_webhook_stay_within_the_mark(tmp_path: Path) -> None:
    """ROOM-10: what is not signed yet goes to disk, and a good sender is answered meanwhile."""
    with running_automation(tmp_path, admin=True, monitor=True, settings=SETTINGS) as automation:
        imori = automation.imori
        make_webhook(automation)
        mark = metric(imori, MARK)
        head = "POST /v1/webhooks/signed HTTP/1.1\r\n"
        head += f"X-GitHub-Event: push\r\nX-Hub-Signature-256: sha256={'0' * 64}"
        with half_bodies(imori.named["automation"], head, 6 * MIB, BODIES):
            peak = memory(imori, "VmHWM")
            assert peak < mark, f"{peak / MIB:.0f} MiB"
            print(f"{BODIES} bodies of 6 MiB: {peak / MIB:.0f} MiB")
            body = b'{"a": 1}'
            proof = {"X-GitHub-Event": "push", "X-GitHub-Delivery": "d"} | signed("s3cret", body)
            assert automation.ask("POST", "/v1/webhooks/signed", body, proof).status == 202
        wait_for(lambda: metric(imori, HELD) == 0, "the end of all bodies")
        assert imori.stop() == 0


def test_half_bodies_at_a_route_stay_within_the_mark(tmp_path: Path) -> None:
    """ROOM-10: others wait in their sockets until there is room, then get 503."""
    with running_gateway(tmp_path, ROUTES, settings=SETTINGS, admin=True, monitor=True) as gateway:
        mark = metric(gateway.imori, MARK)
        head = "POST /call HTTP/1.1"
        with half_bodies(gateway.address, head, MIB, GATEWAY_BODIES) as bodies:
            peak = memory(gateway.imori, "VmHWM")
            assert peak < mark, f"{peak / MIB:.0f} MiB"
            print(f"{GATEWAY_BODIES} bodies of 1 MiB: {peak / MIB:.0f} MiB")
            assert 0 < metric(gateway.imori, HELD) < mark / 4
            # A short one needs no room.
            assert gateway.ask("POST", "/call", b"{}").status == 503

            def are_refused() -> bool:
                for body in bodies:
                    body.read()
                return any(body.answer.startswith(b"HTTP/1.1 503 ") for body in bodies)

            wait_for(are_refused, "the refusal of those without room")
        wait_for(lambda: metric(gateway.imori, HELD) == 0, "the end of all bodies")
        assert gateway.imori.stop() == 0


def test_bodies_of_the_admin_listener_are_charged(tmp_path: Path) -> None:
    """ROOM-10."""
    with running_gateway(tmp_path, ROUTES, settings=SETTINGS, admin=True, monitor=True) as gateway:
        imori = gateway.imori
        assert imori.admin is not None
        head = "POST /api/definitions HTTP/1.1\r\n"
        head += f"Authorization: {login(imori)['Authorization']}"
        with half_bodies(imori.admin, head, 9 * MIB, 3):
            wait_for(lambda: metric(imori, HELD) >= 9 * MIB, "the charge of a body")
            assert metric(imori, HELD) < 20 * MIB
        wait_for(lambda: metric(imori, HELD) == 0, "the end of all bodies")
        assert imori.stop() == 0


@pytest.mark.parametrize("is_chunked", [False, True])
def test_a_webhook_takes_what_github_sends(tmp_path: Path, *, is_chunked: bool) -> None:
    """Up to 25 MiB, also in chunks, whose signature is computed as they come."""
    with running_automation(tmp_path, is_open=False, settings=SETTINGS) as automation:
        make_webhook(automation)
        imori = automation.imori
        body = b'{"text": "' + b"y" * (20 * MIB) + b'"}'
        signature = hmac.new(b"s3cret", body, hashlib.sha256).hexdigest()

        def post(body: bytes, signature: str) -> bytes:
            with socket.create_connection(imori.named["automation"], DEADLINE_S) as client:
                length = f"Content-Length: {len(body)}"
                head = (
                    "POST /v1/webhooks/signed HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                    "Content-Type: application/json\r\nX-GitHub-Event: push\r\n"
                    f"X-Hub-Signature-256: sha256={signature}\r\n"
                    f"{'Transfer-Encoding: chunked' if is_chunked else length}\r\n\r\n"
                )
                client.sendall(head.encode())
                try:
                    for start in range(0, len(body), MIB):
                        piece = body[start : start + MIB]
                        if is_chunked:
                            piece = b"%x\r\n%s\r\n" % (len(piece), piece)
                        client.sendall(piece)
                    if is_chunked:
                        client.sendall(b"0\r\n\r\n")
                except OSError:
                    pass
                return client.recv(65536)

        assert post(body, signature).startswith(b"HTTP/1.1 202 ")
        assert post(body, "0" * 64).startswith(b"HTTP/1.1 401 ")
        assert post(b" " * (26 * MIB), "0" * 64).startswith(b"HTTP/1.1 413 ")
        spool = tmp_path / "data" / "automation" / "spool"
        assert not list(spool.iterdir()), "no file has a name"
        assert imori.stop() == 0


def test_a_body_that_stops_is_ended(tmp_path: Path) -> None:
    """ROOM-10: 408 on each listener, and the connection closes."""
    with (
        running_automation(tmp_path / "automation", admin=True) as automation,
        running_gateway(tmp_path / "gateway", ROUTES) as gateway,
        ExitStack() as stack,
    ):
        places = [
            (automation.imori.named["automation"], "POST /v1/executions HTTP/1.1"),
            (automation.imori.admin, "POST /v1/session HTTP/1.1"),
            (gateway.address, "POST /call HTTP/1.1"),
        ]
        bodies = []
        for address, head in places:
            assert address is not None
            bodies.append(stack.enter_context(HalfBody(address, head, 4 * KIB)))
        send_all(bodies)

        def are_ended() -> bool:
            for body in bodies:
                body.read()
            return all(body.answer for body in bodies)

        wait_for(are_ended, "an answer to each")
        assert [body.answer[9:12] for body in bodies] == [b"408"] * 3
