"""Security rules that the code cites are documented."""

import re
import subprocess
import sys

from harness.imori import REPOSITORY

# A pattern that both git and Python understand.
_CITED = "(LIM|AUTH|XPI|OPS|WEB)-[0-9][0-9]"


def test_every_rule_that_is_cited_stands_in_security_md() -> None:
    command = ["git", "grep", "-hoE", _CITED, "--", "crates", "fuzz", "tests", "bench"]
    found = subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True, text=True)
    text = (REPOSITORY / "SECURITY.md").read_text("utf-8")
    written = {rule[0] for rule in re.finditer(_CITED, text)}
    assert sorted(set(found.stdout.split()) - written) == []


def test_an_id_stands_for_one_rule() -> None:
    text = (REPOSITORY / "SECURITY.md").read_text("utf-8")
    ids = re.findall(r"^\| ([A-Z]+-\d\d) \|", text, re.MULTILINE)
    assert len(ids) == len(set(ids))


def test_the_table_of_rules_and_tests_is_that_of_this_tree() -> None:
    checked = subprocess.run(
        [sys.executable, "ci/security.py", "--check"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
    )
    assert checked.returncode == 0, checked.stdout
