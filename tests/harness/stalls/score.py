"""Compares injected causes with the load tool's verdicts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

# Shorter injections need not be detected.
SEEN_FROM_S = 0.05

# Seconds after the end of a cause within which its stall may begin or continue.
AFTER_S = 0.1


@dataclass(frozen=True)
class Label:
    """An injected cause: its verdict, and its time in seconds since 1970."""

    verdict: str
    how: str
    begin: float
    end: float
    # Whether its effect outlasts it: a lost packet is retransmitted 200 ms later.
    is_lasting: bool = False

    @property
    def until(self) -> float:
        """Returns the time until which a stall is attributed to it."""
        return self.end + (1.5 if self.is_lasting else AFTER_S)


@dataclass(frozen=True)
class Found:
    """A detected stall."""

    verdict: str
    evidence: str
    begin: float
    end: float

    @property
    def length(self) -> float:
        """Returns its length in seconds."""
        return self.end - self.begin

    def overlap(self, label: Label) -> float:
        """Returns the overlap in seconds; negative if they are apart."""
        return min(self.end, label.until) - max(self.begin, label.begin - 0.02)


@dataclass
class Score:
    """Labels with the stalls assigned to them, and stalls without a label."""

    seen: list[tuple[Label, Found]] = field(default_factory=list)
    missed: list[Label] = field(default_factory=list)
    alarms: list[Found] = field(default_factory=list)

    def add(self, other: Score) -> None:
        """Adds the score of another run."""
        self.seen += other.seen
        self.missed += other.missed
        self.alarms += other.alarms

    @property
    def labels(self) -> int:
        """Returns the number of causes."""
        return len(self.seen) + len(self.missed)

    @property
    def recall(self) -> float:
        """Returns the share of causes whose stall was detected."""
        return len(self.seen) / max(1, self.labels)

    @property
    def right(self) -> float:
        """Returns the share of causes that were detected with the right verdict."""
        return sum(label.verdict == found.verdict for label, found in self.seen) / max(
            1, self.labels
        )

    def __str__(self) -> str:
        """Formats all figures, and every failure."""
        causes = Counter((label.how, label.verdict) for label, _ in self.seen)
        causes.update((label.how, label.verdict) for label in self.missed)
        named = Counter(
            (how.how, how.verdict) for how, found in self.seen if how.verdict == found.verdict
        )
        lines = [f"{self.labels} causes, recall {self.recall:.1%}, right cause {self.right:.1%}"]
        lines += [
            f"  {how}: {named[how, what]} of {count} {what}"
            for (how, what), count in causes.items()
        ]
        alarms = Counter(found.verdict for found in self.alarms)
        long = Counter(found.verdict for found in self.alarms if found.length >= SEEN_FROM_S)
        lines.append(f"stalls of no cause of ours: {dict(alarms)}, of 50 ms and more {dict(long)}")
        for label in self.missed:
            lines.append(f"  missed: {label.how} of {label.end - label.begin:.3f} s")
        for label, found in self.seen:
            if label.verdict != found.verdict:
                length = f"{label.end - label.begin:.3f} s, seen {found.length:.3f} s"
                lines.append(f"  {label.how} of {length}: {found.verdict}, {found.evidence}")
        for found in self.alarms:
            lines.append(f"  no cause, {found.length:.3f} s: {found.verdict}, {found.evidence}")
        return "\n".join(lines)


def stalls_of(report: dict[str, Any]) -> list[Found]:
    """Returns the stalls in a report of the load tool."""
    start = report["started_at"]
    return [
        Found(
            stall["verdict"],
            stall["evidence"],
            start + stall["start_s"],
            start + stall["start_s"] + stall["length_s"],
        )
        for stall in report["stalls"]["list"]
    ]


def score(labels: list[Label], report: dict[str, Any]) -> Score:
    """Assigns each label the stall that overlaps it most.

    Stalls without a label are false alarms.
    """
    result = Score()
    found = stalls_of(report)
    for label in labels:
        if label.end - label.begin < SEEN_FROM_S:
            continue
        best = max(found, key=lambda stall: stall.overlap(label), default=None)
        if best is None or best.overlap(label) <= 0:
            result.missed.append(label)
        else:
            result.seen.append((label, best))
    result.alarms = [stall for stall in found if all(stall.overlap(label) <= 0 for label in labels)]
    return result
