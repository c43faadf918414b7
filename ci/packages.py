"""Packs a binary of `imori`: a Debian package, an archive, a wheel and an npm package, with a bill of materials and the
checksums of all; with the address of the archive, also a Homebrew formula.

Usage: ci/packages.py BINARY OUTPUT_FOLDER [--version VERSION] [--url-base URL] [--quick]

`make packages` builds the binary first. Every file in a package carries the time of the last commit, so a second build
gives the same bytes. `--quick` leaves out compression, and the limit of size.
"""

from __future__ import annotations

import argparse
import base64
import gzip
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
DEPLOY = ROOT / "deploy"
SUMMARY = "A message broker for the clients you already have: STOMP, NATS, AMQP 0-9-1 and 1.0"

# The stripped program, in bytes: what an image of it holds, and what every package compresses.
PROGRAM_BYTES_MAX = 32_000_000

# The names of each architecture in Debian, in Node.js and in Homebrew.
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
NODE_ARCHITECTURES = {"x86_64": "x64", "aarch64": "arm64"}
HOMEBREW_ARCHITECTURES = {"x86_64": "x86_64", "aarch64": "arm64"}
SHELLS = {
    "bash": "usr/share/bash-completion/completions/imori",
    "fish": "usr/share/fish/vendor_completions.d/imori.fish",
    "zsh": "usr/share/zsh/vendor-completions/_imori",
}


def run(*command: str | Path) -> str:
    """Runs a program to a good end and returns its output."""
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout


