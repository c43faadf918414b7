"""The four messaging patterns, with the programs in examples/patterns."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.amqp.suite import need
from harness.amqp10.peers import is_installed, running_peer
from harness.imori import BINARY, REPOSITORY, running_imori

PATTERNS = REPOSITORY / "examples/patterns"
INSTALLED = REPOSITORY / ".tools/amqp10"
PROGRAM_S = 60
PEER_S = 300
QUEUES = ["OneQueueEach", "SharedQueue"]
TOPICS = ["NothingMissed", "OnCondition"]
# The Java programs that also run with other brokers. Broker-J creates no topics by name.
OF_PEERS = {
    "artemis": [*QUEUES, *TOPICS],
    "activemq": [*QUEUES, *TOPICS],
    "broker-j": QUEUES,
}

ONE_QUEUE_EACH = """\
tokyo has order 1
tokyo has order 3
tokyo has order 6
osaka has order 2
osaka has order 5
nagoya has order 4
"""
SHARED_QUEUE = """\
1000 jobs are done
3 workers had some of them
"""
NOTHING_MISSED = """\
head office has rate 1
branch has rate 1
the branch is down
head office has rate 2
head office has rate 3
head office has rate 4
the branch is back
branch has rate 2
branch has rate 3
branch has rate 4
"""
ON_CONDITION = """\
price > 1000: 10 of B at 1200
price > 1000: 90 of C at 1500
symbol IN ('A', 'C'): 10 of A at 900
symbol IN ('A', 'C'): 90 of C at 1500
symbol LIKE 'B%' AND volume < 50: 10 of B at 1200
"""
EXPECTED = {
    "java/OneQueueEach.java": ONE_QUEUE_EACH,
    "java/SharedQueue.java": SHARED_QUEUE,
    "java/NothingMissed.java": NOTHING_MISSED,
    "java/OnCondition.java": ON_CONDITION,
    "python/one_queue_each.py": ONE_QUEUE_EACH,
    "python/shared_queue.py": SHARED_QUEUE,
    "python/nothing_missed.py": NOTHING_MISSED,
    "python/on_condition.py": ON_CONDITION,
    "cli/one-queue-each.sh": ONE_QUEUE_EACH,
    "cli/shared-queue.sh": SHARED_QUEUE.replace("1000", "30"),
    "cli/nothing-missed.sh": """\
office has rate 1
branch has rate 1
the branch is down
office has rate 2
office has rate 3
office has rate 4
the branch is back
branch has rate 2
branch has rate 3
branch has rate 4
""",
    "cli/on-condition.sh": """\
volume <> 'small': large trade of C
volume <> 'small': large trade of BB
symbol IN ('A', 'C'): small trade of A
symbol IN ('A', 'C'): large trade of C
symbol LIKE 'B%' AND volume = 'small': small trade of B
""",
}


def java(program: str, url: str) -> list[str]:
    """Returns the command that runs a Java program with the broker at a URL."""
    need("java", INSTALLED / "patterns.sha256")
    jars = f"{INSTALLED / 'patterns'}:{INSTALLED / 'patterns-jars'}/*"
    return ["java", "-cp", jars, program, url]


def command(program: Path, address: str) -> list[str]:
    """Returns the command that runs a program with the broker at an address."""
    if program.suffix == ".java":
        return java(program.stem, f"amqp://{address}")
    if program.suffix == ".py":
        return [sys.executable, str(program), f"amqp://{address}"]
    return ["sh", str(program), f"amqp10://{address}"]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A broker that no other program has used."""
    with running_imori(tmp_path_factory.mktemp("patterns"), protocol="amqp") as imori:
        host, port = imori.addresses[0]
        yield f"{host}:{port}"


def test_every_program_is_known() -> None:
    programs = {str(path.relative_to(PATTERNS)) for path in PATTERNS.glob("*/*.*")}
    assert programs - {"java/pom.xml"} == set(EXPECTED)


def run(program: str, command: list[str]) -> None:
    """Runs a program, which must print the expected output."""
    ran = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=PROGRAM_S,
        env={**os.environ, "PATH": f"{Path(BINARY).parent}:{os.environ['PATH']}"},
    )
    assert ran.stdout == EXPECTED[program], ran.stderr


@pytest.mark.parametrize("program", EXPECTED)
def test_pattern(address: str, program: str) -> None:
    run(program, command(PATTERNS / program, address))


@pytest.mark.timeout(PEER_S)
@pytest.mark.parametrize("kind", OF_PEERS)
def test_only_the_url_differs_for_a_peer(kind: str) -> None:
    if not is_installed(kind):
        pytest.skip(f"`make peers` installs `{kind}`")
    with running_peer(kind) as url:
        for program in OF_PEERS[kind]:
            run(f"java/{program}.java", java(program, url))
