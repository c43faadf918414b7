"""Counts the instructions of single steps: decode, route, encode, and the whole path of a message.

Instructions are counted instead of timed, so that a difference of one per cent is significant on any machine.
Each row runs twice under `valgrind --tool=callgrind` with different numbers of rounds; the difference is the
cost of the additional rounds, without start-up.

python3 bench/instructions.py                 counts and compares with the record
python3 bench/instructions.py --record        writes the counts to bench/instructions.json
python3 bench/instructions.py route           only the rows whose names contain the word
python3 bench/instructions.py --check         counts the path of a message, and fails if it has grown
python3 bench/instructions.py --check-record  counts nothing: fails if the record has grown unexplained

Beside each count, the record keeps the row's lowest count ever. A count more than 2 % above it needs a line
in bench/instructions.changes.md, so that many small increases cannot add up unnoticed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

ROOT = Path(__file__).resolve().parents[1]
RECORD = ROOT / "bench/instructions.json"
CHANGES = ROOT / "bench/instructions.changes.md"
COUNTED = re.compile(r"Collected : (\d+)")
# Tolerated growth of a count, which another version of the C library may cause.
GROWTH_MAX = 0.02
# Programs that `--check` omits, because building each takes as long as counting all its rows.
UNCHECKED = {
    ("imori-core", "route"),
    ("imori-stomp", "codec"),
    ("imori-amqp10", "codec"),
    ("imori-amqp10", "connection"),
}


class Counts(TypedDict):
    """The recorded counts of a row."""

    count: int
    lowest: int


Record = dict[str, Counts]


@dataclass(frozen=True)
class Row:
    """A step whose instructions are counted."""

    name: str
    package: str
    bench: str
    argument: str
    steps_a_round: int = 64
    rounds: int = 50


ROWS = (
    Row("route: remembered", "imori-core", "route", "remembered", 1, 2000),
    Row("route: literal among 1,000", "imori-core", "route", "literal", 1, 2000),
    Row("route: wildcards among 1,000", "imori-core", "route", "wild", 1, 2000),
    Row("core: publish to 1 live subscription, 16 B", "imori-core", "publish", "live-1-16", 1, 2000),
    Row("core: publish to 10 live subscriptions, 16 B", "imori-core", "publish", "live-10-16", 1, 2000),
    Row("core: publish to 100 live subscriptions, 16 B", "imori-core", "publish", "live-100-16", 1, 200),
    Row("core: publish to 1, limited user", "imori-core", "publish", "limited-1-16", 1, 2000),
    Row(
        "core: publish to 100, limited user",
        "imori-core",
        "publish",
        "limited-100-16",
        1,
        200,
    ),
    Row("core: publish to 100 sessions, 16 B", "imori-core", "publish", "sessions-100-16", 1, 200),
    Row("core: through a queue, 16 B", "imori-core", "publish", "queue-16", 1, 2000),
    Row("core: through a queue and settled, 16 B", "imori-core", "publish", "settled-16", 1, 2000),
    Row("core: reply to an inbox, 16 B", "imori-core", "publish", "reply-16", 1, 2000),
    Row("stomp: decode SEND, 16 B", "imori-stomp", "codec", "decode SEND 16 B,"),
    Row("stomp: decode SEND and read it, 16 B", "imori-stomp", "codec", "decode SEND 16 B and"),
    Row("stomp: encode MESSAGE, 16 B", "imori-stomp", "codec", "encode MESSAGE 16 B"),
    Row("stomp: SEND to MESSAGE, topic", "imori-stomp", "connection", "topic, 1 live"),
    Row("stomp: SEND to MESSAGE, queue", "imori-stomp", "connection", "queue, ack auto"),
    Row("stomp: SEND to nobody", "imori-stomp", "connection", "topic, nobody"),
    Row("stomp: call", "imori-stomp", "connection", "call:"),
    Row("stomp: reply to an inbox", "imori-stomp", "connection", "reply to an inbox"),
    Row("stomp: SEND to RECEIPT", "imori-stomp", "connection", "SEND with receipt"),
    Row("nats: decode PUB, 16 B", "imori-nats", "connection", "decode PUB"),
    Row("nats: PUB to MSG", "imori-nats", "connection", "PUB to MSG, repeated"),
    Row("nats: PUB to MSG, subjects in turn", "imori-nats", "connection", "four subjects"),
    Row("nats: PUB to nobody", "imori-nats", "connection", "PUB to nobody"),
    Row("nats: request", "imori-nats", "connection", "request:"),
    Row("nats: reply", "imori-nats", "connection", "reply:"),
    Row("nats: reply, its subject used once", "imori-nats", "connection", "used once"),
    Row("nats: HPUB to HMSG", "imori-nats", "connection", "HPUB"),
    Row("amqp: publish to deliver", "imori-amqp091", "connection", "publish to deliver, no ack"),
    Row("amqp: publish to deliver, 2,000 channels", "imori-amqp091", "connection", "2,000 channels"),
    Row("amqp: publish to nobody", "imori-amqp091", "connection", "publish to nobody"),
    Row("amqp: publish to 10 queues", "imori-amqp091", "connection", "publish to 10 queues"),
    Row("amqp: publish with confirm", "imori-amqp091", "connection", "publish with confirm"),
    Row("amqp: publish, deliver, ack", "imori-amqp091", "connection", "publish, deliver, ack"),
    Row("amqp: publish, properties differ", "imori-amqp091", "connection", "properties differ"),
    Row("amqp10: reply to a queue", "imori-amqp10", "connection", "to a queue, settled"),
    Row("amqp10: reply to a queue, accepted", "imori-amqp10", "connection", "to a queue, accepted"),
    Row("amqp10: reply past a queue", "imori-amqp10", "connection", "to a dynamic source, settled"),
    Row("amqp10: decode transfer", "imori-amqp10", "codec", "decode transfer"),
    Row("amqp10: decode disposition", "imori-amqp10", "codec", "decode disposition"),
    Row("amqp10: read sections of a message", "imori-amqp10", "codec", "read sections"),
    Row("amqp10: encode transfer", "imori-amqp10", "codec", "encode transfer"),
    Row("stomp: SEND, MESSAGE, ACK", "imori-stomp", "connection", "SEND, ACK of 1"),
)


def main() -> int:
    """Counts, compares, and records or checks if requested."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("words", nargs="*", help="only rows whose names contain one of these")
    modes = parser.add_mutually_exclusive_group()
    modes.add_argument("--record", action="store_true", help="keep the counts")
    modes.add_argument(
        "--check", action="store_true", help="fail where a message costs more than is recorded"
    )
    modes.add_argument(
        "--check-record", action="store_true", help="fail where the record has grown without a word"
    )
    arguments = parser.parse_args()
    record: Record = json.loads(RECORD.read_text())
    if arguments.check_record:
        return told(unexplained(record, CHANGES.read_text()))
    if shutil.which("valgrind") is None:
        sys.exit("valgrind is missing: apt-get install valgrind")
    rows = [row for row in ROWS if not arguments.words or any(word in row.name for word in arguments.words)]
    if arguments.check:
        rows = [row for row in rows if (row.package, row.bench) not in UNCHECKED]
    counts = counts_of(rows, record)
    if arguments.record:
        recorded = with_counts(record, counts)
        RECORD.write_text(json.dumps(recorded, indent=2) + "\n")
        told(unexplained(recorded, CHANGES.read_text()))
    return told(grown(record, counts)) if arguments.check else 0