class Packer:
    """What all packages share: the binary, its version, and the time of everything."""

    def __init__(self, binary: Path, output: Path, version: str, *, is_quick: bool) -> None:
        self.output = output
        self.version = version
        self.is_quick = is_quick
        self.machine = platform.machine()
        self.time = int(os.environ.get("SOURCE_DATE_EPOCH") or run("git", "log", "-1", "--format=%ct"))
        self.tree = output / "tree"
        shutil.rmtree(self.tree, ignore_errors=True)
        self._fill(binary)

    def _fill(self, binary: Path) -> None:
        """Puts every installed file where it belongs under a root."""
        program = self._put(binary, "usr/bin/imori", 0o755)
        if not self.is_quick:
            run("strip", program)
            if (size := program.stat().st_size) > PROGRAM_BYTES_MAX:
                sys.exit(f"{binary}: {size} bytes after `strip`; at most {PROGRAM_BYTES_MAX} are packed")
        self.is_static = "INTERP" not in run("readelf", "--program-headers", "--wide", program)
        self._put(DEPLOY / "systemd/imori.service", "usr/lib/systemd/system/imori.service")
        self._put(DEPLOY / "debian/imori.toml", "etc/imori/imori.toml")
        self._put(ROOT / "docs/reference/imori.toml", "usr/share/doc/imori/imori.toml")
        self._put(ROOT / "CHANGELOG.md", "usr/share/doc/imori/CHANGELOG.md")
        self._put(DEPLOY / "debian/copyright", "usr/share/doc/imori/copyright")
        for shell, path in SHELLS.items():
            self._write(run(program, "completions", shell).encode(), path)
        with tempfile.TemporaryDirectory() as folder:
            run(program, "man", folder)
            for page in sorted(Path(folder).iterdir()):
                self._write(gzip.compress(page.read_bytes(), mtime=0), f"usr/share/man/man1/{page.name}.gz")

    def _put(self, source: Path, path: str, mode: int = 0o644) -> Path:
        return self._write(source.read_bytes(), path, mode)

    def _write(self, text: bytes, path: str, mode: int = 0o644) -> Path:
        target = self.tree / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text)
        target.chmod(mode)
        return target

    def _files(self) -> Iterator[tuple[str, Path]]:
        for path in sorted(self.tree.rglob("*")):
            if path.is_file():
                yield str(path.relative_to(self.tree)), path

    def debian(self) -> Path:
        """The Debian package, by dpkg-deb."""
        architecture = ARCHITECTURES[self.machine]
        root = self.output / "debian"
        shutil.rmtree(root, ignore_errors=True)
        shutil.copytree(self.tree, root)
        size = sum(path.stat().st_size for _, path in self._files()) // 1024
        control = (DEPLOY / "debian/control").read_text()
        for name, value in {
            "VERSION": self.version,
            "ARCHITECTURE": architecture,
            "SIZE": str(size),
            "DEPENDS": "passwd" if self.is_static else "passwd, libc6",
        }.items():
            control = control.replace(f"@{name}@", value)
        meta = root / "DEBIAN"
        meta.mkdir()
        (meta / "control").write_text(control)
        (meta / "conffiles").write_text("/etc/imori/imori.toml\n")
        sums = (f"{hashlib.md5(path.read_bytes()).hexdigest()}  {name}\n" for name, path in self._files())
        (meta / "md5sums").write_text("".join(sums))
        for script in ("postinst", "prerm", "postrm"):
            shutil.copy(DEPLOY / "debian" / script, meta / script)
            (meta / script).chmod(0o755)
        package = self.output / f"imori_{self.version}_{architecture}.deb"
        compression = "-Znone" if self.is_quick else "-Zxz"
        environment = os.environ | {"SOURCE_DATE_EPOCH": str(self.time)}
        command = ["dpkg-deb", "--root-owner-group", compression, "--build", str(root), str(package)]
        subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
        shutil.rmtree(root)
        return package

    def archive(self) -> Path:
        """Packs one folder as a compressed archive. With a static program, its content can be the context of an image."""
        name = f"imori-{self.version}-{self.machine}-linux" + ("-musl" if self.is_static else "")
        path = self.output / f"{name}.tar.gz"
        files = {name_at_root: ROOT / name_at_root for name_at_root in ("LICENSE", "README.md")}
        files |= {member.removeprefix("usr/"): source for member, source in self._files()}
        if self.is_static:
            files["Dockerfile"] = DEPLOY / "docker/Dockerfile"
            files |= {f"container/{name}": DEPLOY / "docker" / name for name in ("group", "imori.toml", "passwd")}
        self._pack(path, name, files)
        return path

    def formula(self, archive: Path, url_base: str) -> Path:
        """A Homebrew formula that downloads the archive from below an address."""
        text = (DEPLOY / "homebrew/imori.rb").read_text()
        for name, value in {
            "ARCHITECTURE": HOMEBREW_ARCHITECTURES[self.machine],
            "ARCHIVE": archive.name,
            "SHA256": hashlib.sha256(archive.read_bytes()).hexdigest(),
            "URL_BASE": url_base.rstrip("/"),
            "VERSION": self.version,
        }.items():
            text = text.replace(f"@{name}@", value)
        path = self.output / "imori.rb"
        # The template's comment is about the template.
        path.write_text(text.partition("\n")[2])
        return path

    def npm(self) -> Path:
        """An npm package whose only content is the program, so that `npm install` and `npx` give the command `imori`."""
        path = self.output / f"imori-{self.version}.tgz"
        manifest = {
            "name": "imori",
            "version": self.version,
            "description": SUMMARY,
            "license": "Apache-2.0",
            "bin": {"imori": "bin/imori"},
            "os": ["linux"],
            "cpu": [NODE_ARCHITECTURES[self.machine]],
        }
        if not self.is_static:
            manifest["libc"] = ["glibc"]
        written = self.output / "package.json"
        written.write_text(json.dumps(manifest, indent=2) + "\n")
        written.chmod(0o644)
        files = {name_at_root: ROOT / name_at_root for name_at_root in ("LICENSE", "README.md")}
        self._pack(path, "package", files | {"package.json": written, "bin/imori": self.tree / "usr/bin/imori"})
        written.unlink()
        return path

    def _pack(self, path: Path, folder: str, files: dict[str, Path]) -> None:
        """Writes a compressed archive of one folder."""

        def plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
            member.mtime, member.uid, member.gid, member.uname, member.gname = self.time, 0, 0, "", ""
            return member

        level = 0 if self.is_quick else 9
        with (
            path.open("wb") as file,
            gzip.GzipFile("", "wb", level, file, mtime=0) as packed,
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
        ):
            for member, source in files.items():
                archive.add(source, f"{folder}/{member}", filter=plain)

    def wheel(self) -> Path:
        """A wheel whose only content is the program, so that `pip install` gives the command `imori`."""
        tag = f"py3-none-linux_{self.machine}"
        if self.is_static:
            tag = f"py3-none-manylinux2014_{self.machine}.musllinux_1_1_{self.machine}"
        info = f"imori-{self.version}.dist-info"
        files = {
            f"imori-{self.version}.data/scripts/imori": (self.tree / "usr/bin/imori").read_bytes(),
            f"{info}/METADATA": (
                f"Metadata-Version: 2.4\nName: imori\nVersion: {self.version}\nSummary: {SUMMARY}\n"
                "License-Expression: Apache-2.0\nDescription-Content-Type: text/markdown\n\n"
                + (ROOT / "README.md").read_text()
            ).encode(),
            f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: imori\nRoot-Is-Purelib: false\nTag: {tag}\n".encode(),
            f"{info}/licenses/LICENSE": (ROOT / "LICENSE").read_bytes(),
        }
        record = "".join(f"{name},sha256={digest(text)},{len(text)}\n" for name, text in files.items())
        files[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode()
        path = self.output / f"imori-{self.version}-{tag}.whl"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED if self.is_quick else zipfile.ZIP_DEFLATED) as packed:
            for name, text in files.items():
                # The oldest time that the format can hold.
                member = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
                member.external_attr = (0o100755 if "/scripts/" in name else 0o100644) << 16
                member.compress_type = packed.compression
                packed.writestr(member, text)
        return path

    def bill_of_materials(self) -> Path:
        """What the program is made of, by ci/sbom.py."""
        path = self.output / f"imori-{self.version}.cdx.json"
        path.write_text(run(sys.executable, "ci/sbom.py", self.version, str(self.time)))
        return path


