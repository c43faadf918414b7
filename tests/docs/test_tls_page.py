"""The page about TLS: its commands, run one after another as a reader types them."""

import os
import re
import shlex
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from harness.deadline import DEADLINE_S, wait_for
from harness.imori import BINARY, REPOSITORY
from harness.page import Block, read

PAGE = read(REPOSITORY / "docs/guides/tls.md")
# Ports in the page's configuration and commands.
PORTS = ("61614", "5671", "15676", "15671", "4222")


def test_commands_of_the_page_do_what_it_says(tmp_path: Path) -> None:
    ports = {port: str(_free_port()) for port in PORTS}
    make, serve, respond, call, others = [_command(block.text, ports) for block in _blocks("sh")]
    (answer, *_) = [block.text for block in PAGE.blocks if "output" in block.marks]
    # The listeners without TLS are enabled as well.
    others_of = {
        "STOMP": "0",
        "AMQP": "0",
        "WS": "0",
        "NATS_MONITOR": "0",
        "ADMIN": "0",
        "AUTOMATION": "0",
    }
    others_of["NATS"] = ports["4222"]
    environment = dict(os.environ)
    for listener, port in others_of.items():
        environment[f"IMORI__LISTENERS__{listener}"] = f"127.0.0.1:{port}"
    environment["IMORI__JOURNAL__FILE_BYTES"] = "20MiB"
    environment["IMORI__BROKER__DATA_DIR"] = str(tmp_path / "data")

    def run(command: str) -> str:
        return subprocess.run(
            ["bash", "-euo", "pipefail", "-c", command],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=True,
        ).stdout

    run(make)
    written = tmp_path / "imori.toml"
    written.write_text(_with_ports(written.read_text(), ports))
    with ExitStack() as stack:
        broker = stack.enter_context(_running(serve, tmp_path, environment))
        wait_for(lambda: _listens(int(ports["61614"])) or broker.poll() is not None)
        assert broker.poll() is None
        stack.enter_context(_running(respond, tmp_path, environment))
        assert run(call) == answer
        assert "amqp/ssl" in run(others)
        broker.send_signal(signal.SIGTERM)
        assert broker.wait(DEADLINE_S) == 0


def _blocks(language: str) -> list[Block]:
    return [block for block in PAGE.blocks if block.language == language]


def _command(text: str, ports: Mapping[str, str]) -> str:
    return _with_ports(text.replace("target/release/imori", BINARY), ports)


def _with_ports(text: str, ports: Mapping[str, str]) -> str:
    for usual, free in ports.items():
        text = re.sub(rf"\b{usual}\b", free, text)
    return text


@contextmanager
def _running(
    command: str, folder: Path, environment: Mapping[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    """Starts a command of the page, and ends it afterwards."""
    words = shlex.split(command)
    with subprocess.Popen(words, cwd=folder, env=environment) as process:
        try:
            yield process
        finally:
            process.kill()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def _listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0
