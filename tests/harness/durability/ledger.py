"""Records what was sent, confirmed, received and settled, over all lives of a broker.

A request is noted before it is sent, an answer after it is received: `sent`, `committing` and
`accepting` come before the bytes are written; `confirmed`, `committed`, `accepted` and `received`
after they are read. So at any moment of a power cut, the notes up to there say what was promised.
"""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Kind(StrEnum):
    """The kinds of violations."""

    LOST = "lost"
    ALTERED = "altered"
    PHANTOM = "phantom"
    RESURRECTED = "resurrected"
    UNMARKED = "unmarked"
    DISORDER = "disorder"
    TORN = "torn"
    LEVEL = "level"


# A message in a queue: publisher, its number, queue.
Copy = tuple[str, int, str]


@dataclass(slots=True)
class _State:
    crc: int
    # The broker's life in which it was queued.
    life: int
    is_confirmed: bool = False
    # The last life in which it was received.
    received: int = -1
    # The last life in which an accept was sent, and whether that was answered.
    accepting: int = -1
    is_accepted: bool = False
    # The last move that removes it from its queue.
    move: str = ""


@dataclass(slots=True)
class _Move:
    """An atomic change: a transaction, or a dead letter."""

    life: int
    outputs: list[Copy]
    inputs: list[Copy]
    is_confirmed: bool = False


@dataclass
class Ledger:
    """The notes; `note` gets each one as a line for `replay`."""

    note: Callable[[bytes], object] | None = None
    # The level that confirms must carry.
    level: str = "disk"
    # Queues that get other queues' messages unasked: expired or overflowing ones.
    graves: dict[str, str] = field(default_factory=dict)
    life: int = 0
    violations: list[tuple[Kind, str]] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    _states: dict[Copy, _State] = field(default_factory=dict)
    _moves: dict[str, _Move] = field(default_factory=dict)
    # Number of earlier lives that ended abruptly.
    _unclean: int = 0
    _last: dict[tuple[str, str, str], int] = field(default_factory=dict)
    # Queues to which messages returned in this life, or whose order is undefined.
    _disturbed: set[str] = field(default_factory=set)

    # Notes

    def sent(self, publisher: str, number: int, queues: Sequence[str], crc: int) -> None:
        """A message is about to be sent to `queues`."""
        self._write("sent", publisher, number, list(queues), crc)
        self.counts["sent"] += 1
        for queue in queues:
            self._states[publisher, number, queue] = _State(crc, self.life)

    def confirmed(self, publisher: str, number: int, queues: Sequence[str], level: str) -> None:
        """The message's receipt arrived."""
        self._write("confirmed", publisher, number, list(queues), level)
        self.counts["confirmed"] += 1
        self._check_level(level, f"{publisher} {number}")
        for queue in queues:
            self._states[publisher, number, queue].is_confirmed = True

    def committing(
        self, move: str, outputs: Iterable[Sequence[Any]], inputs: Iterable[Any]
    ) -> None:
        """A move is about to be sent: its outputs must appear and its inputs go, or neither."""
        made = _Move(self.life, [_copy(c) for c in outputs], [_copy(c) for c in inputs])
        self._write("committing", move, made.outputs, made.inputs)
        self._moves[move] = made
        for copy in made.inputs:
            self._states[copy].move = move

    def committed(self, move: str, level: str) -> None:
        """The receipt of a move came."""
        self._write("committed", move, level)
        self.counts["committed"] += 1
        self._check_level(level, move)
        made = self._moves[move]
        made.is_confirmed = True
        for copy in made.outputs:
            self._states[copy].is_confirmed = True
        for copy in made.inputs:
            self._states[copy].is_accepted = True

    def dying(self, move: str, publisher: str, number: int, queue: str, grave: str) -> None:
        """A message is about to be rejected to `grave`; its receipt is noted by `committed`."""
        self._write("dying", move, publisher, number, queue, grave)
        copy, output = (publisher, number, queue), (publisher, number, grave)
        state = self._states[copy]
        earlier = self._moves.pop(state.move, None)
        if earlier is not None:
            # It was rejected before and came back, so it must not be in its grave.
            self.violations += self._unanswered(state.move, earlier)
        self._states[output] = _State(state.crc, self.life)
        self._moves[move] = _Move(self.life, [output], [copy])
        state.move = move

    def accepting(self, publisher: str, number: int, queue: str) -> None:
        """An ACK is about to be sent."""
        queue = self.graves.get(queue, queue)
        self._write("accepting", publisher, number, queue)
        self._states[publisher, number, queue].accepting = self.life

    def accepted(self, publisher: str, number: int, queue: str) -> None:
        """The receipt of an ACK arrived."""
        queue = self.graves.get(queue, queue)
        self._write("accepted", publisher, number, queue)
        self.counts["accepted"] += 1
        self._states[publisher, number, queue].is_accepted = True

    def received(
        self, consumer: str, queue: str, body: bytes, *, is_redelivered: bool
    ) -> Copy | None:
        """A body arrived; returns its identity, if it has one."""
        publisher, number = identity(body)
        queue = self.graves.get(queue, queue)
        copy = (publisher, number, queue)
        self.delivered(consumer, publisher, number, queue, zlib.crc32(body), is_redelivered)
        return copy if copy in self._states else None

    def delivered(
        self, consumer: str, publisher: str, number: int, queue: str, crc: int, marked: bool
    ) -> None:
        """A message arrived at a consumer of `queue`; `crc` is the checksum of its body."""
        self._write("delivered", consumer, publisher, number, queue, crc, marked)
        self.counts["received"] += 1
        copy = (publisher, number, queue)
        state = self._states.get(copy)
        if state is None:
            self._violate(Kind.PHANTOM, f"{copy} was never sent")
            return
        if crc != state.crc:
            self._violate(Kind.ALTERED, f"{copy} came with other bytes")
        if state.is_accepted:
            self._violate(Kind.RESURRECTED, f"{copy} came after the receipt of its end")
        # In its grave, a message is new.
        is_new = queue in self.graves.values()
        if not (marked or is_new) and (state.received >= 0 or state.life < self._unclean):
            self._violate(Kind.UNMARKED, f"{copy} came again without a mark")
        state.received = self.life
        if queue not in self._disturbed:
            last = self._last.get((consumer, queue, publisher), -1)
            # A page may have been written after an ACK that was lost with its life: the message
            # then comes behind that page.
            is_back = 0 <= state.accepting < self.life
            if number <= last and not is_back:
                self._violate(Kind.DISORDER, f"{copy} came after {last}")
            self._last[consumer, queue, publisher] = max(number, last)

    def disturbed(self, queue: str) -> None:
        """From now on in this life, a queue's messages may arrive in another order."""
        self._write("disturbed", queue)
        self._disturbed.add(queue)

    def restarted(self, *, is_clean: bool = False) -> None:
        """A new life of the broker begins, after a clean or abrupt end."""
        self._write("restarted", is_clean)
        self.life += 1
        self._last.clear()
        self._disturbed.clear()
        if not is_clean:
            self._unclean = self.life

    def wronged(self, kind: Kind, text: str) -> None:
        """Records another violation seen by a client."""
        self._violate(kind, text)

    # The end

    def queues(self) -> list[str]:
        """Returns the queues that may have messages, those that others overflow into last."""
        sent = dict.fromkeys(queue for _, _, queue in self._states)
        return [*sent, *self.graves]

    def missing(self) -> list[Copy]:
        """Returns messages that are confirmed, not accepted, and did not arrive."""
        return [
            copy
            for copy, state in self._states.items()
            if state.is_confirmed and state.accepting < 0 and not state.move
        ]

    def verdict(self) -> list[tuple[Kind, str]]:
        """Returns all violations, once all queues are drained."""
        found = list(self.violations)
        for copy in self.missing():
            state = self._states[copy]
            came = "did not come again" if state.received >= 0 else "never came"
            text = f"{copy} was confirmed in life {state.life} and {came}"
            found.append((Kind.LOST, text))
        for name, move in self._moves.items():
            if not move.is_confirmed:
                found += self._unanswered(name, move)
        return found

    def _unanswered(self, name: str, move: _Move) -> list[tuple[Kind, str]]:
        """Returns the violations of a move without an answer: it must have happened entirely or
        not.

        What was received in the life of the move proves nothing, because a queue may deliver before
        the disk has the message.
        """
        outputs = [self._states[copy] for copy in move.outputs]
        is_there = [state.received > move.life for state in outputs]
        is_known = [
            there or state.accepting >= 0 for there, state in zip(is_there, outputs, strict=True)
        ]
        if any(is_there) and not all(is_known):
            return [(Kind.TORN, f"{name} happened in part: {is_there}")]
        found = []
        for copy in move.inputs:
            state = self._states[copy]
            is_back = state.received > move.life
            if is_back and any(is_there):
                found.append((Kind.TORN, f"{name} happened, and {copy} is still there"))
            if state.is_confirmed and not is_back and not any(is_known) and state.move == name:
                found.append((Kind.LOST, f"{copy} is gone, and so is what {name} makes of it"))
        return found

    # Notes as lines

    def replay(self, lines: Iterable[bytes]) -> None:
        """Repeats the notes of another ledger."""
        for line in lines:
            event, *values = json.loads(line)
            if event == "restarted":
                self.restarted(is_clean=values[0])
            elif event in _EVENTS:
                getattr(self, event)(*values)
            else:
                raise ValueError(f"`{event}` is no note of a ledger")

    def _write(self, *values: object) -> None:
        if self.note is not None:
            self.note(json.dumps(values).encode() + b"\n")

    def _violate(self, kind: Kind, text: str) -> None:
        self.violations.append((kind, text))

    def _check_level(self, level: str, what: str) -> None:
        if level != self.level:
            self._violate(Kind.LEVEL, f"{what} is confirmed at `{level}`, not `{self.level}`")


