"""Checks a change in a few minutes: what it touches is linted and tested, and what is built on that is linted.

Usage: ci/quick.py [BASE]

The change is what the working tree has beside the commit BASE, by default the last one. `make test` remains the proof.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SEEDS = "200"

# The simulator runs these and what they are built on; a change elsewhere cannot break a seed.
SIMULATED = "imori-sim"
CONVERSATIONS = "imori-conversations"

# Files whose change may touch every package.
OF_ALL = {"Cargo.lock", "Cargo.toml", "clippy.toml", "rust-toolchain.toml"}


def output(*command: str) -> str:
    """Returns what a command prints."""
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def changed_files(base: str) -> list[str]:
    """Returns the files that differ from a commit, and those that are not tracked yet."""
    differ = output("git", "diff", "--name-only", base)
    untracked = output("git", "ls-files", "--others", "--exclude-standard")
    return sorted({*differ.splitlines(), *untracked.splitlines()})


class Workspace:
    """The packages of the workspace, and which is built on which."""

    def __init__(self) -> None:
        metadata = json.loads(output("cargo", "metadata", "--format-version", "1", "--no-deps", "--offline"))
        packages = metadata["packages"]
        self.folders = {
            package["name"]: Path(package["manifest_path"]).parent.relative_to(ROOT).as_posix() for package in packages
        }
        self._needs = {
            package["name"]: {need["name"] for need in package["dependencies"]} & self.folders.keys()
            for package in packages
        }

    def changed(self, files: list[str]) -> set[str]:
        """Returns the packages that have one of these files."""
        if OF_ALL & set(files):
            return set(self.folders)
        return {name for name, folder in self.folders.items() if any(file.startswith(f"{folder}/") for file in files)}

    def above(self, names: set[str]) -> set[str]:
        """Returns the packages that are built on one of these, directly or not, and these."""
        found = set(names)
        while more := {name for name, needs in self._needs.items() if needs & found} - found:
            found |= more
        return found


def run(*command: str, folder: Path = ROOT, **environment: str) -> bool:
    """Runs a command, shows it with its duration, and returns whether it succeeded."""
    begin = time.monotonic()
    code = subprocess.run(command, cwd=folder, env={**os.environ, **environment}, check=False).returncode
    words = "passed" if code == 0 else f"FAILED (exit code {code})"
    print(f"---- {' '.join(command)}: {words} in {time.monotonic() - begin:.0f} s", flush=True)
    return code == 0


def rust(files: list[str]) -> list[bool]:
    """Lints the changed packages and those above, and tests the changed ones.

    Each package is tested by a run of cargo of its own: features of dependencies follow from the packages of a run, so
    that another set of packages would have them compiled anew.
    """
    workspace = Workspace()
    changed = workspace.changed(files)
    if not changed:
        return []
    above = workspace.above(changed)
    tested = changed - {SIMULATED}
    if CONVERSATIONS in above:
        tested |= {CONVERSATIONS}
    results = [
        run("cargo", "fmt", "--all", "--check"),
        run("cargo", "clippy", "--workspace", "--all-targets", "--locked", "--quiet", "--", "-D", "warnings"),
    ]
    for name in sorted(tested):
        results.append(run("cargo", "test", "--package", name, "--tests", "--locked", "--quiet", "--no-fail-fast"))
    if SIMULATED in above:
        simulate = ("cargo", "test", "--package", SIMULATED, "--test", "simulation", "--locked", "--quiet")
        filters = ("--", "every_property_holds", "the_same_seed")
        results.append(run(*simulate, *filters, IMORI_SIM_SEEDS=SEEDS))
    return results


def python(files: list[str]) -> list[bool]:
    """Lints Python, if any of it has changed."""
    if not any(file.endswith(".py") for file in files):
        return []
    return [run("make", "--no-print-directory", "check-python")]


def console(files: list[str]) -> list[bool]:
    """Checks and tests the console, if it has changed."""
    if not any(file.startswith("console/") for file in files):
        return []
    return [run("make", "--no-print-directory", "check-console", "unit-console")]


def main() -> int:
    """Runs what the change asks for; the exit code is 1 if something failed."""
    begin = time.monotonic()
    files = changed_files(sys.argv[1] if len(sys.argv) > 1 else "HEAD")
    if not files:
        print("nothing is changed")
        return 0
    tree = run("make", "--no-print-directory", "check-tree")
    results = [tree, *rust(files), *python(files), *console(files)]
    print(f"{sum(results)} of {len(results)} passed in {time.monotonic() - begin:.0f} s")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
