"""Runs code blocks of the documents unchanged, except for ports and the binary."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from harness.deadline import DEADLINE_S
from harness.imori import BINARY, REPOSITORY, Imori
from harness.page import Block

# Java runs a single source file; the jars are those of `examples/patterns`.
_JAVA = f"""file=$(mktemp --suffix .java)
trap 'rm "$file"' EXIT
printf %s "$1" >"$file"
java -XX:TieredStopAtLevel=1 -cp '{REPOSITORY}/.tools/amqp10/patterns-jars/*' "$file"
"""

INTERPRETERS = {
    "sh": ["bash", "-euo", "pipefail", "-c"],
    "python": [sys.executable, "-W", "error", "-c"],
    "ruby": ["ruby", "-e"],
    "java": ["bash", "-euo", "pipefail", "-c", _JAVA, "java"],
}


def environment_of(imori: Imori) -> dict[str, str]:
    """Returns environment variables that make examples use this broker."""
    environment = {
        **os.environ,
        "IMORI_URL": f"stomp://guest:guest@127.0.0.1:{imori.addresses[0][1]}/",
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    if imori.admin is not None:
        environment["IMORI_ADMIN"] = f"http://127.0.0.1:{imori.admin[1]}"
        environment["IMORI__BROKER__DATA_DIR"] = str(imori.log.parent / "data")
    return environment


def command_of(block: Block, imori: Imori) -> list[str]:
    """Returns the command that runs a block against this broker."""
    text = block.text.replace("target/release/imori", BINARY)
    text = text.replace(".openstack/bin", str(REPOSITORY / ".tools/amqp/oslo/bin"))
    ports = {
        "61613": imori.addresses[0],
        "4222": imori.nats,
        "5672": imori.amqp,
        "8222": imori.monitor,
        "15672": imori.admin,
    }
    for usual, address in ports.items():
        if address is not None:
            text = re.sub(rf"\b{usual}\b", str(address[1]), text)
    return [*INTERPRETERS[block.language], text]


def run(command: list[str], environment: Mapping[str, str], place: str) -> str:
    """Runs a command that must succeed; returns its output."""
    ended = subprocess.run(
        command,
        cwd=REPOSITORY,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert ended.returncode == 0, f"{place} ends with {ended.returncode}: {ended.stderr}"
    return ended.stdout


def start(stack: ExitStack, command: list[str], environment: Mapping[str, str]) -> None:
    """Starts a command and ends it with `stack`."""
    process = stack.enter_context(
        subprocess.Popen(
            command,
            cwd=REPOSITORY,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
    )
    # The shell may have child processes.
    stack.callback(os.killpg, process.pid, signal.SIGKILL)
