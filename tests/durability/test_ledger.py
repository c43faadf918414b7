"""The ledger finds each violation that it is fed, and accepts correct behaviour."""

import zlib
from collections.abc import Callable

import pytest

from harness.durability.ledger import Kind, Ledger, message

Act = Callable[[Ledger], object]


def sent(number: int, queue: str = "q", *, is_confirmed: bool = True) -> Act:
    def act(ledger: Ledger) -> None:
        ledger.sent("p", number, [queue], zlib.crc32(message("p", number, 8)))
        if is_confirmed:
            ledger.confirmed("p", number, [queue], "disk")

    return act


def received(number: int, queue: str = "q", *, is_again: bool = False, size: int = 8) -> Act:
    body = message("p", number, size)
    return lambda ledger: ledger.received("c", queue, body, is_redelivered=is_again)


def taken(number: int, queue: str = "q", *, is_again: bool = False) -> Act:
    def act(ledger: Ledger) -> None:
        received(number, queue, is_again=is_again)(ledger)
        ledger.accepting("p", number, queue)

    return act


def again(number: int, queue: str = "q") -> Act:
    return taken(number, queue, is_again=True)


def accepted(number: int) -> Act:
    def act(ledger: Ledger) -> None:
        taken(number)(ledger)
        ledger.accepted("p", number, "q")

    return act


def moved(*outputs: int, takes: int | None = None, is_confirmed: bool = False) -> Act:
    inputs = [] if takes is None else [("p", takes, "q")]

    def act(ledger: Ledger) -> None:
        for number in outputs:
            sent(number, "to", is_confirmed=False)(ledger)
        ledger.committing("m", [("p", number, "to") for number in outputs], inputs)
        if is_confirmed:
            ledger.committed("m", "disk")

    return act


def died(number: int, *, is_confirmed: bool = False) -> Act:
    def act(ledger: Ledger) -> None:
        ledger.dying("m", "p", number, "q", "to")
        if is_confirmed:
            ledger.committed("m", "disk")

    return act


def killed(ledger: Ledger) -> None:
    ledger.restarted()


def stopped(ledger: Ledger) -> None:
    ledger.restarted(is_clean=True)


def given_back(ledger: Ledger) -> None:
    ledger.disturbed("q")


def dug_up(ledger: Ledger) -> None:
    ledger.disturbed("to")


ROWS: list[tuple[str, list[Act], set[Kind]]] = [
    ("what came and was accepted is right", [sent(1), accepted(1)], set()),
    ("what nobody confirmed may be gone", [sent(1, is_confirmed=False), killed], set()),
    ("what was confirmed comes", [sent(1), killed], {Kind.LOST}),
    ("what came and was not accepted comes again", [sent(1), received(1), killed], {Kind.LOST}),
    ("once more is enough", [sent(1), received(1), killed, again(1)], set()),
    ("an accept without an answer may be forgotten", [sent(1), taken(1), killed, again(1)], set()),
    (
        "an accept with an answer may not",
        [sent(1), accepted(1), killed, again(1)],
        {Kind.RESURRECTED},
    ),
    ("other bytes are found", [sent(1), received(1, size=9), given_back, again(1)], {Kind.ALTERED}),
    ("what nobody sent is found", [received(1)], {Kind.PHANTOM}),
    (
        "what comes to another queue is found",
        [sent(1), taken(1), received(1, "other")],
        {Kind.PHANTOM},
    ),
    ("a second delivery has a mark", [sent(1), received(1), given_back, taken(1)], {Kind.UNMARKED}),
    ("with its mark it is right", [sent(1), received(1), given_back, again(1)], set()),
    ("after a kill all have a mark", [sent(1), killed, taken(1)], {Kind.UNMARKED}),
    ("after a stop they need none", [sent(1), stopped, taken(1)], set()),
    ("order is kept", [sent(1), sent(2), taken(2), taken(1)], {Kind.DISORDER}),
    ("but for what came back", [sent(1), sent(2), taken(2), given_back, taken(1)], set()),
    ("after a kill too", [sent(1), sent(2), killed, again(2), again(1)], {Kind.DISORDER}),
    (
        "but for what was accepted before it",
        [sent(1), sent(2), taken(1), killed, again(2), again(1)],
        set(),
    ),
    ("half a transaction is found", [moved(1, 2), killed, again(1, "to")], {Kind.TORN}),
    ("none of it is right", [moved(1, 2), killed], set()),
    ("all of it is right", [moved(1, 2), killed, again(1, "to"), again(2, "to")], set()),
    (
        "what was taken of it may be gone",
        [moved(1, 2), taken(1, "to"), killed, again(2, "to")],
        set(),
    ),
    ("a confirmed one is there", [moved(1, is_confirmed=True), killed], {Kind.LOST}),
    (
        "what a transaction took is not there too",
        [sent(1), received(1), moved(2, takes=1), killed, again(1), again(2, "to")],
        {Kind.TORN},
    ),
    (
        "it is in one place",
        [sent(1), received(1), moved(2, takes=1), killed, again(2, "to")],
        set(),
    ),
    ("or in the other", [sent(1), received(1), moved(2, takes=1), killed, again(1)], set()),
    ("and not in none", [sent(1), received(1), moved(2, takes=1), killed], {Kind.LOST}),
    (
        "a dead letter is in its grave",
        [sent(1), received(1), died(1), killed, again(1, "to")],
        set(),
    ),
    (
        "a dead letter is not in both",
        [sent(1), received(1), died(1), killed, again(1), again(1, "to")],
        {Kind.TORN},
    ),
    (
        "a rejection with an answer lasts",
        [sent(1), received(1), died(1, is_confirmed=True), killed, again(1), again(1, "to")],
        {Kind.RESURRECTED},
    ),
    (
        "a grave does not lose",
        [sent(1), received(1), died(1, is_confirmed=True), killed],
        {Kind.LOST},
    ),
    (
        "it may die twice",
        [
            sent(1),
            received(1),
            died(1),
            killed,
            received(1, is_again=True),
            died(1, is_confirmed=True),
            taken(1, "to"),
        ],
        set(),
    ),
    (
        "but not be in its grave and die again",
        [
            sent(1),
            received(1),
            died(1),
            killed,
            dug_up,
            received(1, "to", is_again=True),
            received(1, is_again=True),
            died(1, is_confirmed=True),
            taken(1, "to"),
        ],
        {Kind.TORN},
    ),
]


@pytest.mark.parametrize(
    ("acts", "expected"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS]
)
def test_wrongs_are_found(acts: list[Act], expected: set[Kind]) -> None:
    check(acts, expected)


def check(acts: list[Act], expected: set[Kind]) -> None:
    notes: list[bytes] = []
    ledger = Ledger(note=notes.append)
    for act in acts:
        act(ledger)
    assert {kind for kind, _ in ledger.verdict()} == expected
    again = Ledger()
    again.replay(notes)
    assert again.verdict() == ledger.verdict(), "who reads the notes comes to the same"


def test_a_confirm_names_its_level() -> None:
    ledger = Ledger()
    ledger.sent("p", 1, ["q"], 0)
    ledger.confirmed("p", 1, ["q"], "os")
    assert [kind for kind, _ in ledger.violations] == [Kind.LEVEL]
