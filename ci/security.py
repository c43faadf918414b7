#!/usr/bin/env python3
"""Writes docs/security.md: each rule of SECURITY.md with the tests that show it.

A test shows a rule by citing its id in a comment, a docstring or its file's first lines.
With `--check` nothing is written; the exit code says whether the page is that of this tree.
"""

import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/security.md"
RULE = re.compile(r"^\| ([A-Z]+-\d\d) \| (.*) \|$", re.MULTILINE)
CITED = re.compile(r"\b(?:LIM|AUTH|XPI|OPS|WEB|AUTO|GATE|ROOM)-\d\d\b")
TEST = {
    ".rs": re.compile(r"^\s*(?:async )?fn (\w+)\("),
    ".py": re.compile(r"^def (test_\w+)\("),
}
# Lines between a citation above a test and the test.
NEAR = 12

HEAD = """\
# Security rules and the tests that show them

This page is made from the tests by `ci/security.py`; a test fails when it is stale.
The rules themselves, and how to report a weakness, stand in [SECURITY.md](../SECURITY.md).

| rule | shown by |
|---|---|
"""


def test_files() -> Iterator[tuple[Path, int]]:
    """Gives each file with tests, and the line where its tests begin."""
    for path in sorted((ROOT / "crates").rglob("*.rs")):
        parts = path.relative_to(ROOT).parts
        if "target" in parts:
            continue
        if "tests" in parts or path.name == "tests.rs":
            yield path, 0
            continue
        lines = path.read_text("utf-8").splitlines()
        if "#[cfg(test)]" in lines:
            yield path, lines.index("#[cfg(test)]")
    yield from ((path, 0) for path in sorted((ROOT / "crates").rglob("*.talk")))
    yield from ((path, 0) for path in sorted((ROOT / "fuzz/fuzz_targets").glob("*.rs")))
    yield from ((path, 0) for path in sorted((ROOT / "tests").rglob("test_*.py")))


def name_of(lines: list[str], cited: int, suffix: str) -> str | None:
    """Returns the test that cites a rule in this line; `None` if the file cites it as a whole."""
    pattern = TEST.get(suffix)
    if pattern is None:
        return None
    # In Python, the citation is in the docstring, below the name of the test.
    if suffix == ".py":
        above = [pattern.match(line) for line in lines[max(0, cited - 2) : cited + 1]]
        if found := [match for match in above if match]:
            return found[-1][1]
    for line in lines[cited : cited + NEAR]:
        if match := pattern.match(line):
            return match[1]
    return None


def shown() -> dict[str, dict[str, set[str]]]:
    """Returns for each rule the files that show it, with their tests."""
    rules: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for path, begin in test_files():
        if path.name == "test_rules.py":
            continue
        lines = path.read_text("utf-8").splitlines()
        for number, line in enumerate(lines[begin:], begin):
            for rule in CITED.findall(line):
                name = name_of(lines, number, path.suffix)
                rules[rule][str(path.relative_to(ROOT))].update([name] if name else [])
    return rules


def page() -> str:
    """Returns the page for this tree."""
    rules = shown()
    rows = []
    for rule, _ in RULE.findall((ROOT / "SECURITY.md").read_text("utf-8")):
        places = []
        for file, names in sorted(rules[rule].items()):
            tests = ", ".join(f"`{name}`" for name in sorted(names))
            link = f"[{Path(file).name}](../{file})"
            places.append(f"{link}: {tests}" if tests else link)
        rows.append(f"| {rule} | {'; '.join(places)} |\n")
    return HEAD + "".join(rows)


def main() -> int:
    """Writes the page or checks it."""
    text = page()
    if "--check" in sys.argv[1:]:
        if PAGE.exists() and PAGE.read_text("utf-8") == text:
            return 0
        print("docs/security.md is stale; run `python3 ci/security.py`")
        return 1
    PAGE.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
