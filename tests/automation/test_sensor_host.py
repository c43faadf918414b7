"""The host of sensors, spoken to as the engine does, in a Python without `eventlet`."""

import array
import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from imori_host.frames import Channel

from automation.sources import SOURCES

HEAD = """
import hashlib, subprocess, threading, time
from st2reactor.sensor.base import PollingSensor, Sensor

class Base:
    def setup(self):
        pass
    def cleanup(self):
        self.sensor_service.set_value("cleaned", "up")
    def add_trigger(self, trigger):
        self.sensor_service.dispatch("p.t", {"added": trigger["id"]})
    def update_trigger(self, trigger):
        pass
    def remove_trigger(self, trigger):
        self.sensor_service.dispatch("p.t", {"removed": trigger["id"]})
"""


class Host:
    """A sensor in its process, and the engine's ends of what it reads and writes."""

    def __init__(self, folder: Path, source: str) -> None:
        file = folder / "sensors/tried.py"
        file.parent.mkdir()
        file.write_text(f"{HEAD}\nclass Tried(Base, Sensor):\n{source}")
        self.stack = contextlib.ExitStack()
        self.socket, their_commands = socket.socketpair()
        self.asking, their_questions = socket.socketpair()
        their_lifeline, lifeline = os.pipe()
        self.lifeline: int | None = lifeline
        rights = array.array("i", [their_questions.fileno(), their_lifeline])
        self.socket.sendmsg([b"d"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
        with their_commands, their_questions:
            self.process = subprocess.Popen(
                [sys.executable, "-u", str(SOURCES / "imori_host/sensor.py"), str(folder)],
                stdin=their_commands.fileno(),
                stderr=subprocess.PIPE,
                env={"PYTHONDONTWRITEBYTECODE": "1"},
                process_group=0,
            )
        os.close(their_lifeline)
        self.stack.enter_context(self.socket)
        self.stack.enter_context(self.asking)
        self.stack.callback(self.leave)
        self.commands = Channel(self.socket.fileno())
        self.questions = Channel(self.asking.fileno())
        self.asking.settimeout(60)
        request: dict[str, object] = {
            "pack": "p",
            "class_name": "Tried",
            "entry_point": str(file),
            "config": {},
            "poll_interval": None,
            "log_level": "info",
            "frame_limit": 1000,
            "triggers": [],
        }
        self.commands.send(json.dumps(request).encode())

    def question(self) -> dict[str, Any]:
        """The next question, which waits for its answer."""
        assert select.select([self.asking], [], [], 60)[0]
        question = self.questions.receive()
        assert question is not None
        return question

    def answer(self, **answer: object) -> None:
        """Answers the last question."""
        self.questions.send(json.dumps(answer or {"answer": None}).encode())

    def expect(self, **expected: object) -> None:
        """Answers a question that has these fields."""
        question = self.question()
        assert {name: question.get(name) for name in expected} == expected
        self.answer()

    def leave(self) -> None:
        """Closes the engine's end of the pipe, as a process does that ends."""
        if self.lifeline is not None:
            os.close(self.lifeline)
            self.lifeline = None

    def end(self) -> None:
        """Ends all processes."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()
        self.stack.close()


Start = Callable[[str], Host]

# It takes notice of nothing that interrupts it.
DEAF = """
        while True:
            try: time.sleep(600)
            except BaseException: pass
"""


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a sensor with these methods."""
    with contextlib.ExitStack() as stack:

        def start(source: str) -> Host:
            host = Host(tmp_path, source)
            stack.callback(host.end)
            return host

        yield start


def test_triggers_come_and_go_while_run_blocks(start: Start) -> None:
    host = start("    def run(self): time.sleep(600)")
    host.expect(kind="ready")
    for identity in ["1", "2"]:
        host.commands.send(json.dumps({"add": {"id": identity, "ref": "p.t"}}).encode())
        host.expect(kind="dispatch", payload={"added": identity})
    host.commands.send(b'{"remove": "1"}')
    host.expect(kind="dispatch", payload={"removed": "1"})


def test_a_sensor_that_is_told_to_end_reads_its_answer_and_cleans_up(start: Start) -> None:
    host = start("    def run(self):\n        while True: self.sensor_service.dispatch('p.t')")
    host.expect(kind="ready")
    host.expect(kind="dispatch", payload=None)
    host.question()
    host.process.send_signal(signal.SIGTERM)
    host.answer()
    host.expect(kind="datastore", operation="set", name="p.Tried:cleaned", value="up")
    assert host.process.wait(60) == 0


@pytest.mark.parametrize(
    "run",
    [
        "time.sleep(600)",
        DEAF,
        "hashlib.pbkdf2_hmac('sha256', b'a', b'b', (1 << 31) - 1)",
    ],
)
def test_a_sensor_that_is_asked_to_stop_cleans_up_whatever_it_does(start: Start, run: str) -> None:
    host = start(f"    def run(self): {run}")
    host.expect(kind="ready")
    host.commands.send(b'{"stop": {}}')
    host.expect(kind="datastore", operation="set", name="p.Tried:cleaned", value="up")
    assert host.process.wait(60) == 0


def test_a_sensor_busy_in_c_code_dies_with_its_engine_and_so_does_its_child(start: Start) -> None:
    host = start(
        "    def run(self):\n"
        "        child = subprocess.Popen(['sleep', '600'])\n"
        "        self.sensor_service.dispatch('p.t', {'child': child.pid})\n"
        "        hashlib.pbkdf2_hmac('sha256', b'a', b'b', (1 << 31) - 1)\n"
    )
    host.expect(kind="ready")
    child = os.pidfd_open(host.question()["payload"]["child"])
    host.answer()
    host.leave()
    assert host.process.wait(60) == -signal.SIGKILL
    assert select.select([child], [], [], 60)[0]
    os.close(child)


def test_a_sensor_whose_run_leaves_threads_behind_goes_on(start: Start) -> None:
    host = start(
        "    def later(self):\n"
        "        self.sensor_service.dispatch('p.t', {'later': True})\n"
        "    def run(self): threading.Thread(target=self.later).start()"
    )
    host.expect(kind="ready")
    host.expect(kind="dispatch", payload={"later": True})
    host.expect(kind="datastore", operation="set")
    assert host.process.wait(60) == 0


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ({"unknown": "trigger `p.t` is unknown"}, "ValueError: trigger `p.t` is unknown"),
        ({"error": "the disk is full"}, "RuntimeError: the disk is full"),
    ],
)
def test_an_event_that_is_not_stored_raises(
    start: Start, answer: dict[str, str], told: str
) -> None:
    host = start("    def run(self): self.sensor_service.dispatch('p.t')")
    host.expect(kind="ready")
    host.question()
    host.answer(**answer)
    host.expect(kind="datastore", operation="set")
    assert host.process.wait(60) == 1
    assert host.process.stderr is not None
    assert told in host.process.stderr.read().decode()


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("    def run(self): raise KeyError('k')", "KeyError: 'k'"),
        ("    def setup(self): raise KeyError('k')", "has failed"),
        ("    def ru(self): pass", "lacks the method `run`"),
        ("    import nothing_of_this_name", "No module named"),
    ],
)
def test_a_sensor_that_fails_says_why(start: Start, source: str, told: str) -> None:
    host = start(source)
    while select.select([host.asking], [], [], 60)[0]:
        if host.questions.receive() is None:
            break
        host.answer()
    assert host.process.wait(60) == 1
    assert host.process.stderr is not None
    assert told in host.process.stderr.read().decode()
