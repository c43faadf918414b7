"""The packages, of the binary under test: installed, upgraded, removed, and made twice."""

import json
import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from harness.imori import BINARY, REPOSITORY

# The root of this system with all changes in memory, its own network, and nothing of it afterwards.
CLEAN_ROOT = r"""
set -eu
mount -t tmpfs none "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root"
mount --rbind /proc "$1/root/proc"
mount --rbind /dev "$1/root/dev"
mkdir -p "$1/root/packages"
mount --bind "$2" "$1/root/packages"
ip link set lo up
exec chroot "$1/root" sh -eu
"""

PYTHON = REPOSITORY / ".tools/deploy/bin/python"
VALIDATE = """
import sys
from pathlib import Path
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

error = JsonStrictValidator(SchemaVersion.V1_5).validate_str(Path(sys.argv[1]).read_text())
assert error is None, error
"""

CONFIG = "/etc/imori/imori.toml"
START = f"""
mkfifo -m 666 /ready
setpriv --reuid imori --regid imori --init-groups \\
    sh -c 'exec imori serve --config {CONFIG} --ready-fd 3 3>/ready' >/dev/null 2>>/broker.log &
broker=$!
read -r line </ready
test "$line" = ready
rm /ready
"""
STOP = """
kill -TERM "$broker"
wait "$broker"
"""


