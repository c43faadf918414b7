"""Pages of Markdown: their fenced blocks, links and headings.

A block is run when its first line says so:

    ```sh run               runs to its end, which has to be a good one
    ```python run background  runs until the page ends
    ```text output          is what the block before it printed
"""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from harness.imori import REPOSITORY

_FENCE = re.compile(r"^```(.*)$")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_CODE = re.compile(r"`[^`]*`")
_HEADING = re.compile(r"^#{1,6} (.*)$")


@dataclass(frozen=True)
class Block:
    """A fenced block."""

    line: int
    language: str
    marks: frozenset[str]
    text: str


@dataclass(frozen=True)
class Page:
    """A parsed Markdown file."""

    path: Path
    blocks: tuple[Block, ...]
    prose: tuple[tuple[int, str], ...]

    @property
    def name(self) -> str:
        """Its path from the root of the repository."""
        return str(self.path.relative_to(REPOSITORY))

    @property
    def links(self) -> list[tuple[int, str]]:
        """Returns the targets of its links, each with its line."""
        return [
            (number, target)
            for number, line in self.prose
            for target in _LINK.findall(_CODE.sub("", line))
        ]

    @property
    def anchors(self) -> set[str]:
        """Returns the fragments of its headings."""
        headings = (_HEADING.match(line) for _, line in self.prose)
        return {_anchor(heading[1]) for heading in headings if heading}


def _anchor(heading: str) -> str:
    kept = re.sub(r"[^\w\- ]", "", heading.lower())
    return kept.replace(" ", "-")


def read(path: Path) -> Page:
    """Parses a file."""
    blocks: list[Block] = []
    prose: list[tuple[int, str]] = []
    opened: tuple[int, list[str]] | None = None
    lines: list[str] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        fence = _FENCE.match(line)
        if fence and opened is None:
            opened = (number, fence[1].split())
        elif fence and opened is not None:
            start, words = opened
            language, marks = (words[0], frozenset(words[1:])) if words else ("", frozenset())
            blocks.append(Block(start, language, marks, "".join(f"{line}\n" for line in lines)))
            opened, lines = None, []
        elif opened is not None:
            lines.append(line)
        else:
            prose.append((number, line))
    assert opened is None, f"{path}:{opened}: the block has no end"
    return Page(path, tuple(blocks), tuple(prose))


def pages() -> list[Page]:
    """Every page of the repository."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"]
    listed = subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True, text=True)
    paths = (REPOSITORY / name for name in listed.stdout.splitlines())
    return [read(path) for path in paths if path.exists()]
