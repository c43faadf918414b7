"""The host of actions, spoken to as the engine does, and left alone as by one that died."""

import array
import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from imori_host.frames import Channel

from automation.sources import SOURCES

ACTION = """
import os, subprocess
from st2common.runners.base_action import Action

class Say(Action):
    def run(self, gate):
        print("before", os.getppid())
        with open(gate) as file:
            file.read()
        print("after")
        return "done"
"""


class Engine:
    """The engine's side of the sockets."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.stack = contextlib.ExitStack()
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self.python = subprocess.Popen(
                [sys.executable, "-u", str(SOURCES / "imori_host/zygote.py"), str(folder)],
                stdin=theirs.fileno(),
                env={"PYTHONDONTWRITEBYTECODE": "1"},
            )
        self.control.settimeout(60)

    def fork(self) -> "Forked":
        """A process that waits for its request."""
        reader, writer = os.pipe()
        own, theirs = socket.socketpair()
        descriptors = array.array("i", [writer, writer, theirs.fileno()])
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptors)]
        self.control.sendmsg([b'{"run": 7}'], rights)
        os.close(writer)
        theirs.close()
        return self.stack.enter_context(Forked(self.report()["pid"], reader, own))

    def report(self) -> dict[str, Any]:
        report: dict[str, Any] = json.loads(self.control.recv(4096))
        assert report.pop("id") == 7
        return report

    def request(self, **changes: Any) -> bytes:  # noqa: ANN401
        request = {
            "pack": "tests",
            "entry_point": str(self.folder / "say.py"),
            "parameters": {"gate": str(self.folder / "gate")},
            "config": {},
            "user": "stanley",
            "execution_id": "5f",
            "log_level": "debug",
            "environment": {},
            "working_folder": "/",
            "result_file": str(self.folder / "result"),
            "started_file": str(self.folder / "started"),
            "result_limit": 1_000_000,
        }
        return json.dumps(request | changes).encode()

    def die(self) -> None:
        """Closes all its descriptors, as the system does at its end."""
        self.stack.close()
        self.control.close()

    def end(self) -> None:
        """Dies; the Python ends when it has noticed and its actions have ended."""
        self.die()
        assert self.python.wait(60) in (0, -signal.SIGKILL)


class Forked:
    """The engine's side of a process: its number, output and socket."""

    def __init__(self, pid: int, output: int, own: socket.socket) -> None:
        self.process = os.pidfd_open(pid)
        self.output = output
        self.own = own

    def __enter__(self) -> "Forked":
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.output)
        self.own.close()

    def line(self) -> bytes:
        """The next line of output; each part of it may be written on its own."""
        line = b""
        while not line.endswith(b"\n"):
            line += os.read(self.output, 1)
        return line

    def send(self, request: bytes) -> None:
        Channel(self.own.fileno()).send(request)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    (tmp_path / "say.py").write_text(ACTION)
    os.mkfifo(tmp_path / "gate")
    engine = Engine(tmp_path)
    yield engine
    engine.end()


@pytest.mark.parametrize("is_python_killed", [False, True])
def test_an_action_outlives_the_engine(engine: Engine, is_python_killed: bool) -> None:
    forked = engine.fork()
    forked.send(engine.request())
    assert forked.line() == f"before {engine.python.pid}\n".encode()
    if is_python_killed:
        engine.python.kill()
        engine.python.wait(60)
    engine.die()
    (engine.folder / "gate").write_text("open")
    assert select.select([forked.process], [], [], 60)[0]
    assert json.loads((engine.folder / "result").read_bytes()) == {
        "kind": "result",
        "execution_id": "5f",
        "exit_code": 0,
        "status": None,
        "result": "done",
    }
    os.close(forked.process)


def test_a_process_whose_request_never_comes_ends(engine: Engine) -> None:
    engine.fork().own.close()
    assert engine.report() == {"status": 1}


def test_a_signal_ends_an_action_and_its_status_is_told(engine: Engine) -> None:
    forked = engine.fork()
    forked.send(engine.request())
    assert forked.line().startswith(b"before")
    engine.control.send(json.dumps({"id": 7, "signal": signal.SIGTERM}).encode())
    assert engine.report() == {"status": -signal.SIGTERM}
    assert forked.own.recv(1) == b""


def test_an_order_without_descriptors_is_refused(engine: Engine) -> None:
    engine.control.send(b'{"run": 7}')
    assert engine.report() == {"error": "the engine sent no descriptors"}


def test_a_result_beyond_the_limit_is_refused(engine: Engine) -> None:
    forked = engine.fork()
    (engine.folder / "say.py").write_text(
        "class A:\n    def __init__(self, **_): pass\n    def run(self): return 'x' * 200\n"
    )
    forked.send(engine.request(parameters={}, result_limit=100))
    assert engine.report() == {"status": 1}
    assert b"at most 100 are kept" in forked.line()
    frame = Channel(forked.own.fileno()).receive()
    assert frame == {"kind": "result", "execution_id": "5f", "exit_code": 1}