def pack(folder: Path, version: str) -> Path:
    """Makes the packages of a version in a folder of its own."""
    output = folder / version
    command = [sys.executable, "ci/packages.py", BINARY, str(output), "--version", version]
    command += ["--url-base", "https://packages.example/imori", "--quick"]
    subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True)
    return output


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the packages of two versions, 1.0.0 and 1.0.1."""
    folder = tmp_path_factory.mktemp("packages")
    for version in ("1.0.0", "1.0.1"):
        pack(folder, version)
    return folder


def in_clean_root(packages: Path, folder: Path, script: str) -> str:
    """Runs a script in a copy of this system, and returns its output."""
    command = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child"]
    ended = subprocess.run(
        [*command, "sh", "-c", CLEAN_ROOT, "sh", str(folder), str(packages)],
        input=script,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
        env={
            "HOME": "/root",
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            "DEBIAN_FRONTEND": "noninteractive",
        },
    )
    assert ended.returncode == 0, ended.stdout
    return ended.stdout


def can_make_roots(folder: Path) -> bool:
    """Returns whether this process may mount."""
    probe = 'mount -t tmpfs none "$1" && mkdir "$1/u" "$1/w" "$1/m" && mount -t overlay overlay '
    probe += '-o "lowerdir=/,upperdir=$1/u,workdir=$1/w" "$1/m"'
    command = ["unshare", "--mount", "--net", "--pid", "--fork", "sh", "-c", probe, "sh"]
    return subprocess.run([*command, str(folder)], capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="this is no Debian")
def test_the_debian_package_is_installed_upgraded_and_removed(
    packages: Path, tmp_path: Path
) -> None:
    if os.getuid() != 0 or not can_make_roots(tmp_path):
        pytest.skip("a clean root takes the right to mount")
    install = "dpkg --force-unsafe-io --install /packages/{0}/imori_{0}_*.deb >/dpkg.log 2>&1"
    status = "dpkg-query --show --showformat '${Version} ${Status}\\n' imori"
    output = in_clean_root(
        packages,
        tmp_path,
        "\n".join(
            [
                install.format("1.0.0"),
                f"imori config check {CONFIG} >/dev/null",
                "stat --format '%U %a %n' /var/lib/imori",
                START,
                "imori pub --header persistent:true /queue/kept 'a message' >/dev/null",
                "imori status --data-dir /var/lib/imori | grep -c '^queues'",
                STOP,
                f"echo '# of this host' >>{CONFIG}",
                install.format("1.0.1"),
                status,
                f"tail -n 1 {CONFIG}",
                START,
                "imori sub --count 1 /queue/kept",
                STOP,
                "dpkg --force-unsafe-io --remove imori >/dev/null",
                f"test ! -e /usr/bin/imori && test -e {CONFIG}",
                "dpkg --force-unsafe-io --purge imori 2>&1 | grep '^imori: '",
                "test ! -e /etc/imori && test -d /var/lib/imori/journal",
            ]
        ),
    )
    assert output.splitlines() == [
        "imori 700 /var/lib/imori",
        "1",
        "1.0.1 install ok installed",
        "# of this host",
        "a message",
        "imori: /var/lib/imori still has the broker's data",
    ]


def test_the_archive_runs_where_it_is_unpacked(packages: Path, tmp_path: Path) -> None:
    (archive,) = (packages / "1.0.0").glob("*.tar.gz")
    shutil.unpack_archive(archive, tmp_path, filter="data")
    (folder,) = tmp_path.iterdir()
    said = subprocess.run([folder / "bin/imori", "--help"], check=True, capture_output=True)
    assert b"imori <COMMAND>" in said.stdout
    # Only a static program runs in an image without a distribution.
    libraries = subprocess.run(["ldd", folder / "bin/imori"], capture_output=True, check=False)
    assert ("-musl" in archive.name) == (b"=>" not in libraries.stdout)
    copied = {"bin/imori", "container/group", "container/imori.toml", "container/passwd"}
    if "-musl" in archive.name:
        lines = re.findall(r"^COPY (?!--from)(.*) \S+$", (folder / "Dockerfile").read_text(), re.M)
        assert {source for line in lines for source in line.split()} == copied
        assert all((folder / source).is_file() for source in copied)
    else:
        assert not (folder / "Dockerfile").exists()


def test_pip_installs_the_wheel(packages: Path, tmp_path: Path) -> None:
    (wheel,) = (packages / "1.0.0").glob("*.whl")
    venv.create(tmp_path, with_pip=True)
    pip = tmp_path / "bin/pip"
    install = [str(pip), "install", "--quiet", "--no-index", "--no-deps", str(wheel)]
    subprocess.run(install, check=True, capture_output=True)
    said = subprocess.run([tmp_path / "bin/imori", "--help"], check=True, capture_output=True)
    assert b"imori <COMMAND>" in said.stdout
    subprocess.run([pip, "uninstall", "--quiet", "--yes", "imori"], check=True)
    assert not (tmp_path / "bin/imori").exists()


@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is missing")
def test_npm_installs_the_package(packages: Path, tmp_path: Path) -> None:
    package = packages / "1.0.0/imori-1.0.0.tgz"
    install = ["npm", "install", "--global", "--offline", "--prefix", str(tmp_path), str(package)]
    subprocess.run(install, check=True, capture_output=True)
    said = subprocess.run([tmp_path / "bin/imori", "--help"], check=True, capture_output=True)
    assert b"imori <COMMAND>" in said.stdout
    remove = ["npm", "uninstall", "--global", "--prefix", str(tmp_path), "imori"]
    subprocess.run(remove, check=True, capture_output=True)
    assert not (tmp_path / "bin/imori").exists()


@pytest.mark.skipif(shutil.which("ruby") is None, reason="ruby is missing")
def test_the_formula_installs_the_archive(packages: Path, tmp_path: Path) -> None:
    formula = packages / "1.0.1/imori.rb"
    assert "@" not in formula.read_text()
    subprocess.run(["ruby", "-wc", formula], check=True, capture_output=True)
    (archive,) = formula.parent.glob("*.tar.gz")
    # The program tells the version of its manifest, and not of this package.
    version = subprocess.run([BINARY, "--version"], check=True, capture_output=True, text=True)
    told = formula.read_text().replace('"1.0.1"', f'"{version.stdout.split()[-1]}"')
    (tmp_path / "imori.rb").write_text(told)
    homebrew = Path(__file__).with_name("homebrew.rb")
    command = ["ruby", *map(str, [homebrew, tmp_path / "imori.rb", archive, tmp_path / "prefix"])]
    service = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert service.split()[:2] == [str(tmp_path / "prefix/bin/imori"), "serve"]
    installed = {path.name for path in (tmp_path / "prefix").rglob("*") if path.is_file()}
    assert {"imori", "imori.1.gz", "imori.fish", "_imori", "imori.toml"} <= installed


def test_the_bill_of_materials_names_what_is_linked(packages: Path) -> None:
    file = packages / "1.0.0/imori-1.0.0.cdx.json"
    subprocess.run([PYTHON, "-c", VALIDATE, file], check=True)
    components = {found["name"]: found for found in json.loads(file.read_text())["components"]}
    tree = ["cargo", "tree", "--locked", "--package=imori", "--edges=normal", "--prefix=none"]
    told = subprocess.run(tree, cwd=REPOSITORY, check=True, capture_output=True, text=True).stdout
    linked = {line.split()[0] for line in told.splitlines() if line} - {"imori"}
    assert linked <= components.keys()
    assert {"mimalloc", "mruby", "sqlite", "preact", "uplot"} <= components.keys()
    assert not {"proptest", "libfuzzer-sys", "vite"} & components.keys()
    assert components["tokio"]["hashes"][0]["alg"] == "SHA-256"


def test_a_second_build_gives_the_same_bytes(packages: Path, tmp_path: Path) -> None:
    again = pack(tmp_path, "1.0.0")
    sums = [(folder / "SHA256SUMS").read_text() for folder in (packages / "1.0.0", again)]
    assert sums[0] == sums[1]
