"""Checks that the tree is readable to newcomers: names of types, length of sentences.

The lists below hold all known exceptions; they should become empty.
"""

from __future__ import annotations

import doctest
import re
import sys
from pathlib import Path

# Crates whose public types still use a retired word.
OLD_WORDS: set[str] = set()

# Pages whose average sentence is too long.
WORDY_PAGES: set[str] = set()

# The page that lists the retired words.
WORDS_PAGE = Path("docs/internals/words.md")

SENTENCE_WORDS_MAX = 25

PUBLIC_TYPE = re.compile(r"^\s*pub(?:\([a-z]+\))? (?:struct|enum|trait|type) (\w+)", re.MULTILINE)
PART = re.compile(r"[A-Z][a-z0-9]*")
RETIRED_ROW = re.compile(r"- `(\w+)`( alone)? → (.+)")


def retired_words(page: str) -> dict[str, tuple[bool, str]]:
    """The retired words, whether only a type of just this name is meant, and the words to use.

    >>> retired_words("## Retired words\\n- `Census` → manifest\\n- `Letter` alone → batch\\n\\n## Next\\n- `No` → x")
    {'Census': (False, 'manifest'), 'Letter': (True, 'batch')}
    """
    section = page.partition("## Retired words\n")[2].partition("\n## ")[0]
    rows = map(RETIRED_ROW.match, section.splitlines())
    return {row.group(1): (bool(row.group(2)), row.group(3)) for row in rows if row}


def retired_types(text: str, retired: dict[str, tuple[bool, str]]) -> list[tuple[str, str]]:
    """The public types that are called by a retired word, with the word to use.

    >>> words = {"Census": (False, "manifest"), "Letter": (True, "batch")}
    >>> retired_types("pub struct PageCensus;\\npub enum DeadLetter {}\\npub type Letter = u8;\\nstruct Census;", words)
    [('PageCensus', 'manifest'), ('Letter', 'batch')]
    """
    found = []
    for name in PUBLIC_TYPE.findall(text):
        for part in PART.findall(name):
            is_alone, use = retired.get(part, (True, ""))
            if use and (not is_alone or part == name):
                found.append((name, use))
    return found


def mean_words(page: str) -> float:
    """How many words a sentence of a page has on average; code, tables, headings and links' targets left out.

    >>> mean_words("# Title\\nOne two three.\\nFour five.\\n\\n| a | table |\\n```sh\\nrun\\n```\\n- An item is one\\n")
    3.0
    """
    text = re.sub(r"^```.*?^```", "", page, flags=re.DOTALL | re.MULTILINE)
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith(("#", "|"))]
    joined = " ".join(re.sub(r"^\s*(?:[-*]|\d+\.) ", "\0", line) for line in lines)
    joined = re.sub(r"\]\([^)]*\)", "]", joined)
    sentences = [len(words) for part in re.split(r"(?<=[.!?]) |\0", joined) if (words := part.split())]
    return sum(sentences) / max(len(sentences), 1)


def check_crate(crate: Path, retired: dict[str, tuple[bool, str]]) -> list[str]:
    """Returns complaints about one crate."""
    complaints = []
    files = {file: file.read_text(encoding="utf-8") for file in sorted(crate.rglob("*.rs")) if file.is_file()}
    for file, text in files.items():
        if crate.name not in OLD_WORDS:
            found = retired_types(text, retired)
            complaints += [f"{file}: `{name}` is called by a retired word; use {use}" for name, use in found]
    return complaints


def check_page(page: Path) -> list[str]:
    """Returns the complaint about one page, if there is one."""
    words = mean_words(page.read_text(encoding="utf-8"))
    if words <= SENTENCE_WORDS_MAX or page.as_posix() in WORDY_PAGES:
        return []
    return [f"{page}: {words:.1f} words a sentence on average, more than {SENTENCE_WORDS_MAX}"]


def check_prose() -> list[str]:
    """Returns complaints about the whole repository, and about this file if its own examples fail."""
    failed = doctest.testmod(sys.modules[__name__]).failed
    retired = retired_words(WORDS_PAGE.read_text(encoding="utf-8"))
    complaints = [f"ci/prose.py: {failed} of its own examples fail"] if failed else []
    if not retired:
        complaints.append(f"{WORDS_PAGE}: the list of retired words is empty")
    for crate in sorted(path for path in Path("crates").iterdir() if path.is_dir()):
        complaints += check_crate(crate, retired)
    for page in [*sorted(Path().glob("*.md")), *sorted(Path("docs").rglob("*.md"))]:
        complaints += check_page(page)
    return complaints
