"""Writes what a binary of `imori` is made of, as a software bill of materials: CycloneDX 1.5 in JSON.

Usage: ci/sbom.py VERSION TIME

Prints the document, which is the same for the same arguments. TIME is its date, in seconds since the epoch; ci/packages.py
passes the time of the last commit. It lists the crates that are linked or that build what is linked, the npm packages of
the web console, and the C code that comes inside of crates.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
import tomllib
from collections import deque
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent

# C code that has no manifest of its own: the crate that it comes in, the file there that has its version, a pattern for
# that, and its licence.
BUNDLED = {
    "mimalloc": ("libmimalloc-sys", "c_src/mimalloc/v3/include/mimalloc.h", r"MI_MALLOC_VERSION (\d+)", "MIT"),
    "mruby": ("imori-ruby", "Cargo.toml", r'mruby3-sys = "=([^"]+)"', "MIT"),
    "sqlite": ("libsqlite3-sys", "sqlite3/sqlite3.h", r'SQLITE_VERSION +"([^"]+)"', "blessing"),
}

Component = dict[str, Any]


def metadata() -> dict[str, Any]:
    """What Cargo knows of all crates, for this machine."""
    host = re.search(r"host: (\S+)", run("rustc", "-vV"))
    assert host is not None
    command = ["cargo", "metadata", "--locked", "--format-version=1", f"--filter-platform={host[1]}"]
    found: dict[str, Any] = json.loads(run(*command))
    return found


def run(*command: str) -> str:
    """Runs a program to a good end and returns its output."""
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout


def linked(of: dict[str, Any]) -> list[dict[str, Any]]:
    """The crates that `imori` is made of, without those for tests alone, sorted by name and version."""
    nodes = {node["id"]: node for node in of["resolve"]["nodes"]}
    packages = {package["id"]: package for package in of["packages"]}
    [start] = [package["id"] for package in of["packages"] if package["name"] == "imori"]
    found, waiting = {start}, deque([start])
    while waiting:
        for dependency in nodes[waiting.popleft()]["deps"]:
            is_for_tests = all(kind["kind"] == "dev" for kind in dependency["dep_kinds"])
            if not is_for_tests and dependency["pkg"] not in found:
                found.add(dependency["pkg"])
                waiting.append(dependency["pkg"])
    crates = (packages[crate] for crate in found)
    return sorted(crates, key=lambda crate: (crate["name"], crate["version"]))


def crate_component(crate: dict[str, Any], checksums: dict[tuple[str, str], str]) -> Component:
    """A crate; one of this workspace has no checksum."""
    name, version = crate["name"], crate["version"]
    component: Component = {"type": "library", "name": name, "version": version}
    component["purl"] = component["bom-ref"] = f"pkg:cargo/{name}@{version}"
    # Before SPDX expressions, a slash stood between alternatives.
    licence = (crate["license"] or "").replace("/", " OR ")
    if licence:
        component["licenses"] = [{"expression": licence}]
    if checksum := checksums.get((name, version)):
        component["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    return component


def bundled_component(name: str, crates: list[dict[str, Any]]) -> Component:
    """The C code inside of a crate."""
    crate_name, file, pattern, licence = BUNDLED[name]
    [manifest] = [crate["manifest_path"] for crate in crates if crate["name"] == crate_name]
    found = re.search(pattern, (Path(manifest).parent / file).read_text())
    assert found is not None, f"{crate_name}: {file} has no version"
    version = found[1]
    if version.isdecimal():
        # The major version, and two digits each for the others.
        version = f"{int(version[:-4])}.{int(version[-4:-2])}.{int(version[-2:])}"
    purl = f"pkg:generic/{name}@{version}"
    component: Component = {"type": "library", "name": name, "version": version, "purl": purl, "bom-ref": purl}
    return component | {"licenses": [{"license": {"id": licence}}]}


def console_components() -> list[Component]:
    """The npm packages that the web console is made of; what builds it is not in it."""
    lock = json.loads((ROOT / "console/package-lock.json").read_text())
    components = []
    for path, package in sorted(lock["packages"].items()):
        if not path or package.get("dev"):
            continue
        name = path.rpartition("node_modules/")[2]
        purl = f"pkg:npm/{name.replace('@', '%40')}@{package['version']}"
        component = {"type": "library", "name": name, "version": package["version"]}
        components.append(component | {"purl": purl, "bom-ref": purl, "licenses": [{"expression": package["license"]}]})
    return components


def document(version: str, seconds: int) -> dict[str, Any]:
    """The whole document."""
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())
    checksums = {
        (package["name"], package["version"]): package["checksum"]
        for package in lock["package"]
        if "checksum" in package
    }
    known = metadata()
    crates = linked(known)
    components = [crate_component(crate, checksums) for crate in crates if crate["name"] != "imori"]
    components += [bundled_component(name, known["packages"]) for name in BUNDLED]
    components += console_components()
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds)),
            "component": {
                "type": "application",
                "bom-ref": f"pkg:generic/imori@{version}",
                "name": "imori",
                "version": version,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            },
        },
        "components": components,
    }


def main() -> None:
    """Prints the document."""
    version, seconds = sys.argv[1:]
    print(json.dumps(document(version, int(seconds)), indent=1))


if __name__ == "__main__":
    main()
