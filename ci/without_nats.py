"""Builds server and admin without NATS: a protocol is its crate, its file and its lines, and streams are nobody's.

In a copy of the tree it deletes `crates/imori-nats` and what is built on it, the file and the lines of NATS in the
server's tables of protocols, and the monitor, whose pages are those of nats-server.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
"""The folder of the project."""

CRATE = "imori-nats"
"""What is left out."""

KEPT = ("imori-server", "imori-admin")
"""What has to build without it."""


def main() -> int:
    """Returns the exit code of the build."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        copy(tree)
        leave_out(tree)
        left = subprocess.run(
            ["grep", "-rn", "imori_nats", *(f"crates/{name}/src" for name in KEPT)],
            cwd=tree,
            capture_output=True,
            text=True,
            check=False,
        )
        if left.stdout:
            print(f"these lines name the crate that is left out:\n{left.stdout}", file=sys.stderr)
            return 1
        target = ROOT / "target" / "without-nats"
        command = ["cargo", "check", "--quiet", "--target-dir", str(target), *(f"--package={name}" for name in KEPT)]
        return subprocess.run(
            command, cwd=tree, env=os.environ | {"RUSTFLAGS": "-A dead_code -A unused"}, check=False
        ).returncode


def copy(tree: Path) -> None:
    """Copies what git knows of the tree, as it is now."""
    known = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    ).stdout
    for name in known.decode().split("\0"):
        source = ROOT / name
        if name and source.is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, tree / name)


def leave_out(tree: Path) -> None:
    """Deletes the crate, the crates that are built on it, its lines in the tables, and the monitor."""
    gone = dependents(tree, CRATE) - set(KEPT)
    for name in gone:
        shutil.rmtree(tree / "fuzz" if name == "imori-fuzz" else tree / "crates" / name)
    lines = [rf'    "crates/{name}",\n' for name in gone] + [r'    "fuzz",\n']
    lines += [rf"^{name} = \{{ path = [^\n]*\n" for name in gone]
    lines += [rf"\[profile\.[a-z]+\.package\.{name}\]\n(?:[^\n\[]+\n)+" for name in gone]
    cut(tree / "Cargo.toml", *lines, are_sure=False)
    for manifest in tree.glob("crates/*/Cargo.toml"):
        cut(manifest, *(rf"^{other}\.workspace = true\n" for other in gone), are_sure=False)
    server = tree / "crates/imori-server/src/protocols"
    (server / "nats.rs").unlink()
    cut(server / "mod.rs", r"mod nats;\n")
    cut(server / "table.rs", r"    /// NATS[^\n]*\n    Nats, nats: [^\n]*\n", r", nats(?=[,}])")
    cut(server / "parts.rs", r"    nats::PART,\n|nats::PART, ", r", nats(?=[,}])")
    source = tree / "crates/imori-server/src"
    spoken = source / "config/spoken.rs"
    cut(spoken, r"    /// NATS\.\n    Nats,\n", r" Spoken::Nats,", r" *Spoken::Nats => [^\n]*\n")
    replace(spoken, "[Spoken; 4]", "[Spoken; 3]")
    replace(spoken, "ProtocolName::Nats => Some(Spoken::Nats)", "ProtocolName::Nats => None")
    cut(source / "shared.rs", r" \|\| \*protocol == Some\(Spoken::Nats\)")
    admin = tree / "crates/imori-admin/src"
    shutil.rmtree(admin / "monitor")
    cut(admin / "lib.rs", r"mod monitor;\n", r"        pub use crate::monitor::[^\n]*\n")
    cut(admin / "services.rs", r"use crate::monitor::[^\n]*\n", r"        monitor: monitor::[^\n]*\n")
    replace(admin / "services.rs", "gateway: None,\n", "gateway: None,\n        monitor: Router::new(),\n")


def dependents(tree: Path, crate: str) -> set[str]:
    """The crates that are built on a crate, and itself; what is for tests alone does not count."""
    paths = [*tree.glob("crates/*/Cargo.toml"), tree / "fuzz/Cargo.toml"]
    manifests = {path: path.read_text().split("[dev-dependencies]")[0] for path in paths}
    names = {path: re.search(r'^name = "([^"]+)"', text, re.MULTILINE) for path, text in manifests.items()}
    found = {crate}
    while True:
        more = {
            name[1]
            for path, text in manifests.items()
            if (name := names[path])
            and name[1] not in KEPT
            and any(re.search(rf"^{other}[. ]", text, re.MULTILINE) for other in found)
        }
        if more <= found:
            return found
        found |= more


def cut(path: Path, *patterns: str, are_sure: bool = True) -> None:
    """Removes what matches these patterns, each of which has to match if that is sure."""
    text = path.read_text()
    for pattern in patterns:
        text, count = re.subn(pattern, "", text, flags=re.MULTILINE)
        if are_sure and count == 0:
            sys.exit(f"{path.name} has nothing like {pattern!r}; amend this script")
    path.write_text(text)


def replace(path: Path, text: str, other: str) -> None:
    """Replaces a text, which has to be there once."""
    whole = path.read_text()
    if whole.count(text) != 1:
        sys.exit(f"{path.name} does not have {text!r} once; amend this script")
    path.write_text(whole.replace(text, other))


if __name__ == "__main__":
    sys.exit(main())
