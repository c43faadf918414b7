"""Counts the instructions of single steps: decode, route, encode, and the whole way of a message.

Counted and not timed, so that a difference of one per cent is one, on any machine. Each row runs
twice under `valgrind --tool=callgrind` with different numbers of rounds; what the rounds differ by is what
they cost, start-up aside.

    python3 bench/instructions.py              counts and compares with what is recorded
    python3 bench/instructions.py --record     keeps the counts in bench/instructions.json
    python3 bench/instructions.py route        only the rows whose names contain the word
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RECORD = ROOT / "bench/instructions.json"
COUNTED = re.compile(r"Collected : (\d+)")


@dataclass(frozen=True)
class Row:
    """One step that is counted."""

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
    """Counts, compares, and records if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("words", nargs="*", help="only rows whose names contain one of these")
    parser.add_argument("--record", action="store_true", help="keep the counts")
    arguments = parser.parse_args()
    if shutil.which("valgrind") is None:
        sys.exit("valgrind is missing: apt-get install valgrind")
    rows = [row for row in ROWS if not arguments.words or any(word in row.name for word in arguments.words)]
    recorded: dict[str, int] = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    programs = {key: built(*key) for key in sorted({(row.package, row.bench) for row in rows})}
    print(f"{'step':50} {'instructions':>12} {'recorded':>9}")
    for row in rows:
        count = instructions(programs[row.package, row.bench], row)
        before = recorded.get(row.name)
        change = f"{before:9} {100 * (count - before) / before:+6.1f} %" if before else ""
        print(f"{row.name:50} {count:12} {change}", flush=True)
        recorded[row.name] = count
    if arguments.record:
        known = {row.name: recorded[row.name] for row in ROWS if row.name in recorded}
        RECORD.write_text(json.dumps(known, indent=2) + "\n")
    return 0


def built(package: str, bench: str) -> Path:
    """Builds a benchmark as the release is built, and says where it is."""
    command = ["cargo", "bench", "-q", "--locked", "-p", package, "--bench", bench]
    output = subprocess.run(
        [*command, "--no-run", "--message-format=json"], cwd=ROOT, check=True, stdout=subprocess.PIPE
    ).stdout
    messages = [json.loads(line) for line in output.splitlines()]
    programs = [message["executable"] for message in messages if message.get("executable")]
    return Path(programs[-1])


def instructions(program: Path, row: Row) -> int:
    """The instructions of one step."""
    few, many = (counted(program, row.argument, rounds) for rounds in (row.rounds, 3 * row.rounds))
    return round((many - few) / (2 * row.rounds * row.steps_a_round))


def counted(program: Path, argument: str, rounds: int) -> int:
    """The instructions of a whole run."""
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