def counts_of(rows: list[Row], record: Record) -> dict[str, int]:
    """Counts these rows, one per processor, and prints each count beside the recorded one."""
    programs = built({(row.package, row.bench) for row in rows})
    counts: dict[str, int] = {}
    print(f"{'step':50} {'instructions':>12} {'recorded':>9}")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        counted_rows = pool.map(lambda row: instructions(programs[row.package, row.bench], row), rows)
        for row, count in zip(rows, counted_rows, strict=True):
            counts[row.name] = count
            before = record[row.name]["count"] if row.name in record else 0
            change = f"{before:9} {100 * (count - before) / before:+6.1f} %" if before else ""
            print(f"{row.name:50} {count:12} {change}", flush=True)
    return counts


def with_counts(record: Record, counts: dict[str, int]) -> Record:
    """Returns the record, updated with these counts."""

    def of(name: str) -> Counts:
        if name not in counts:
            return record[name]
        lowest = min(counts[name], record[name]["lowest"]) if name in record else counts[name]
        return {"count": counts[name], "lowest": lowest}

    return {row.name: of(row.name) for row in ROWS if row.name in counts or row.name in record}


def has_grown(count: int, before: int) -> bool:
    """Returns whether a count exceeds another by more than the tolerated growth."""
    return count > before * (1 + GROWTH_MAX)


def grown(record: Record, counts: dict[str, int]) -> list[str]:
    """Returns the rows that cost more than recorded."""
    return [
        f"{name}: {record[name]['count']} instructions became {count}; find what costs them, or record them"
        f" with a line in {CHANGES.relative_to(ROOT)}"
        for name, count in counts.items()
        if name in record and has_grown(count, record[name]["count"])
    ]


def unexplained(record: Record, changes: str) -> list[str]:
    """Returns rows whose count exceeds their lowest ever, unexplained in instructions.changes.md."""
    return [
        f"{name}: {counts['lowest']} instructions became {counts['count']}; say why in"
        f" {CHANGES.relative_to(ROOT)}: `- {name}: {counts['lowest']} → {counts['count']}. …`"
        for name, counts in record.items()
        if has_grown(counts["count"], counts["lowest"])
        and not re.search(rf"^- {re.escape(name)}: .*→ {counts['count']}\. \S", changes, re.MULTILINE)
    ]


def told(faults: list[str]) -> int:
    """Prints faults; returns the exit code, which is 1 if there are any."""
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


def built(wanted: set[tuple[str, str]]) -> dict[tuple[str, str], Path]:
    """Builds benchmarks with the profile of packages, and returns the paths of the programs.

    One run of cargo builds them all, so that what they share is compiled once.
    """
    command = ["cargo", "bench", "-q", "--locked", "--no-run", "--message-format=json"]
    command += [f"--package={package}" for package in sorted({package for package, _ in wanted})]
    command += [f"--bench={bench}" for bench in sorted({bench for _, bench in wanted})]
    output = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout
    programs: dict[tuple[str, str], Path] = {}
    for message in map(json.loads, output.splitlines()):
        if message.get("executable"):
            package = Path(message["target"]["src_path"]).parents[1].name
            programs[package, message["target"]["name"]] = Path(message["executable"])
    return programs


def instructions(program: Path, row: Row) -> int:
    """Returns the number of instructions of one step."""
    few, many = (counted(program, row.argument, rounds) for rounds in (row.rounds, 3 * row.rounds))
    return round((many - few) / (2 * row.rounds * row.steps_a_round))


def counted(program: Path, argument: str, rounds: int) -> int:
    """Returns the number of instructions of a whole run."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out"]
        run = subprocess.run(
            [*command, str(program), argument, f"--rounds={rounds}"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    found = COUNTED.search(run.stderr)
    if run.returncode != 0 or found is None:
        sys.exit(f"{program.name} {argument} could not be counted:\n{run.stderr[-2000:]}")
    return int(found.group(1))


if __name__ == "__main__":
    sys.exit(main())
