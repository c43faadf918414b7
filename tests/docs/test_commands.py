"""The commands in the documents do what the pages say, against the real broker.

Blocks are run unchanged, except for ports and the path of the binary.
"""

from contextlib import ExitStack
from pathlib import Path

import pytest

from harness.example import INTERPRETERS, command_of, environment_of, run, start
from harness.imori import running_imori
from harness.page import Page, pages

RUN = [page for page in pages() if any("run" in block.marks for block in page.blocks)]


@pytest.mark.parametrize("page", RUN, ids=lambda page: page.name)
def test_commands_of_a_page_do_what_it_says(page: Page, tmp_path: Path) -> None:
    with (
        running_imori(tmp_path, nats=True, amqp=True, monitor=True, admin=True) as imori,
        ExitStack() as stack,
    ):
        environment = environment_of(imori)
        printed: str | None = None
        for block in page.blocks:
            place = f"{page.name}:{block.line}"
            if "output" in block.marks:
                assert printed is not None, f"{place}: no block before it is run"
                assert printed == block.text, f"{place}: it printed something else"
            elif "run" in block.marks:
                command = command_of(block, imori)
                if "background" in block.marks:
                    start(stack, command, environment)
                    printed = None
                else:
                    printed = run(command, environment, place)


def test_readme_is_among_the_pages_that_are_run() -> None:
    assert "README.md" in [page.name for page in RUN]


def test_every_language_is_run_somewhere() -> None:
    blocks = [block for page in RUN for block in page.blocks if "run" in block.marks]
    assert {block.language for block in blocks} == set(INTERPRETERS)
