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
    shown = " ".join(command).removeprefix(f"{ROOT}/")
    print(f"---- {shown}: {words} in {time.monotonic() - begin:.0f} s", flush=True)
    return code == 0


def test_programs() -> list[tuple[Path, Path]]:
    """Builds the tests of all packages, and returns each program with the folder of its package.

    A run of cargo for one package would compile dependencies anew, because their features follow from the packages of
    a run. So all are built, of which most are there from `make test`, and the tests of few are run.
    """
    command = (
        "cargo",
        "test",
        "--workspace",
        "--locked",
        "--quiet",
        "--no-run",
        "--message-format=json-render-diagnostics",
    )
    found = []
    for message in map(json.loads, output(*command).splitlines()):
        if message.get("executable") and message["profile"]["test"]:
            found.append((Path(message["manifest_path"]).parent, Path(message["executable"])))
    return sorted(found)


def tests(names: set[str], simulated: bool) -> list[bool]:
    """Runs the tests of these packages, and the simulator for few seeds."""
    begin = time.monotonic()
    try:
        programs = test_programs()
    except subprocess.CalledProcessError:
        return [False]
    print(f"---- the tests are built in {time.monotonic() - begin:.0f} s", flush=True)
    results = []
    for folder, program in programs:
        environment = {"CARGO_MANIFEST_DIR": str(folder)}
        if simulated and folder.name == SIMULATED:
            filters = ("--quiet", "every_property_holds", "the_same_seed")
            results.append(run(str(program), *filters, folder=folder, IMORI_SIM_SEEDS=SEEDS, **environment))
        if folder.name in names:
            results.append(run(str(program), "--quiet", "--skip", "seeds::", folder=folder, **environment))
    return results


def rust(files: list[str]) -> list[bool]:
    """Lints the changed packages and those above, and tests the changed ones."""
    workspace = Workspace()
    changed = workspace.changed(files)
    if not changed:
        return []
    above = workspace.above(changed)
    tested = changed | (above & {CONVERSATIONS})
    lints = ("cargo", "clippy", "--workspace", "--all-targets", "--locked", "--quiet", "--", "-D", "warnings")
    return [
        run("cargo", "fmt", "--all", "--check"),
        run(*lints),
        *tests({Path(workspace.folders[name]).name for name in tested}, SIMULATED in above),
    ]


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
