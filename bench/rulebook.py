"""Compares the evaluation of rules with ansible-rulebook's: events per CPU-second, by number of rules.

python3 bench/rulebook.py                            1 and 100 rules, three turns
python3 bench/rulebook.py --rules 1 100 1000 --events 50000

Both read the same events of 1 KB and have the same rules: an equality, a search and a comparison. One rule
matches each event, or none does. ansible-rulebook runs the action `none`. It is measured twice in each turn,
with few events and with many, so that the start of Java and Python does not count. Imori is measured by
`imori-bench automation`, with the JSON of each event read; it indexes the equality.

Install the peer, with Java 17 (`openjdk-17-jre-headless`), by
python3 -m venv .tools/rulebook && .tools/rulebook/bin/pip install ansible-rulebook ansible-core
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from peers import load_tool

ROOT = Path(__file__).resolve().parent.parent
PUSH = ROOT / "crates/imori-automation/benches/push.txt"
# The part of a turn's events with which the start is measured.
FEW = 10
SOURCE = """
import asyncio
import json


async def main(queue, args):
    with open(args["file"], encoding="utf-8") as file:
        text = file.read()
    for _ in range(args["count"]):
        await queue.put(json.loads(text))
"""


def rulebook(rules: int, count: int, is_match: bool, action: object = None) -> str:
    """Returns a rulebook with so many rules, and a source of so many events."""
    first = 0 if is_match else 1
    search = r"^(fix|feat)\(.*\): "
    listed = [
        {
            "name": f"rule {number}",
            "condition": f'event.body.repository.name == "repository-{number}"'
            f' and event.body.commits[0].message is search("{search}") and event.body.size < 100',
            "action": action or {"none": {}},
        }
        for number in range(first, first + rules)
    ]
    source = {"name": "pushes", "pushes": {"file": str(PUSH), "count": count}}
    # JSON is YAML.
    return json.dumps([{"name": "bench", "hosts": "all", "sources": [source], "rules": listed}])


def cpu_seconds(program: Path, folder: Path, text: str) -> float:
    """Runs a rulebook until its source ends; returns the CPU time of all its processes."""
    file = folder / "rulebook.yml"
    file.write_text(text)
    command = [str(program), "--rulebook", str(file), "--source-dir", str(folder)]
    command += ["--inventory", str(folder / "inventory.yml")]
    path = f"{program.parent}:{os.environ.get('PATH', '')}"
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=folder, env=os.environ | {"PATH": path}, stdout=log, stderr=log
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"ansible-rulebook fails:\n{(folder / 'log').read_text()[-2000:]}")
    return usage.ru_utime + usage.ru_stime


def check_matches(program: Path, folder: Path) -> None:
    """Ends this program unless one rule matches each event where it should."""
    for is_match, expected in ((True, 2), (False, 0)):
        cpu_seconds(program, folder, rulebook(3, 2, is_match, {"debug": {"msg": "MATCHED"}}))
        found = (folder / "log").read_text().count("MATCHED")
        if found != expected:
            raise SystemExit(f"ansible-rulebook finds `{found}` matches instead of `{expected}`")


def events_per_cpu_second(few: tuple[int, float], many: tuple[int, float]) -> float:
    """Returns the rate between two runs, given the events and CPU-seconds of each."""
    events, seconds = many[0] - few[0], many[1] - few[1]
    if seconds <= 0:
        raise SystemExit("the start took longer than the events; use more `--events`")
    return events / seconds


def peer_rate(program: Path, folder: Path, rules: int, events: int, is_match: bool) -> float:
    """Measures ansible-rulebook in one turn."""
    runs = []
    for count in (events // FEW, events):
        runs.append((count, cpu_seconds(program, folder, rulebook(rules, count, is_match))))
    return events_per_cpu_second(*runs)


def own_rates(program: str) -> dict[str, float]:
    """Measures Imori in one turn."""
    command = [load_tool(program), "automation", "--only", "rules", "--rounds", "1", "--json", "-"]
    run = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return {row["name"]: row["median"] for row in json.loads(run.stdout)["figures"]}


def main() -> int:
    """Prints the medians of all turns."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--imori", default=str(ROOT / "target/dist/imori"))
    peer = ROOT / ".tools/rulebook/bin/ansible-rulebook"
    parser.add_argument("--rulebook", type=Path, default=peer, help="the program ansible-rulebook")
    parser.add_argument("--rules", type=int, nargs="+", default=[1, 100])
    parser.add_argument("--events", type=int, default=20_000, help="events of each run of the peer")
    parser.add_argument("--rounds", type=int, default=3)
    choice = parser.parse_args()
    if not choice.rulebook.exists():
        print(f"`{choice.rulebook}` is absent; see --help for how to install it", file=sys.stderr)
        return 1
    found: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="imori-rulebook-") as name:
        folder = Path(name)
        (folder / "pushes.py").write_text(SOURCE)
        (folder / "inventory.yml").write_text("all: {hosts: {localhost: {ansible_connection: local}}}\n")
        check_matches(choice.rulebook, folder)
        for _ in range(choice.rounds):
            rates = own_rates(choice.imori)
            for title, row in {
                "imori, 1 rule, which matches": "rules-1",
                "imori, 100 rules, one matches": "rules-100-events",
                "imori, 100 rules without `equals`, one matches": "rules-scan-100-events",
            }.items():
                found.setdefault(title, []).append(rates[row])
            for rules in choice.rules:
                for is_match in (True, False):
                    count = "1 rule" if rules == 1 else f"{rules} rules"
                    title = f"ansible-rulebook, {count}, {'one' if is_match else 'none'} matches"
                    rate = peer_rate(choice.rulebook, folder, rules, choice.events, is_match)
                    found.setdefault(title, []).append(rate)
    print("| rules | events per CPU-second |\n|---|---|")
    for title, each in found.items():
        spread = f"{statistics.median(each):.0f} ({min(each):.0f} to {max(each):.0f})"
        print(f"| {title} | {spread} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
