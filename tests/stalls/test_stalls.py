"""Stalls with known causes, compared with the load tool's verdicts.

`STALL_CAUSES` sets the minimum number of causes; `-s` shows the result of each.
Causes that this machine does not allow are skipped with the reason; others take their share.
"""

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from harness.stalls import arenas, means
from harness.stalls.arenas import Plan
from harness.stalls.score import SEEN_FROM_S, Score

CAUSES = int(os.environ.get("STALL_CAUSES", "44"))

# Shares of the kinds, of ten causes. Kinds that run in parallel hardly affect each other; the kind
# that takes the CPUs away runs alone.
SHARES = {
    "processes": 3.6,
    "journal": 3.0,
    "freezing": 0.8,
    "quota": 0.8,
    "way": 0.9,
    "packets": 0.9,
}
TURNS = [["processes"], ["journal", "regular"], ["freezing", "quota", "way", "packets"]]

EVERY_S = 2.0

# Longer than a run of all causes.
pytestmark = [pytest.mark.timeout(600 + 3 * CAUSES), pytest.mark.xdist_group("stalls")]


class Results:
    """The results of all runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.reasons = {
            name: reason
            for name, reason in {
                "freezing": means.no_file_system(folder),
                "packets": means.no_network(),
                "quota": means.no_quota(),
            }.items()
            if reason is not None
        }
        self.scores: dict[str, Score] = {}
        self.regular: dict[str, Any] = {}
        shares = {name: share for name, share in SHARES.items() if name not in self.reasons}
        total = sum(shares.values())
        self.counts = {name: round(CAUSES * share / total + 0.5) for name, share in shares.items()}

    def run(self) -> None:
        """Runs everything, in parallel where possible."""
        with ThreadPoolExecutor() as pool:
            for names in TURNS:
                running = {
                    name: pool.submit(self._task(name))
                    for name in names
                    if name not in self.reasons
                }
                for name, future in running.items():
                    self._take(name, future)

    def _task(self, name: str) -> Callable[[], Any]:
        folder = self.folder / name
        folder.mkdir()
        if name == "regular":
            return lambda: arenas.regular(folder, EVERY_S, 0.1, 10)
        run: Callable[[Plan], Score] = getattr(arenas, name)
        return lambda: run(Plan(folder, self.counts[name], seed=CAUSES))

    def _take(self, name: str, future: Future[Any]) -> None:
        if name == "regular":
            self.regular = future.result()
        else:
            self.scores[name] = future.result()

    def total(self) -> Score:
        """The sum of all scores."""
        total = Score()
        for score in self.scores.values():
            total.add(score)
        return total


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """All runs, performed once."""
    results = Results(tmp_path_factory.mktemp("stalls"))
    results.run()
    return results


def test_stalls_are_found_and_their_causes_are_named(results: Results) -> None:
    total = results.total()
    print(f"\n{total}")
    assert total.labels >= min(40, CAUSES)
    assert total.recall >= 0.95, str(total)
    assert total.right >= 0.85, str(total)


def test_stalls_of_nobodys_doing_are_those_of_the_machine(results: Results) -> None:
    # A machine with other work has stalls of its own, caused by its CPUs or its disk.
    alarms = [
        alarm
        for alarm in results.total().alarms
        if alarm.verdict not in {"host-cpu", "disk"} and alarm.length >= SEEN_FROM_S
    ]
    assert len(alarms) <= max(2, CAUSES // 20), "\n".join(map(str, alarms))


@pytest.mark.parametrize("name", SHARES)
def test_no_kind_of_cause_is_lost_among_the_others(results: Results, name: str) -> None:
    if name in results.reasons:
        pytest.skip(results.reasons[name])
    score = results.scores[name]
    assert score.recall >= 0.8, str(score)
    assert score.right >= 0.6, str(score)


def test_cpus_are_taken_away_where_that_is_allowed(results: Results) -> None:
    if reason := means.no_real_time():
        pytest.skip(reason)
    hows = {label.how for label, _ in results.scores["processes"].seen}
    assert "CPUs taken" in hows


def test_the_period_is_found_within_5_percent(results: Results) -> None:
    stalls = results.regular["stalls"]
    assert stalls["period"] is not None, stalls
    assert stalls["period"]["period_s"] == pytest.approx(EVERY_S, rel=0.05)
    assert stalls["period"]["cycles"] >= 8
