"""Every rule of SECURITY.md is cited by a test that shows it."""

import re
from collections.abc import Iterator
from pathlib import Path

from harness.imori import REPOSITORY

RULE = re.compile(r"^\| ([A-Z]+-\d\d) \|", re.MULTILINE)


def test_every_rule_is_cited_by_a_test() -> None:
    rules = set(RULE.findall((REPOSITORY / "SECURITY.md").read_text()))
    assert len(rules) > 20
    cited = {rule for text in texts() for rule in rules if rule in text}
    assert sorted(rules - cited) == []


def texts() -> Iterator[str]:
    """Yields the text of all tests, and of no other code."""
    for file in (REPOSITORY / "crates").rglob("*.rs"):
        parts = file.relative_to(REPOSITORY).parts
        if "target" in parts:
            continue
        text = file.read_text()
        is_test = "tests" in parts or file.name == "tests.rs"
        yield text if is_test else text.partition("#[cfg(test)]")[2]
    for file in (REPOSITORY / "crates").rglob("*.talk"):
        yield file.read_text()
    for file in (REPOSITORY / "fuzz/fuzz_targets").glob("*.rs"):
        yield file.read_text()
    here = Path(__file__)
    for file in (REPOSITORY / "tests").rglob("test_*.py"):
        if file != here:
            yield file.read_text()
