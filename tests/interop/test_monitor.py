"""The monitor serves readers of nats-server's monitoring, with the types that they expect.

The fields are those decoded by nats-top and prometheus-nats-exporter: a reader in Go fails on a
wrong type, and treats an absent field as zero. nats-top is run if it is installed.
"""

import json
import re
import shutil
import subprocess
from datetime import datetime
from typing import Any
from urllib.request import urlopen

import pytest
import stomp

from harness.deadline import DEADLINE_S
from harness.fixtures import StartImori
from harness.imori import Imori

# Fields shown by nats-top and decoded by the exporter's connection collector.
VARZ = {
    "server_id": str,
    "server_name": str,
    "version": str,
    "now": datetime,
    "start": datetime,
    "uptime": "span",
    "cpu": float,
    "mem": int,
    "connections": int,
    "total_connections": int,
    "subscriptions": int,
    "slow_consumers": int,
    "in_msgs": int,
    "out_msgs": int,
    "in_bytes": int,
    "out_bytes": int,
    "routes": int,
    "remotes": int,
    "leafnodes": int,
    "max_connections": int,
    "max_payload": int,
}
CONNZ = {
    "server_id": str,
    "now": datetime,
    "num_connections": int,
    "total": int,
    "offset": int,
    "limit": int,
    "connections": list,
}
CONNECTION = {
    "cid": int,
    "kind": str,
    "type": str,
    "ip": str,
    "port": int,
    "start": datetime,
    "last_activity": datetime,
    "uptime": "span",
    "idle": "span",
    "pending_bytes": int,
    "in_msgs": int,
    "out_msgs": int,
    "in_bytes": int,
    "out_bytes": int,
    "subscriptions": int,
}
SUBSZ = {"server_id": str, "now": datetime, "num_subscriptions": int, "total": int}
# The exporter only expects a type for these, if they are present.
OPTIONAL = {"name": str, "lang": str, "version": str, "account": str, "rtt": str}

SPAN = re.compile(r"(\d+y)?(\d+d)?(\d+h)?(\d+m)?\d+s")


@pytest.fixture
def imori(start_imori: StartImori) -> Imori:
    return start_imori(monitor=True)


def read(imori: Imori, path: str) -> Any:  # noqa: ANN401
    """Returns the JSON at a path of the monitor."""
    with urlopen(f"http://{_place(imori)}{path}", timeout=DEADLINE_S) as answer:
        assert answer.headers["Content-Type"] == "application/json"
        return json.load(answer)


def _place(imori: Imori) -> str:
    assert imori.monitor is not None
    host, port = imori.monitor
    return f"{host}:{port}"


def check(found: dict[str, Any], fields: dict[str, Any]) -> None:
    """Fails if a field is absent or has another type."""
    for name, kind in fields.items():
        value = found[name]
        if kind is datetime:
            # Python supports at most microseconds.
            datetime.fromisoformat(re.sub(r"(\.\d{6})\d*Z$", r"\1+00:00", value))
        elif kind == "span":
            assert SPAN.fullmatch(value), f"{name}: {value}"
        elif kind is float:
            assert isinstance(value, int | float), f"{name}: {value!r}"
        else:
            assert type(value) is kind, f"{name}: {value!r}"


def test_every_path_gives_what_its_readers_read(imori: Imori) -> None:
    host, port = imori.addresses[0]
    connection = stomp.Connection12([(host, port)])
    connection.connect("guest", "guest", wait=True)
    try:
        connection.subscribe("/topic/seen", id="1")
        check(read(imori, "/varz"), VARZ)
        connz = read(imori, "/connz?limit=1024&sort=cid&subs=1")
        check(connz, CONNZ)
        (shown,) = connz["connections"]
        check(shown, CONNECTION)
        check(shown, {name: kind for name, kind in OPTIONAL.items() if name in shown})
        check(read(imori, "/subsz"), SUBSZ)
        assert read(imori, "/healthz") == {"status": "ok"}
    finally:
        connection.disconnect()


def test_the_index_leads_to_every_path(imori: Imori) -> None:
    with urlopen(f"http://{_place(imori)}/", timeout=DEADLINE_S) as answer:
        page = answer.read().decode()
    paths = re.findall(r'href="([^"]+)"', page)
    # This path is for Prometheus, in a format of its own.
    paths.remove("metrics")
    for path in paths:
        assert read(imori, f"/{path}")


@pytest.mark.skipif(shutil.which("nats-top") is None, reason="nats-top is not installed")
def test_nats_top_shows_the_connections(imori: Imori) -> None:
    host, port = imori.addresses[0]
    connection = stomp.Connection12([(host, port)])
    connection.connect("guest", "guest", wait=True)
    try:
        assert imori.monitor is not None
        command = ["nats-top", "-m", str(imori.monitor[1]), "-o", "-", "-n", "10"]
        shown = subprocess.run(
            command, capture_output=True, text=True, timeout=DEADLINE_S, check=True
        )
    finally:
        connection.disconnect()
    assert "Connections Polled: 1" in shown.stdout
    assert re.search(r"127\.0\.0\.1:\d+ +1 ", shown.stdout), shown.stdout
