"""Mutates the code that stores messages, one small change at a time, and lists the mutants that no test notices.

Usage: ci/mutants.py store|core|amqp10 [AREA...]

`cargo mutants` lists the mutants. It would build the tests once per mutant, which takes a day; here one build contains
all mutants, and `IMORI_MUTANT` in the environment selects one. Tests run in rounds: a mutant noticed by a quick round
is not tried in slower ones, and all rounds together are all tests of the crate, as run by `cargo test -p`, and for a
protocol those of imori-conversations.
`target/mutants/CRATE/left.txt` lists the unnoticed mutants, `figures.txt` their number per file.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

from mutants_switch import Mutant, instrument, marks_at

ROOT = Path(__file__).resolve().parent.parent

# The folder in which ci/setup.sh installs tools.
os.environ["PATH"] = f"{ROOT / '.tools/bin'}:{os.environ['PATH']}"

# The code that decides whether a confirmed message is lost, as files below `src` of the crate.
AREAS = {
    "store": {
        "journal": "journal/journal journal/intake records/* lsn",
        "commits": "journal/committer journal/pool journal/space journal/disk_room",
        "recovery": "journal/open recovery/* disk/whole_file folder/*",
        "segments": "segment/*",
        "definitions": "definitions/*",
    },
    "core": {
        "records": "confirm record/* route/durability pipeline/record pipeline/plan pipeline/locked pipeline/dedup"
        " broker/page queue/dedup",
        "start": "restore/*",
        "settling": "broker/commit broker/steps broker/settle broker/deliver queue/leave"
        " pipeline/enqueue pipeline/follow_ups pipeline/dead_letter pipeline/live room"
        " queue/die queue/pending_dead_letters entries/ready entries/run queue/deliver queue/publish queue/due",
        "paging": "paging/spill paging/restore paging/delayed paging/journal entries/pages entries/ranges"
        " entries/live_records entries/delayed entries/priority_lane entries/journal_page entries/position",
    },
    "amqp10": {
        "settling": "commands/disposition commands/transaction transaction",
        "transfers": "commands/transfer commands/flow delivery",
    },
}

# The package of conversations, whose target in a round is "conversations".
CONVERSATIONS = "imori-conversations"

# The most memory of a test in bytes, because a mutant may loop and allocate forever.
MEMORY_MAX = 4 << 30

# Mutants tried in parallel.
JOBS = int(os.environ.get("MUTANT_JOBS", "2"))


@dataclass(frozen=True)
class Round:
    """Tests that are run for each mutant: their targets, arguments and environment."""

    targets: tuple[str, ...]
    arguments: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    # Seconds without a finished test after which a mutant counts as noticed; many times what the longest test takes.
    seconds_max: int = 120
    # The only area whose mutants run this round; empty for all areas.
    area: str = ""


# In tests with random seeds, a few seeds notice nearly as much as many.
FEW = {"IMORI_STORE_SEEDS": "5"}

# Tests that take a second or more.
LONG = (
    *("--skip", "a_paged_queue_does_what_one_in_memory_does"),
    *("--skip", "delayed_messages_come_once_and_not_before_they_are_due"),
    *("--skip", "many_are_counted_together_and_none_is_missed"),
)

ROUNDS = {
    "store": [
        Round(("lib",), ("definitions",), seconds_max=30, area="definitions"),
        Round(("lib",), ("--skip", "crash::", "--skip", "definitions::", "--skip", "segment::damage"), seconds_max=15),
        Round(("test",), seconds_max=30),
        Round(("lib",), ("--skip", "planted", "--skip", "definitions::"), FEW, seconds_max=60),
        Round(("lib",)),
    ],
    "core": [
        Round(("lib",), ("--skip", "route::", "--skip", "outbound::", *LONG), seconds_max=15),
        Round(("test",), environment={"PROPTEST_CASES": "16"}, seconds_max=30),
        Round(("lib", "test")),
    ],
    "amqp10": [
        Round(("conversations",), ("conversations_of_amqp10",), seconds_max=15),
        Round(("test",)),
        Round(("conversations",), ("amqp10",)),
    ],
}

# The packages whose tests notice mutants: the crate's own, and for a protocol its conversations.
PACKAGES = {
    "store": ["imori-store"],
    "core": ["imori-core"],
    "amqp10": ["imori-amqp10", CONVERSATIONS],
}


def listed(crate: str, files: list[str]) -> list[Mutant]:
    """Returns the mutants that `cargo mutants` lists for these files and .cargo/mutants.toml does not exclude."""
    chosen = [word for file in files for word in ("-f", f"crates/imori-{crate}/src/{file}.rs")]
    command = ["cargo", "mutants", "-p", f"imori-{crate}", *chosen, "--list", "--json"]
    found = json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout)
    mutants = []
    for number, one in enumerate(found, start=1):
        begin, end = one["span"]["start"], one["span"]["end"]
        place = ((begin["line"], begin["column"]), (end["line"], end["column"]))
        mutants.append(Mutant(number, one["name"], one["file"], one["genre"], one["replacement"], place))
    return mutants


SWITCH = """//! Which change of the code is made, if one is.