def digest(text: bytes) -> str:
    """The hash of a file as a wheel records it.

    >>> digest(b"")
    '47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU'
    """
    return base64.urlsafe_b64encode(hashlib.sha256(text).digest()).rstrip(b"=").decode()


def current_version() -> str:
    """The version in the workspace's manifest."""
    found = re.search(r'^\[workspace\.package\]\nversion = "([^"]+)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)
    if found is None:
        sys.exit("Cargo.toml: `workspace.package` has no version")
    return found[1]


def main() -> None:
    """Writes the packages, and SHA256SUMS beside them."""
    arguments = argparse.ArgumentParser(description="Packs a binary of imori.")
    arguments.add_argument("binary", type=Path)
    arguments.add_argument("output", type=Path)
    arguments.add_argument("--version", default=current_version())
    arguments.add_argument("--url-base", help="make a Homebrew formula for an archive below this address")
    arguments.add_argument("--quick", action="store_true", help="do not compress")
    given = arguments.parse_args()
    output = given.output.resolve()
    output.mkdir(parents=True, exist_ok=True)
    packer = Packer(given.binary.resolve(), output, given.version, is_quick=given.quick)
    archive = packer.archive()
    packages = [packer.debian(), archive, packer.wheel(), packer.npm(), packer.bill_of_materials()]
    if given.url_base:
        packages.append(packer.formula(archive, given.url_base))
    shutil.rmtree(packer.tree)
    sums = (f"{hashlib.sha256(package.read_bytes()).hexdigest()}  {package.name}\n" for package in packages)
    (output / "SHA256SUMS").write_text("".join(sums))
    for package in packages:
        print(f"{package.name}: {package.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