_EVENTS = {
    "sent",
    "confirmed",
    "committing",
    "committed",
    "dying",
    "accepting",
    "accepted",
    "delivered",
    "disturbed",
}


def summary(violations: Iterable[tuple[Kind, str]]) -> str:
    """Formats the number of violations of each kind, with the first of each."""
    firsts: dict[Kind, str] = {}
    kinds: Counter[Kind] = Counter()
    for kind, text in violations:
        kinds[kind] += 1
        firsts.setdefault(kind, text)
    return "; ".join(f"{count} {kind}: {firsts[kind]}" for kind, count in kinds.items())


def message(publisher: str, number: int, size: int) -> bytes:
    """Returns a body that identifies its message and is otherwise unique."""
    head = f"{publisher} {number} ".encode()
    seed = zlib.crc32(head)
    filler = (seed | 1).to_bytes(5, "little") * (size // 5 + 1)
    return head + filler[:size]


def identity(body: bytes) -> tuple[str, int]:
    """Returns publisher and number of a body; a body altered there has none."""
    publisher, _, rest = body.partition(b" ")
    number, _, _ = rest.partition(b" ")
    if not number.isdigit() or len(number) > 18:
        return ("", -1)
    return (publisher.decode(errors="replace"), int(number))


def _copy(values: Sequence[Any]) -> Copy:
    publisher, number, queue = values
    return (publisher, number, queue)
