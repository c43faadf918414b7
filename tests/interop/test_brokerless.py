"""`imori-brokerless rpc` with brokerless peers, implemented with libzmq and gRPC."""

import json
import os
import re
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.deadline import DEADLINE_S
from harness.imori import BINARY, REPOSITORY

BROKERLESS = os.environ.get("IMORI_BROKERLESS_BIN", str(Path(BINARY).with_name("imori-brokerless")))
PEERS = REPOSITORY / ".tools/peers"
RESPONDERS = {
    "zmq-rep": ("zeromq-responder", "rep"),
    "zmq-router": ("zeromq-responder", "router"),
    "grpc": ("grpc-responder",),
}
LEDGER = ("lost", "duplicated", "altered", "foreign", "timeouts")


@contextmanager
def responder(scheme: str) -> Iterator[str]:
    """Runs the responder for `scheme`; yields its URL."""
    program, *arguments = RESPONDERS[scheme]
    if not (PEERS / program).exists():
        pytest.skip(f"run `bench/brokerless/build.sh .tools/peers`: `{program}` is missing")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [str(PEERS / program), *arguments, str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield f"{scheme}://127.0.0.1:{port}"
        finally:
            process.kill()


def bench(url: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [BROKERLESS, "rpc", "--url", url, "--json", "-", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S)


@pytest.mark.parametrize(
    ("scheme", "arguments"),
    [
        ("zmq-rep", ["--requests", "2k"]),
        ("zmq-rep", ["--requests", "2k", "--requesters", "5"]),
        ("zmq-router", ["--requests", "20k", "--depth", "64"]),
        ("zmq-router", ["--requests", "20k", "--depth", "all"]),
        ("zmq-router", ["--requests", "2k", "--size", "20000", "--depth", "16"]),
        ("grpc", ["--requests", "2k"]),
        ("grpc", ["--requests", "2k", "--requesters", "5"]),
        ("grpc", ["--requests", "20k", "--depth", "2000"]),
        ("grpc", ["--requests", "2k", "--size", "16379", "--depth", "64"]),
        ("grpc", ["--requests", "500", "--size", "100000", "--depth", "16"]),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_every_call_is_answered_once_and_right(scheme: str, arguments: list[str]) -> None:
    with responder(scheme) as url:
        done = bench(url, *arguments)
    assert done.returncode == 0, done.stderr
    ledger = json.loads(done.stdout)["ledger"]
    assert ledger["good"] == ledger["sent"] > 0
    assert [ledger[name] for name in LEDGER] == [0] * len(LEDGER)


@pytest.mark.parametrize(
    ("scheme", "url", "told"),
    [
        ("zmq-rep", "zmq-router", "the peer is a `REP` socket"),
        ("zmq-router", "zmq-rep", "the peer is a `ROUTER` socket"),
        ("grpc", "zmq-rep", "not ZMTP"),
        ("grpc", "grpc", "UNIMPLEMENTED"),
    ],
)
def test_the_wrong_peer_is_told_at_once(scheme: str, url: str, told: str) -> None:
    method = "/nobody.Has/This" if scheme == url else ""
    with responder(scheme) as right:
        done = bench(re.sub("^[a-z-]+", url, right) + method)
    assert done.returncode == 1
    assert told in done.stderr


def test_a_port_that_speaks_something_else_is_told() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        command = [BROKERLESS, "rpc", "--url", f"grpc://127.0.0.1:{port}", "--requests", "1"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            link, _ = listener.accept()
            with link:
                link.sendall(b"HTTP/1.1 505 HTTP Version Not Supported\r\n\r\n")
                _, errors = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 1
    assert "HTTP/2 with the peer fails" in errors
