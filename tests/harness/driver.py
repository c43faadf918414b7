"""Programs that each use one client library, and run one scenario per start.

PROGRAM SCENARIO URL NAME

A successful scenario exits with status 0. It prints a word on a line when the test must act.
"""

import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

import pytest

from harness.deadline import DEADLINE_S
from harness.process import lines_of


@dataclass(frozen=True)
class Driver:
    """The driver program of one client library."""

    client: str
    command: tuple[str, ...]
    # If one of these is missing, the tests of this client are skipped.
    needs: tuple[Path, ...]
    source: Path
    # The pattern of a scenario in the source.
    scenario: str

    def missing(self) -> Path | None:
        """Returns the first missing requirement."""
        return next((path for path in self.needs if not path.exists()), None)

    def need(self, scenario: str, not_offered: Mapping[str, set[str]]) -> None:
        """Skips a scenario that the library lacks or that cannot run here."""
        if scenario in not_offered.get(self.client, set()):
            pytest.skip(f"{self.client} does not offer it")
        if (missing := self.missing()) is not None:
            pytest.skip(f"run `make setup`: `{missing}` is missing")

    def scenarios(self) -> list[str]:
        """Returns the scenarios of the program."""
        return re.findall(self.scenario, self.source.read_text(), re.MULTILINE)

    @contextmanager
    def running(
        self, scenario: str, url: str, name: str, environment: Mapping[str, str] | None = None
    ) -> Iterator["Run"]:
        """Starts a scenario with additional environment variables, and ends it afterwards."""
        command = [*self.command, scenario, url, name]
        env = os.environ | (environment or {})
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) as process:
            assert process.stdout is not None
            try:
                yield Run(process, lines_of(process.stdout))
            finally:
                process.kill()

    def run(
        self, scenario: str, url: str, name: str, environment: Mapping[str, str] | None = None
    ) -> None:
        """Runs a scenario that needs no action of the test."""
        with self.running(scenario, url, name, environment) as run:
            run.end()


@dataclass(frozen=True)
class Run:
    """A running scenario."""

    process: subprocess.Popen[str]
    lines: SimpleQueue[str | None]

    def wait_for(self, word: str) -> None:
        """Returns once the program has printed `word`."""
        assert self.lines.get(timeout=DEADLINE_S) == word

    def end(self) -> None:
        """Returns once the scenario has ended, which must succeed."""
        assert self.process.wait(DEADLINE_S) == 0, "see what the program said"
