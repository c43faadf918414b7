"""The commands in the documents do what they say, against the real broker.

What a page shows is run as it stands, but for the ports and the place of the binary.
"""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from harness.deadline import DEADLINE_S
from harness.imori import BINARY, REPOSITORY, Imori, running_imori
from harness.page import Block, Page, pages

INTERPRETERS = {
    "sh": ["bash", "-euo", "pipefail", "-c"],
    "python": [sys.executable, "-W", "error", "-c"],
    "ruby": ["ruby", "-e"],
}

RUN = [page for page in pages() if any("run" in block.marks for block in page.blocks)]


@pytest.mark.parametrize("page", RUN, ids=lambda page: page.name)
def test_commands_of_a_page_do_what_it_says(page: Page, tmp_path: Path) -> None:
    with running_imori(tmp_path, nats=True, monitor=True) as imori, ExitStack() as stack:
        environment = {
            **os.environ,
            "IMORI_URL": f"stomp://guest:guest@127.0.0.1:{imori.addresses[0][1]}/",
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        }
        printed: str | None = None
        for block in page.blocks:
            place = f"{page.name}:{block.line}"
            if "output" in block.marks:
                assert printed is not None, f"{place}: no block before it is run"
                assert printed == block.text, f"{place}: it printed something else"
            elif "run" in block.marks:
                command = _command(block, imori)
                if "background" in block.marks:
                    _start(stack, command, environment)
                    printed = None
                else:
                    printed = _run(command, environment, place)


def test_readme_is_among_the_pages_that_are_run() -> None:
    languages = {
        block.language
        for page in RUN
        if page.name == "README.md"
        for block in page.blocks
        if "run" in block.marks
    }
    assert languages == {"sh", "python", "ruby"}


def _command(block: Block, imori: Imori) -> list[str]:
    text = block.text.replace("target/release/imori", BINARY)
    ports = {"61613": imori.addresses[0], "4222": imori.nats, "8222": imori.monitor}
    for usual, address in ports.items():
        assert address is not None
        text = re.sub(rf"\b{usual}\b", str(address[1]), text)
    return [*INTERPRETERS[block.language], text]


def _run(command: list[str], environment: Mapping[str, str], place: str) -> str:
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


def _start(stack: ExitStack, command: list[str], environment: Mapping[str, str]) -> None:
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
    # The shell may have children.
    stack.callback(os.killpg, process.pid, signal.SIGKILL)
