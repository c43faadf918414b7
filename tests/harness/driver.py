"""Programs that use one client library each, and run one scenario each time they are started.

    PROGRAM SCENARIO URL NAME

A scenario ends well with status 0. It prints one word a line when the test has to do something.
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
    """The program for one client library."""

    client: str
    command: tuple[str, ...]
    # The first of these that is missing makes the tests of this client be skipped.
    needs: tuple[Path, ...]
    source: Path
    # What a scenario looks like in the source.
    scenario: str

    def missing(self) -> Path | None:
        """Returns what has to be installed first."""
        return next((path for path in self.needs if not path.exists()), None)

    def need(self, scenario: str, not_offered: Mapping[str, set[str]]) -> None:
        """Skips a scenario that its library does not offer or that cannot be run here."""
        if scenario in not_offered.get(self.client, set()):
            pytest.skip(f"{self.client} does not offer it")
        if (missing := self.missing()) is not None:
            pytest.skip(f"run `make setup`: `{missing}` is missing")

    def scenarios(self) -> list[str]:
        """Returns the scenarios that the program knows."""
        return re.findall(self.scenario, self.source.read_text(), re.MULTILINE)

    @contextmanager
    def running(
        self, scenario: str, url: str, name: str, environment: Mapping[str, str] | None = None
    ) -> Iterator["Run"]:
        """Starts a scenario with more in its environment; it has ended afterwards."""
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
        """Runs a scenario that needs nobody."""
        with self.running(scenario, url, name, environment) as run:
            run.end()


@dataclass(frozen=True)
class Run:
    """A scenario under way."""

    process: subprocess.Popen[str]
    lines: SimpleQueue[str | None]

    def wait_for(self, word: str) -> None:
        """Returns once the program has printed `word`."""
        assert self.lines.get(timeout=DEADLINE_S) == word

    def end(self) -> None:
        """Returns once the scenario has ended well."""
        assert self.process.wait(DEADLINE_S) == 0, "see what the program said"
