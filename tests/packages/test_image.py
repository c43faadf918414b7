"""The container image: its Dockerfile's last stage in a root of its own that nothing writes to."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from harness.imori import BINARY, REPOSITORY

DOCKER = REPOSITORY / "deploy/docker"
HADOLINT = REPOSITORY / ".tools/deploy/bin/hadolint"
NAME_SERVER = Path(__file__).with_name("name_server.py")
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")

# A root that is read-only but for its volume, with a network of loopback alone.
CONTAINER = r"""
set -eu
mount --bind "$1" "$1"
mount -t proc none "$1/proc"
mount --rbind /dev "$1/dev"
mount --bind "$1$2" "$1$2"
mount -o remount,bind,ro "$1"
ip link set lo up
shift 2
exec "$@"
"""


@dataclass
class Image:
    """The instructions of a Dockerfile's last stage that say how a container runs."""

    user: str = ""
    volume: str = ""
    environment: dict[str, str] = field(default_factory=dict)
    entrypoint: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)
    health: list[str] = field(default_factory=list)
    ports: set[int] = field(default_factory=set)


def words(text: str) -> list[str]:
    """Returns the items of an instruction in JSON."""
    return re.findall(r'"([^"]*)"', text)


def build(context: Path, root: Path) -> Image:
    """Carries out the last stage of the Dockerfile.

    The stage before it gives certificates and an empty folder.
    """
    image = Image()
    text = (DOCKER / "Dockerfile").read_text().partition("FROM scratch\n")[2]
    for line in text.splitlines():
        name, _, rest = line.partition(" ")
        match name:
            case "COPY":
                copy(context, root, rest)
            case "USER":
                image.user = rest
            case "VOLUME":
                image.volume = rest
            case "ENV":
                image.environment |= dict(pair.split("=", 1) for pair in rest.split())
            case "EXPOSE":
                image.ports = set(map(int, rest.split()))
            case "HEALTHCHECK":
                image.health = words(rest.partition("CMD")[2])
            case "ENTRYPOINT":
                image.entrypoint = words(rest)
            case "CMD":
                image.command = words(rest)
            case "STOPSIGNAL":
                assert rest == "SIGTERM"
            case _:
                assert not name or name == "#", f"this test does not know `{line}`"
    return image


def copy(context: Path, root: Path, rest: str) -> None:
    """Carries out one COPY."""
    options = [word for word in rest.split() if word.startswith("--")]
    *sources, target = [word for word in rest.split() if not word.startswith("--")]
    for source in sources:
        to = root / target.lstrip("/")
        if target.endswith("/"):
            to /= Path(source).name
        to.parent.mkdir(parents=True, exist_ok=True)
        if "--from=files" not in options:
            shutil.copy(context / source, to)
        elif source == "/empty":
            to.mkdir()
        else:
            assert source == str(CERTIFICATES)
            shutil.copy(source, to)
        for option in options:
            if option.startswith("--chown="):
                user, group = option.removeprefix("--chown=").split(":")
                shutil.chown(to, int(user), int(group))


def add_libraries(root: Path) -> None:
    """Adds the libraries of a program that is not static; the image's program has none."""
    told = subprocess.run(["ldd", BINARY], capture_output=True, text=True, check=False).stdout
    for library in re.findall(r"(/\S+) \(0x", told):
        to = root / library.lstrip("/")
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, to)


def can_mount(folder: Path) -> bool:
    """Returns whether this process may mount."""
    probe = ["unshare", "--mount", "--net", "--pid", "--fork", "mount", "-t", "tmpfs", "none"]
    return subprocess.run([*probe, folder], capture_output=True, check=False).returncode == 0


def run_in(root: Path, image: Image, script: str) -> str:
    """Runs a script, in which `$inside` is the image's program, and returns its output."""
    group = image.user.partition(":")[2]
    variables = " ".join(f"{name}={value}" for name, value in image.environment.items())
    enter = f"chroot --userspec={image.user} --groups={group} {root} {image.entrypoint[0]}"
    enter = f"/usr/bin/env -i {variables} /usr/bin/setpriv --no-new-privs /usr/sbin/{enter}"
    command = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "sh", "-c"]
    command += [
        CONTAINER,
        "sh",
        str(root),
        image.volume,
        "sh",
        "-euc",
        f"inside='{enter}'\n{script}",
    ]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def test_a_container_keeps_messages_and_finds_names_without_writing_to_its_root(
    tmp_path: Path,
) -> None:
    if os.getuid() != 0 or not can_mount(tmp_path):
        pytest.skip("a root takes the right to mount")
    context, root = tmp_path / "context", tmp_path / "root"
    (context / "bin").mkdir(parents=True)
    shutil.copy(BINARY, context / "bin/imori")
    shutil.copytree(DOCKER, context / "container")
    tmp_path.chmod(0o755)
    image = build(context, root)
    add_libraries(root)
    (root / "etc/resolv.conf").write_text("nameserver 127.0.0.1\n")
    for folder in ("proc", "dev"):
        (root / folder).mkdir()
    serve, health = shlex.join(image.command), shlex.join(image.health[1:])
    assert image.health[0] == image.entrypoint[0]
    start = f"""
        mkfifo -m 666 {tmp_path}/ready
        $inside {serve} --ready-fd 3 3>{tmp_path}/ready >{tmp_path}/out 2>{tmp_path}/log &
        broker=$!
        read -r line <{tmp_path}/ready
        test "$line" = ready
        rm {tmp_path}/ready
        $inside {health} | grep -c '^queues'
    """
    stop = """
        kill -TERM "$broker"
        wait "$broker"
    """
    printed = run_in(
        root,
        image,
        f"""
        ! $inside {health} 2>{tmp_path}/ill
        ! touch {root}/etc/new 2>{tmp_path}/refused
        {start}
        $inside pub --header persistent:true /queue/kept 'a message' >{tmp_path}/published
        {sys.executable} {NAME_SERVER} >{tmp_path}/names &
        until grep -q ready {tmp_path}/names; do :; done
        $inside respond --url stomp://guest:guest@a.name.example:61613 /queue/add-one --add-one &
        $inside call --url stomp://guest:guest@another.example:61613 /queue/add-one 41
        {stop}
        {start}
        $inside sub --count 1 /queue/kept
        {stop}
        """,
    )
    assert printed.split("\n") == ["1", "42", "1", "a message", ""]
    assert "Read-only" in (tmp_path / "refused").read_text()
    told = re.findall(r"^listening \S+ (\S+):(\d+)$", (tmp_path / "out").read_text(), re.MULTILINE)
    assert {
        int(port) for address, port in told if address not in ("127.0.0.1", "[::1]")
    } == image.ports
    owners = {path.stat().st_uid for path in (root / "var/lib/imori").rglob("*")}
    assert owners == {int(image.user.partition(":")[0])}


@pytest.mark.skipif(not HADOLINT.exists(), reason="ci/setup.sh has not installed hadolint")
def test_the_dockerfile_has_no_findings() -> None:
    command = [str(HADOLINT), "--failure-threshold", "style", str(DOCKER / "Dockerfile")]
    linted = subprocess.run(command, capture_output=True, text=True, check=False)
    assert linted.returncode == 0, linted.stdout + linted.stderr
