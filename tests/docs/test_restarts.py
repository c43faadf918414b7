"""The page on the first RPC, with a broker that restarts: its code behaves as its table says."""

import signal
import socket
import subprocess
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from harness.broker import broker_of
from harness.deadline import DEADLINE_S
from harness.example import command_of, environment_of, run, start
from harness.imori import BINARY, REPOSITORY, Imori, running_imori
from harness.page import read
from harness.raw import RawClient

PAGE = read(REPOSITORY / "docs/guides/first-rpc.md")
# In the format of the command line.
_LONG = f"{DEADLINE_S:.0f}s"
RESPONDERS = [block for block in PAGE.blocks if "background" in block.marks]


def test_responders_of_the_page_outlive_the_broker(tmp_path: Path) -> None:
    address = f"127.0.0.1:{_free_port()}"
    with ExitStack() as stack:
        with running_imori(tmp_path, listen=(address,)) as imori:
            environment = environment_of(imori)
            for block in RESPONDERS:
                start(stack, command_of(block, imori), environment)
            _ask_both(environment)
            assert imori.stop() == 0
        with running_imori(tmp_path, listen=(address,)):
            _ask_both(environment)
        # The broker was killed at the end of the previous block.
        with running_imori(tmp_path, listen=(address,)):
            _ask_both(environment)


@pytest.mark.parametrize("end", [Imori.stop, lambda imori: imori.process.kill()])
def test_waiting_caller_and_responder_of_the_command_line_end_with_code_1(
    end: Callable[[Imori], object], tmp_path: Path
) -> None:
    with running_imori(tmp_path) as imori, ExitStack() as stack:
        commands = [
            [BINARY, "respond", "/queue/add-one", "--add-one"],
            [BINARY, "call", "/queue/nobody-answers", "41", "--timeout", _LONG],
        ]
        processes = [
            stack.enter_context(
                subprocess.Popen(command, env=environment_of(imori), stderr=subprocess.DEVNULL)
            )
            for command in commands
        ]
        run([BINARY, "call", "/queue/add-one", "41"], environment_of(imori), "a call")
        with RawClient(broker_of(imori)) as client:
            client.login()
            client.send("SUBSCRIBE", {"destination": "/queue/nobody-answers", "id": "s"})
            assert client.read().body == b"41", "the request is there"
        end(imori)
        assert [process.wait(DEADLINE_S) for process in processes] == [1, 1]


def test_persistent_request_comes_again_and_its_reply_vanishes(tmp_path: Path) -> None:
    with running_imori(tmp_path) as imori, RawClient(broker_of(imori)) as client:
        client.login()
        for headers in ({"persistent": "true"}, {}):
            queue = {"destination": "/queue/persistent" if headers else "/queue/transient"}
            client.send("SEND", queue | {"reply-to": "/temp-queue/r", "receipt": "r"} | headers)
            assert client.read()["receipt-id"] == "r"
        imori.process.send_signal(signal.SIGKILL)
        imori.process.wait(DEADLINE_S)
    with running_imori(tmp_path) as imori, RawClient(broker_of(imori)) as client:
        client.login()
        client.send("SUBSCRIBE", {"destination": "/queue/transient", "id": "t"})
        client.send("SUBSCRIBE", {"destination": "/queue/persistent", "id": "p"})
        request = client.read()
        assert request["subscription"] == "p", "the transient one is lost"
        client.send("SEND", {"destination": request["reply-to"], "receipt": "reply"})
        assert client.read()["receipt-id"] == "reply"


def _ask_both(environment: dict[str, str]) -> None:
    for destination, reply in (("/queue/upper", "NEWT\n"), ("/queue/reverse", "twen\n")):
        command = [BINARY, "call", destination, "newt", "--timeout", _LONG]
        assert run(command, environment, destination) == reply


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port