use std::sync::LazyLock;

static CHOSEN: LazyLock<u32> =
    LazyLock::new(|| std::env::var("IMORI_MUTANT").ok().and_then(|text| text.parse().ok()).unwrap_or(0));

/// Tells whether this one is made.
pub(crate) fn is(number: u32) -> bool {
    *CHOSEN == number
}
"""


class Tree:
    """A copy of the workspace in which every mutant can be selected."""

    def __init__(self, crate: str, out: Path) -> None:
        self.crate, self.path, self.temporary = crate, out / "tree", out / "tmp"
        self.programs: dict[str, Path] = {}
        self.originals: dict[str, bytes] = {}
        self.alone = threading.Lock()
        self.log = out / "log.txt"
        self.log.unlink(missing_ok=True)
        shutil.rmtree(self.path / "crates", ignore_errors=True)
        names = subprocess.run(
            ["git", "ls-files", "--cached", "--others", "--exclude-standard", "crates", "*.toml", "Cargo.lock"],
            cwd=ROOT, check=True, capture_output=True, text=True,
        ).stdout.split()  # fmt: skip
        for name in names:
            if (ROOT / name).is_file():
                (self.path / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, self.path / name)

    def build(self, mutants: list[Mutant]) -> tuple[list[Mutant], list[Mutant], list[Mutant]]:
        """Builds the tests; returns the mutants that can be selected, do not compile, or cannot be instrumented."""
        src = self.path / "crates" / f"imori-{self.crate}" / "src"
        (src / "mutant.rs").write_text(SWITCH)
        lib = src / "lib.rs"
        lib.write_text(lib.read_text() + "mod mutant;\n")
        made = list(mutants)
        self.originals = {mutant.file: (self.path / mutant.file).read_bytes() for mutant in mutants}
        unviable: list[Mutant] = []
        unmade: list[Mutant] = []
        while True:
            for file in sorted({mutant.file for mutant in mutants}):
                of_file = [mutant for mutant in made if mutant.file == file]
                text, missed = instrument(self.originals[file], of_file)
                (self.path / file).write_bytes(text)
                unmade += missed
            made = [mutant for mutant in made if mutant not in unmade]
            wrong = self.compile()
            if not wrong:
                return made, unviable, unmade
            unviable += [mutant for mutant in made if mutant.number in wrong]
            made = [mutant for mutant in made if mutant.number not in wrong]

    def compile(self) -> set[int]:
        """Compiles the tests; returns the numbers of mutants that do not compile."""
        packages = [word for package in PACKAGES[self.crate] for word in ("-p", package)]
        command = [
            "cargo", "test", *packages, "--profile", "mutants", "--no-run",
            "--tests", "--locked", "--message-format", "json", "--target-dir", "target",
        ]  # fmt: skip
        done = subprocess.run(command, check=False, cwd=self.path, capture_output=True, text=True)
        wrong: set[int] = set()
        unknown = ""
        for line in filter(lambda line: line.startswith("{"), done.stdout.splitlines()):
            event = json.loads(line)
            if event["reason"] == "compiler-artifact" and event["executable"]:
                is_conversations = CONVERSATIONS in event["package_id"]
                kind = "conversations" if is_conversations else event["target"]["kind"][0]
                self.programs[kind] = Path(event["executable"])
            if event["reason"] != "compiler-message" or event["message"]["level"] != "error":
                continue
            message = event["message"]
            found: set[int] = set()
            # The primary span of an error identifies the mutant, or else one of its other spans.
            for span in sorted(message["spans"], key=lambda span: not span["is_primary"]):
                file = self.path / span["file_name"]
                if file.is_relative_to(self.path) and file.exists():
                    found = found or marks_at(file.read_bytes(), span["byte_start"], span["byte_end"])
            wrong |= found
            if message["spans"] and not found:
                unknown += message["rendered"]
        if done.returncode != 0 and not wrong:
            sys.exit(unknown or done.stderr)
        return wrong

    def notices(self, tests: Round, mutant: int) -> str:
        """Returns `noticed`, `slow` or `left`."""
        result = "left"
        for target in tests.targets:
            # The store's integration tests use fixed folders, so only one mutant runs them at a time.
            with self.alone if (self.crate, target) == ("store", "test") else contextlib.nullcontext():
                result = self.result(tests, target, mutant)
            if result != "left":
                break
        with self.log.open("a") as log:
            log.write(f"{mutant} is {result} after {' '.join(tests.targets + tests.arguments)}\n")
        return result

    def result(self, tests: Round, target: str, mutant: int) -> str:
        """Returns the result of one target."""
        temporary = self.temporary / f"{mutant}-{target}"
        temporary.mkdir(parents=True, exist_ok=True)
        environment = {**os.environ, **tests.environment, "IMORI_MUTANT": str(mutant), "TMPDIR": str(temporary)}
        process = subprocess.Popen(
            ["prlimit", f"--as={MEMORY_MAX}", str(self.programs[target]), *tests.arguments],
            cwd=self.path / "crates" / f"imori-{self.crate}", env=environment, start_new_session=True,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors="replace",
        )  # fmt: skip
        is_late = threading.Event()
        has_failed = False
        timer = threading.Timer(tests.seconds_max, end, (process, is_late))
        timer.start()
        assert process.stdout
        for line in process.stdout:
            timer.cancel()
            # One failed test is enough.
            if line.endswith("... FAILED\n"):
                has_failed = True
                end(process)
                break
            timer = threading.Timer(tests.seconds_max, end, (process, is_late))
            timer.start()
        code = process.wait()
        timer.cancel()
        shutil.rmtree(temporary, ignore_errors=True)
        if has_failed or code != 0:
            return "slow" if is_late.is_set() and not has_failed else "noticed"
        return "left"


def is_in(mutant: Mutant, crate: str, files: str) -> bool:
    """Returns whether a mutant is in one of these files of a crate."""
    return any(fnmatch(mutant.file, f"crates/imori-{crate}/src/{file}.rs") for file in files.split())


def end(process: subprocess.Popen[str], mark: threading.Event | None = None) -> None:
    """Kills a test and all processes it started."""
    if mark:
        mark.set()
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def main() -> None:
    crate, chosen = sys.argv[1], sys.argv[2:]
    areas = {area: files for area, files in AREAS[crate].items() if area in (chosen or AREAS[crate])}
    out = ROOT / "target" / "mutants" / crate
    begin = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - begin:6.0f} s  {text}", flush=True)

    mutants = listed(crate, [file for files in areas.values() for file in files.split()])
    tree = Tree(crate, out)
    made, unviable, unmade = tree.build(mutants)
    of_area = {area: {mutant for mutant in made if is_in(mutant, crate, files)} for area, files in areas.items()}
    say(f"{len(mutants)} changes: {len(unviable)} do not compile, {len(unmade)} cannot be chosen, {len(made)} are made")
    left, slow = made, []
    for tests in ROUNDS[crate]:
        tried = [mutant for mutant in left if not tests.area or mutant in of_area.get(tests.area, ())]
        if not tried:
            continue
        if tree.notices(tests, 0) != "left":
            sys.exit(f"the tests fail where nothing is changed: {tests}")
        with ThreadPoolExecutor(JOBS) as pool:
            results = list(pool.map(tree.notices, [tests] * len(tried), [mutant.number for mutant in tried]))
        result_of = dict(zip(tried, results, strict=True))
        slow += [mutant for mutant in tried if result_of[mutant] == "slow"]
        left = [mutant for mutant in left if result_of.get(mutant, "left") == "left"]
        say(f"{len(left)} are left, {len(slow)} were too slow, after {' '.join(tests.targets + tests.arguments)}")
        for name, which in (("left", left), ("slow", slow), ("unmade", unmade), ("unviable", unviable)):
            out.joinpath(f"{name}.txt").write_text("".join(f"{mutant.name}\n" for mutant in which))

    figures = []
    files = sorted({mutant.file for mutant in made})
    for what, of in [(file, [mutant for mutant in made if mutant.file == file]) for file in files] + [("all", made)]:
        missed, late = len(set(of) & set(left)), len(set(of) & set(slow))
        figures.append(f"{what}: {len(of) - missed} of {len(of)}, {late} of them too slow\n")
    out.joinpath("figures.txt").write_text("".join(figures))
    print("".join(figures) + "".join(f"{mutant.name}\n" for mutant in left), end="")


if __name__ == "__main__":
    main()
